//! Types whose values lie in a sample as they lie in memory.
//!
//! In XCDR1, members of a structure that is not mutable stand at the next multiple of
//! their size, as C would have them. Where that comes to the same offsets and the same
//! size as `repr(C)`, which the compiler finds and generated constants assert, and where
//! any bytes are a value (so no booleans, enumerations or text), little endian samples
//! can be lent as they are, and written and read as a whole.
//!
//! The one thing that can differ is where a value starts: XCDR aligns it for its first
//! primitive, Rust for its largest. Only where both come to the same place is a value
//! one of these.

use std::ops::Range;

use crate::encapsulation::{ByteOrder, Representation};
use crate::limits::DEPTH_MAX;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A structure that is laid out by XCDR1 as by Rust.
pub trait Plain: FromBytes + Immutable + KnownLayout + Send + Sync + 'static {
    /// Size of its first primitive, to which XCDR1 aligns it.
    const ALIGN_FIRST: usize;
    /// Structures inside of each other, itself included, and arrays of them.
    const DEPTH: u8;
}

/// A [`Plain`] structure without padding: all of its bytes are its members'.
pub trait Dense: Plain + IntoBytes {}

/// Whether values in this representation and order lie as in memory.
#[inline]
pub(crate) fn as_in_memory(representation: Representation, order: ByteOrder) -> bool {
    cfg!(target_endian = "little")
        && representation == Representation::Xcdr1
        && order == ByteOrder::Little
}

/// The range of `count` values at or after `position`, with alignment counted from
/// `origin` and `depth` structures around them; `None` where they lie otherwise than in
/// memory, or are none.
#[inline]
pub(crate) fn range_of<T: Plain>(
    count: usize,
    position: usize,
    origin: usize,
    depth: u8,
) -> Option<Range<usize>> {
    if count == 0 || usize::from(depth) + usize::from(T::DEPTH) > DEPTH_MAX {
        return None;
    }
    // Alignments are powers of two: no division.
    let padding = origin.wrapping_sub(position) & (T::ALIGN_FIRST - 1);
    let start = position.checked_add(padding)?;
    if start.wrapping_sub(origin) & (align_of::<T>() - 1) != 0 {
        return None;
    }
    let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
    Some(start..end)
}
