//! Reading untrusted bytes.
//!
//! Bytes from other processes become [`Untrusted`], from which only a [`Reader`] can be
//! made. A reader never passes its limit: the end of the sample, or of the innermost
//! delimited value or parameter around the cursor.
//!
//! `members.rs` reads and finds members, `block.rs` those with constant relative offsets,
//! `parameters.rs` iterates over those of mutable structures, `construct.rs` treats values
//! that are not values of their type, `union.rs` finds the selected member of a union.

mod block;
mod construct;
mod members;
mod parameters;
mod plain;
#[cfg(test)]
mod tests;
mod union;

pub use block::{BlockLayout, Together};
pub use members::{ABSENT, MemberLocation, Span};
pub use parameters::{Present, ReadParameter};

use crate::encapsulation::{ByteOrder, Encapsulation, Extensibility, Representation};
use crate::encode::Members;
use crate::error::{CdrError, SamplePosition};
use crate::limits;
use crate::primitive::Primitive;

/// Bytes from another process that have not been checked.
#[derive(Debug, Clone, Copy)]
pub struct Untrusted<'a> {
    bytes: &'a [u8],
    encapsulation: Encapsulation,
}

impl<'a> Untrusted<'a> {
    /// Body and encapsulation id as received.
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
    /// The origin of alignment.
    origin: usize,
    representation: Representation,
    order: ByteOrder,
    members: Members,
    /// Enclosing structures and collections of the cursor.
    depth: u8,
    /// Depth of the structure that the limit belongs to: only there do missing members at
    /// the end mean an older version of the type.
    limit_depth: u8,
    /// Bytes of the whole sample.
    length: u32,
    /// Bytes of memory of the elements of sequences so far.
    spent: usize,
    /// Whether a value is only skipped: then it must be well-formed, but need not be a value
    /// of its type.
    skipping: bool,
}

/// An open structure or collection of a [`Reader`], to be closed by [`Reader::end`].
#[derive(Debug)]
#[must_use]
pub struct Scope<'a> {
    /// The outer limit, if there is a delimiter.
    outer: Option<(&'a [u8], u8)>,
}

impl<'a> Reader<'a> {
    /// The reader after the last member: every value read from it is absent.
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

    /// A reader at the start of a key as [`KeyBytes`](crate::KeyBytes) and key hashes have it.
    pub(crate) fn of_key(key: &'a [u8]) -> Self {
        Self {
            bytes: key,
            order: ByteOrder::Big,
            members: Members::KeyHash,
            limit_depth: 1,
            length: u32::try_from(key.len()).unwrap_or(u32::MAX),
            ..Self::empty()
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

    /// Moves to the position of a copy of this cursor in the same structure.
    #[inline(always)]
    pub fn follow(&mut self, copy: &Self) {
        (self.position, self.spent) = (copy.position, copy.spent);
    }

    /// Whether this is the reader of absent values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether this reader reads a key from a key hash: the key members by ascending id, as if
    /// every structure were final.
    #[inline]
    pub fn is_key_hash(&self) -> bool {
        self.members == Members::KeyHash
    }

    /// Byte order.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The position of the cursor, for errors.
    #[inline]
    pub fn place(&self) -> SamplePosition {
        SamplePosition::offset(self.position)
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

    /// The error that `count` bytes from `start` on, or the padding before them, are missing.
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
        // For valid bytes, padding and values are checked together.
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
        // Alignments are powers of two, which the compiler does not know: this avoids a division.
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

    /// The bytes of one primitive, whose size the compiler knows.
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

    /// A count of elements of at least `size_min` bytes each, checked against the bound and
    /// against the remaining bytes.
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

    /// As [`count`](Self::count), dropping elements beyond the bound: returns how many are kept
    /// and how many follow them.
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

    /// Counts an element of a sequence that is about to be built: elements may be far larger
    /// in memory than encoded, because most of their members may be missing.
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
            (Representation::Xcdr2, Extensibility::Appendable | Extensibility::Mutable)
                if !self.is_key_hash() =>
            {
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

    /// Sets the limit to the end of the next `length` bytes, and returns the previous limit.
    #[inline(always)]
    fn end_after(&mut self, length: usize) -> Result<&'a [u8], CdrError> {
        match self.bytes.get(..self.position.saturating_add(length)) {
            Some(inside) => Ok(std::mem::replace(&mut self.bytes, inside)),
            None => Err(self.truncated(length)),
        }
    }

    /// Advances to the limit and restores the outer one.
    #[inline(always)]
    fn leave(&mut self, outer: &'a [u8]) {
        self.position = self.bytes.len();
        self.bytes = outer;
    }

    /// Closes a structure or collection, skipping members that a newer version of the type
    /// has appended.
    #[inline(always)]
    pub fn end(&mut self, scope: Scope<'a>) {
        self.depth = self.depth.saturating_sub(1);
        if let Some((outer, limit_depth)) = scope.outer {
            self.leave(outer);
            self.limit_depth = limit_depth;
        }
    }

    /// Whether a member is absent: it is not selected, or an older version of an appendable
    /// type ends before it.
    #[inline(always)]
    pub fn is_absent(&self, extensibility: Extensibility, key: bool) -> bool {
        !self.members.includes(key)
            || (matches!(extensibility, Extensibility::Appendable)
                && self.position >= self.bytes.len()
                && self.depth == self.limit_depth)
    }
}

/// Takes numbers instead of a reader, so that readers can stay in registers.
#[cold]
#[inline(never)]
fn truncated(needed: usize, position: usize, limit: usize) -> CdrError {
    CdrError::Truncated {
        needed,
        remaining: limit.saturating_sub(position),
        place: SamplePosition::offset(position),
    }
}
