//! What code generated from IDL needs at run time: topic types, the XCDR
//! encodings, in-place builders and views.
//!
//! Bytes from outside are [`Untrusted`] until a [`Reader`] has checked them:
//! every length, count and depth is compared with what remains before anything
//! is allocated or looped over. Nothing here panics on any input.

#![forbid(unsafe_code)]

pub mod codec;
mod encapsulation;
pub mod encode;
mod error;
mod fixed;
pub mod in_place;
mod key;
pub mod limits;
mod long_double;
mod map_view;
mod measure;
mod member;
mod plain;
mod primitive;
mod reader;
#[cfg(feature = "serde")]
mod serde_shape;
pub mod shape;
mod topic;
mod view;
mod wide_view;

pub use encapsulation::{ByteOrder, Encapsulation, Extensibility, Representation};
pub use error::{CdrError, Place};
pub use fixed::{Fixed, FixedError};
pub use in_place::{Elements, Entries, InPlace, List, Part, Room, SeqMut, Site};
pub use key::{KeyHash, KeyHasher};
pub use long_double::{LongDouble, ParseLongDoubleError};
pub use map_view::{MapIter, MapView};
pub use measure::{Measure, end_of_elements};
pub use member::{Borrowed, Member, Owned, Shown};
pub use plain::{Dense, Plain};
pub use primitive::Primitive;
pub use reader::{
    ABSENT, Layout, Location, Present, ReadParameter, Reader, Scope, Span, Together, Untrusted,
};
pub use topic::{Slot, TopicType, TypeDescription};
pub use view::{ListIter, ListView, SeqIter, SeqView};
pub use wide_view::WideView;

#[cfg(feature = "serde")]
pub use serde;
#[cfg(feature = "serde")]
pub use serde_shape::{Serde, SerdeShape};
#[doc(hidden)]
pub use zerocopy;

/// The last stage of an in-place builder: every member that varies in size has
/// been written, and the sample can be published.
#[derive(Debug, Clone, Copy)]
pub enum Complete {}

/// A stage of an in-place builder: the member that is to be written next.
pub struct Needs<M>(std::marker::PhantomData<M>);

impl<M: Member> std::fmt::Debug for Needs<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Needs({})", M::PATH)
    }
}

/// [`std::result::Result`] with the error of this crate.
pub type Result<T, E = CdrError> = std::result::Result<T, E>;

/// Includes what `spindle_dds_idl::Builder` has generated: `include_idl!("flight")`
/// takes `flight.rs` from `OUT_DIR`.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
