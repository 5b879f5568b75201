//! What participants announce, and which writers and readers match by it.
//!
//! ```text
//!   local endpoints --Announcement--> views of the group --> Announcement --Match--> endpoints
//! ```
//!
//! A view is agreed by all members, and begins at one position in the order of each subgroup
//! that it touches: so does a match. This folder knows nothing of threads, queues or entities.

mod announcement;
pub(crate) mod fuzzing;
mod large_types;
mod matching;
#[cfg(test)]
mod tests;
mod type_announcement;

pub(crate) use announcement::{
    Endpoint, Entry, PROTOCOL, ParticipantInfo, ReaderEntry, WriterEntry,
};
pub(crate) use large_types::LargeTypes;
pub(crate) use matching::{Comparisons, Match};
pub(crate) use type_announcement::{LocalType, Types};
