//! Who is there, and who meets whom.
//!
//! ```text
//!   Roll: endpoints of this participant --Update--> views of the group
//!   view begins --> Matcher: Links of readers, matches and lanes of writers, statuses
//! ```
//!
//! A view is agreed by all members, and begins at one place of the order of each
//! subgroup that it touches: so does a match.

mod announcement;
mod described;
mod matcher;
mod matching;
mod notebook;
mod roll;
pub(crate) mod strangers;
#[cfg(test)]
mod tests;

pub(crate) use announcement::{
    Endpoint, Entry, PROTOCOL, ParticipantInfo, ReaderEntry, WriterEntry,
};
pub(crate) use described::{OwnType, Types};
pub(crate) use matcher::{Matcher, Route, Routes};
pub(crate) use roll::{Own, Roll};
