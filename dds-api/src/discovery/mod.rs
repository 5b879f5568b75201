//! The announcements of participants and endpoints, and the matching of writers and readers.
//!
//! ```text
//!   local endpoints --Announcement--> views of the group --> Announcement --Match--> endpoints
//! ```
//!
//! All members agree on a view, and a view begins at one position in the order of each
//! subgroup that it touches. Therefore a match begins at the same position on all members.
//! This folder does not depend on threads, queues or entities.

mod announcement;
pub(crate) mod fuzzing;
mod large_type_ref;
mod large_types;
mod matching;
mod protocol_violation;
#[cfg(test)]
mod tests;
mod type_announcement;
mod types;

pub(crate) use announcement::{
    Endpoint, Entry, PROTOCOL, ParticipantInfo, ReaderEntry, WriterEntry,
};
pub(crate) use large_types::LargeTypes;
#[cfg(test)]
pub(crate) use matching::Conflict;
pub(crate) use matching::{Comparisons, Match};
pub(crate) use protocol_violation::ProtocolViolation;
pub(crate) use type_announcement::{LocalType, read_logged};
pub(crate) use types::Types;
