//! What code generated from IDL needs at run time: topic types, the XCDR
//! encodings, in-place builders and views.
//!
//! Bytes from outside are untrusted until a reader has checked them:
//! every length, count and depth is compared with what remains before anything
//! is allocated or looped over. Nothing here panics on any input.

#![forbid(unsafe_code)]

mod encapsulation;
mod error;
mod key;
pub mod limits;
mod topic;

pub use encapsulation::{ByteOrder, Encapsulation, Extensibility, Representation};
pub use error::{CdrError, InMember, Place};
pub use key::KeyHash;
pub use topic::{Slot, TopicType};

#[cfg(feature = "serde")]
pub use serde;
