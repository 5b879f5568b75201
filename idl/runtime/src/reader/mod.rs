//! Reading bytes that nobody has vouched for.
//!
//! [`Untrusted`] is all that can be made of bytes from outside, and a [`Reader`]
//! all that can be made of that. A reader never goes past its limit: the end of
//! the sample, or of the innermost delimiter or parameter around the cursor.
//!
//! `members.rs` reads and finds members, `block.rs` those that stand at known offsets from
//! each other, `parameters.rs` walks over those of mutable structures, `construct.rs` deals
//! with values that are none of their type, `union.rs` finds the member that a union has.

mod block;
mod construct;
mod members;
mod parameters;
mod plain;
#[cfg(test)]
mod tests;
mod union;

pub use block::{Layout, Together};
pub use members::{ABSENT, Location, Span};
pub use parameters::{Present, ReadParameter};

use crate::encapsulation::{ByteOrder, Encapsulation, Extensibility, Representation};
use crate::encode::Members;
use crate::error::{CdrError, Place};
use crate::limits;
use crate::primitive::Primitive;

/// Bytes from outside, not looked at yet.
#[derive(Debug, Clone, Copy)]
pub struct Untrusted<'a> {
    bytes: &'a [u8],
    encapsulation: Encapsulation,
}

impl<'a> Untrusted<'a> {
    /// Body and encapsulation id as they came.
    pub const fn new(bytes: &'a [u8], encapsulation: Encapsulation) -> Self {
        Self {
            bytes,
            encapsulation,
        }
    }

    /// A reader at the start.
    ///
    /// # Errors
    /// [`CdrError::UnknownEncapsulation`], [`CdrError::EncapsulationMismatch`],
    /// [`CdrError::TooLong`].
    #[inline(always)]
    pub fn reader(
        self,
        extensibility: Extensibility,
        members: Members,
    ) -> Result<Reader<'a>, CdrError> {
        let representation = self.encapsulation.representation(extensibility)?;
        let length = self.bytes.len();
        if length > limits::SAMPLE_BYTES_MAX {
            return Err(CdrError::TooLong {
                length,
                limit: limits::SAMPLE_BYTES_MAX,
            });
        }
        Ok(Reader {
            bytes: self.bytes,
            position: 0,
            origin: 0,
            representation,
            order: self.encapsulation.order(),
            members,
            depth: 0,
            limit_depth: 1,
            length: length as u32,
            spent: 0,
            skipping: false,
        })
    }
}

/// A cursor over a sample. Copying it is cheap and forks the cursor.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// The sample up to the limit.
    bytes: &'a [u8],
    position: usize,
    /// What alignment counts from.
    origin: usize,
    representation: Representation,
    order: ByteOrder,
    members: Members,
    /// Structures and collections around the cursor.
    depth: u8,
    /// Depth of the structure that the limit belongs to: only there do missing
    /// members at the end mean an older version of the type.
    limit_depth: u8,
    /// Bytes of the whole sample.
    length: u32,
    /// Bytes of memory that elements of sequences take so far.
    spent: usize,
    /// Only goes behind a value: what is well-formed need not be a value of its type.
    skipping: bool,
}

/// An open structure or collection of a [`Reader`], to be closed by [`Reader::end`].
#[derive(Debug)]
#[must_use]
pub struct Scope<'a> {
    /// What to go on with, when there is a delimiter.
    outer: Option<(&'a [u8], u8)>,
}

impl<'a> Reader<'a> {
    /// What is behind no member: every value read from it is absent.
    pub const fn empty() -> Self {
        Self {
            bytes: &[],
            position: 0,
            origin: 0,
            representation: Representation::Xcdr2,
            order: ByteOrder::Little,
            members: Members::All,
            depth: 0,
            limit_depth: 0,
            length: 0,
            spent: 0,
            skipping: false,
        }
    }

    /// A reader over bytes that this process has just written, at `position`.
    pub(crate) fn own(
        bytes: &'a [u8],
        representation: Representation,
        position: usize,
        origin: usize,
    ) -> Self {
        Self {
            bytes,
            position,
            origin,
            representation,
            order: ByteOrder::Little,
            members: Members::All,
            depth: 1,
            limit_depth: 0,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            spent: 0,
            skipping: false,
        }
    }

    /// Offset of the next byte.
    #[inline]
    pub fn position(&self) -> u32 {
        self.position as u32
    }

    /// Bytes up to the limit.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Goes where a copy of this cursor has gone, in the same structure.
    #[inline(always)]
    pub fn follow(&mut self, copy: &Self) {
        (self.position, self.spent) = (copy.position, copy.spent);
    }

    /// Whether there is nothing to read, not even in principle.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Byte order.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The place of the cursor, for errors.
    #[inline]
    pub fn place(&self) -> Place {
        Place::offset(self.position)
    }

    /// Takes the next `count` bytes.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        let end = self.position.saturating_add(count);
        match self.bytes.get(self.position..end) {
            Some(bytes) => {
                self.position = end;
                Ok(bytes)
            }
            None => Err(self.truncated(count)),
        }
    }

    #[inline]
    fn truncated(&self, needed: usize) -> CdrError {
        truncated(needed, self.position, self.bytes.len())
    }

    /// `count` bytes from `start` on are not there, or not the padding before them.
    #[inline]
    fn short(&self, start: usize, count: usize) -> CdrError {
        match start > self.bytes.len() {
            true => self.truncated(start - self.position),
            false => truncated(count, start, self.bytes.len()),
        }
    }

    /// Skips padding.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), CdrError> {
        let padding = self.aligned(alignment) - self.position;
        if padding != 0 {
            self.take(padding)?;
        }
        Ok(())
    }

    /// The bytes of `count` primitives, aligned and checked.
    ///
    /// # Errors
    /// [`CdrError::Truncated`], [`CdrError::InvalidBool`].
    #[inline(always)]
    pub fn primitives<P: Primitive>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        if count == 0 {
            return Ok(&[]);
        }
        // Where nothing is wrong, padding and values are looked at together.
        let start = self.aligned(P::SIZE);
        let end = start.saturating_add(count.saturating_mul(P::SIZE));
        match self.bytes.get(start..end) {
            Some(bytes) => {
                P::check(bytes, start)?;
                self.position = end;
                Ok(bytes)
            }
            None => Err(self.short(start, end - start)),
        }
    }

    /// Offset of the next byte that is aligned.
    #[inline(always)]
    fn aligned(&self, alignment: usize) -> usize {
        let alignment = alignment.min(self.representation.align_max());
        // Alignments are powers of two, which the compiler cannot know: no division.
        debug_assert!(alignment.is_power_of_two());
        let padding = self.origin.wrapping_sub(self.position) & (alignment - 1);
        self.position + padding
    }

    /// One primitive.
    ///
    /// # Errors
    /// As [`primitives`](Self::primitives).
    #[inline(always)]
    pub fn primitive<P: Primitive>(&mut self) -> Result<P, CdrError> {
        let bytes = self.one::<P>()?;
        Ok(P::load(self.order, bytes))
    }

    /// The bytes of one primitive, whose number the compiler knows.
    #[inline(always)]
    pub(crate) fn one<P: Primitive>(&mut self) -> Result<&'a [u8], CdrError> {
        let start = self.aligned(P::SIZE);
        let bytes = self
            .bytes
            .get(start..)
            .and_then(|bytes| bytes.get(..P::SIZE));
        match bytes {
            Some(bytes) => {
                P::check(bytes, start)?;
                self.position = start + P::SIZE;
                Ok(bytes)
            }
            None => Err(self.short(start, P::SIZE)),
        }
    }

    /// A number of elements that take at least `size_min` bytes each, checked
    /// against the bound and against what remains.
    ///
    /// # Errors
    /// [`CdrError::Truncated`], [`CdrError::BoundExceeded`].
    #[inline(always)]
    pub fn count(&mut self, size_min: usize, bound: u32) -> Result<usize, CdrError> {
        let offset = self.position;
        let count = self.primitive::<u32>()? as usize;
        self.check_bound(count, bound, offset)?;
        self.check_count(count, size_min)
    }

    /// As [`count`](Self::count) where what is beyond the bound is left out: how many
    /// elements are kept, and how many come after them.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    pub fn count_trimmed(
        &mut self,
        size_min: usize,
        bound: u32,
    ) -> Result<(usize, usize), CdrError> {
        let count = self.primitive::<u32>()? as usize;
        let count = self.check_count(count, size_min)?;
        let kept = count.min(bound as usize);
        Ok((kept, count - kept))
    }

    #[inline(always)]
    fn check_count(&self, count: usize, size_min: usize) -> Result<usize, CdrError> {
        let count_max = match self.remaining().checked_div(size_min) {
            Some(count_max) => count_max,
            None => limits::EMPTY_ELEMENTS_MAX,
        };
        if count > count_max {
            return Err(self.truncated(count.saturating_mul(size_min.max(1))));
        }
        Ok(count)
    }

    /// Counts an element of a sequence that is about to be built: elements may be
    /// far larger in memory than on the wire, where most of them may be missing.
    ///
    /// # Errors
    /// [`CdrError::TooLarge`].
    #[inline]
    pub fn spend(&mut self, bytes: usize) -> Result<(), CdrError> {
        let limit = limits::memory_max(self.length as usize);
        let spent = self.spent.saturating_add(bytes);
        if spent > limit {
            return Err(CdrError::TooLarge {
                limit,
                place: self.place(),
            });
        }
        self.spent = spent;
        Ok(())
    }

    /// Opens a structure; to be closed by [`end`](Self::end).
    ///
    /// # Errors
    /// [`CdrError::TooDeep`], [`CdrError::Truncated`].
    #[inline(always)]
    pub fn begin(&mut self, extensibility: Extensibility) -> Result<Scope<'a>, CdrError> {
        self.deeper()?;
        match (self.representation, extensibility) {
            (Representation::Xcdr2, Extensibility::Appendable | Extensibility::Mutable) => {
                self.delimiter()
            }
            _ => Ok(Scope { outer: None }),
        }
    }

    /// Opens a collection of non-primitive elements; to be closed by [`end`](Self::end).
    ///
    /// # Errors
    /// [`CdrError::TooDeep`], [`CdrError::Truncated`].
    #[inline]
    pub fn begin_collection(&mut self) -> Result<Scope<'a>, CdrError> {
        self.deeper()?;
        match self.representation {
            Representation::Xcdr1 => Ok(Scope { outer: None }),
            Representation::Xcdr2 => {
                let scope = self.delimiter()?;
                self.limit_depth = 0;
                Ok(scope)
            }
        }
    }

    #[inline(always)]
    fn deeper(&mut self) -> Result<(), CdrError> {
        if usize::from(self.depth) >= limits::DEPTH_MAX {
            return Err(CdrError::TooDeep {
                limit: limits::DEPTH_MAX,
                place: self.place(),
            });
        }
        self.depth += 1;
        Ok(())
    }

    #[inline(always)]
    fn delimiter(&mut self) -> Result<Scope<'a>, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        let outer = self.end_after(length)?;
        let scope = Scope {
            outer: Some((outer, self.limit_depth)),
        };
        self.limit_depth = self.depth;
        Ok(scope)
    }

    /// Puts the limit behind the next `length` bytes, and gives what it was.
    #[inline(always)]
    fn end_after(&mut self, length: usize) -> Result<&'a [u8], CdrError> {
        match self.bytes.get(..self.position.saturating_add(length)) {
            Some(inside) => Ok(std::mem::replace(&mut self.bytes, inside)),
            None => Err(self.truncated(length)),
        }
    }

    /// Goes on behind the limit, with what was the limit around it.
    #[inline(always)]
    fn leave(&mut self, outer: &'a [u8]) {
        self.position = self.bytes.len();
        self.bytes = outer;
    }

    /// Closes a structure or collection, skipping what a newer version of the
    /// type has put behind the members known here.
    #[inline(always)]
    pub fn end(&mut self, scope: Scope<'a>) {
        self.depth = self.depth.saturating_sub(1);
        if let Some((outer, limit_depth)) = scope.outer {
            self.leave(outer);
            self.limit_depth = limit_depth;
        }
    }

    /// Whether a member is not there: it takes no part, or an older version of an
    /// appendable type ends before it.
    #[inline(always)]
    pub fn is_absent(&self, extensibility: Extensibility, key: bool) -> bool {
        !self.members.includes(key)
            || (matches!(extensibility, Extensibility::Appendable)
                && self.position >= self.bytes.len()
                && self.depth == self.limit_depth)
    }
}

/// Takes numbers, not a reader, so that readers can live in registers.
#[cold]
#[inline(never)]
fn truncated(needed: usize, position: usize, limit: usize) -> CdrError {
    CdrError::Truncated {
        needed,
        remaining: limit.saturating_sub(position),
        place: Place::offset(position),
    }
}
