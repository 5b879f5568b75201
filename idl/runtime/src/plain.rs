//! Types whose layout in a sample is that in memory.
//!
//! XCDR1 aligns the members of a structure that is not mutable to their size, as C does.
//! If that gives the offsets and the size of `repr(C)`, which the compiler determines and
//! generated constants assert, and if any bytes are a valid value (no booleans,
//! enumerations or text), little endian samples can be borrowed in place, and written and
//! read by one copy.
//!
//! Only the start of a value can differ: XCDR aligns it for its first primitive, Rust for
//! its largest. A value has the layout of memory only if both alignments give the same
//! start.

use std::ops::Range;

use crate::encapsulation::{ByteOrder, Representation};
use crate::limits::DEPTH_MAX;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A structure with the same layout in XCDR1 and in Rust.
pub trait Plain: FromBytes + Immutable + KnownLayout + Send + Sync + 'static {
    /// Size of its first primitive, to which XCDR1 aligns it.
    const ALIGN_FIRST: usize;
    /// Nesting of structures and arrays of structures, including itself.
    const DEPTH: u8;
}

/// A [`Plain`] structure without padding: all of its bytes belong to members.
pub trait Dense: Plain + IntoBytes {}

/// Whether values in this representation and byte order have the layout of memory.
#[inline]
pub(crate) fn as_in_memory(representation: Representation, order: ByteOrder) -> bool {
    cfg!(target_endian = "little")
        && representation == Representation::Xcdr1
        && order == ByteOrder::Little
}

/// The byte range of `count` values at or after `position`, with alignment relative to
/// `origin` and `depth` enclosing structures; `None` if their layout is not that of memory,
/// or the range is not in the sample.
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
    // Alignments are powers of two: this avoids a division.
    let padding = origin.wrapping_sub(position) & (T::ALIGN_FIRST - 1);
    let start = position.checked_add(padding)?;
    if start.wrapping_sub(origin) & (align_of::<T>() - 1) != 0 {
        return None;
    }
    let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
    Some(start..end)
}
