//! Reading bytes that nobody has vouched for.
//!
//! [`Untrusted`] is all that can be made of bytes from outside, and a [`Reader`]
//! all that can be made of that. A reader never goes past its limit: the end of
//! the sample, or of the innermost delimiter or parameter around the cursor.

use crate::encapsulation::{ByteOrder, Encapsulation, Extensibility, Representation};
use crate::encode::{
    EMHEADER_MUST_UNDERSTAND, MEMBER_ID_MASK, Members, PID_EXTENDED, PID_IGNORE, PID_MASK,
    PID_MUST_UNDERSTAND, PID_SENTINEL,
};
use crate::error::{CdrError, Place};
use crate::limits;
use crate::primitive::Primitive;
use crate::shape::Shape;

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
    pub fn reader(
        self,
        extensibility: Extensibility,
        members: Members,
    ) -> Result<Reader<'a>, CdrError> {
        let (representation, order) = self.encapsulation.check(extensibility)?;
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
            limit: length,
            origin: 0,
            representation,
            order,
            members,
            depth: 0,
            limit_depth: 1,
            memory: limits::memory_max(length),
        })
    }
}

/// A cursor over a sample. Copying it is cheap and forks the cursor.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    /// At most `bytes.len()`.
    limit: usize,
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
    /// Bytes of memory that elements of sequences may still take.
    memory: usize,
}

/// An open structure or collection of a [`Reader`], to be closed by [`Reader::end`].
#[derive(Debug)]
#[must_use]
pub struct Scope {
    /// Limit to restore, and where to go on, when there is a delimiter.
    outer: Option<(usize, u8)>,
}

/// A member of a mutable structure that stands at the cursor.
#[derive(Debug)]
#[must_use]
pub struct ReadParameter {
    /// Member id.
    pub id: u32,
    must_understand: bool,
    outer_limit: usize,
    outer_limit_depth: u8,
    outer_origin: usize,
}

/// Where a member of a mutable structure lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Of a member that the sample does not have.
    pub const ABSENT: Self = Self {
        start: ABSENT,
        end: ABSENT,
    };
}

/// Offset of a member that the sample does not have.
pub const ABSENT: u32 = u32::MAX;

impl<'a> Reader<'a> {
    /// What is behind no member: every value read from it is absent.
    pub const fn empty() -> Self {
        Self {
            bytes: &[],
            position: 0,
            limit: 0,
            origin: 0,
            representation: Representation::Xcdr2,
            order: ByteOrder::Little,
            members: Members::All,
            depth: 0,
            limit_depth: 0,
            memory: 0,
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
            limit: bytes.len(),
            origin,
            representation,
            order: ByteOrder::Little,
            members: Members::All,
            depth: 1,
            limit_depth: 0,
            memory: 0,
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
        self.limit.saturating_sub(self.position)
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
    pub fn place(&self) -> Place {
        Place::offset(self.position)
    }

    /// Takes the next `count` bytes.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        if count > self.remaining() {
            return Err(self.truncated(count));
        }
        match self.bytes.get(self.position..self.position + count) {
            Some(bytes) => {
                self.position += count;
                Ok(bytes)
            }
            None => Err(self.truncated(count)),
        }
    }

    #[cold]
    fn truncated(&self, needed: usize) -> CdrError {
        CdrError::Truncated {
            needed,
            remaining: self.remaining(),
            place: self.place(),
        }
    }

    /// Skips padding.
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), CdrError> {
        let alignment = alignment.min(self.representation.align_max());
        let relative = self.position.saturating_sub(self.origin);
        let padding = relative.next_multiple_of(alignment) - relative;
        if padding != 0 {
            self.take(padding)?;
        }
        Ok(())
    }

    /// The bytes of `count` primitives, aligned and checked.
    ///
    /// # Errors
    /// [`CdrError::Truncated`], [`CdrError::InvalidBool`].
    #[inline]
    pub fn primitives<P: Primitive>(&mut self, count: usize) -> Result<&'a [u8], CdrError> {
        if count == 0 {
            return Ok(&[]);
        }
        self.align(P::SIZE)?;
        let offset = self.position;
        let bytes = self.take(count.saturating_mul(P::SIZE))?;
        P::check(bytes, offset)?;
        Ok(bytes)
    }

    /// One primitive.
    ///
    /// # Errors
    /// As [`primitives`](Self::primitives).
    #[inline]
    pub fn primitive<P: Primitive>(&mut self) -> Result<P, CdrError> {
        let bytes = self.primitives::<P>(1)?;
        Ok(P::load(self.order, bytes))
    }

    /// A number of elements that take at least `size_min` bytes each, checked
    /// against the bound and against what remains.
    ///
    /// # Errors
    /// [`CdrError::Truncated`], [`CdrError::BoundExceeded`].
    #[inline]
    pub fn count(&mut self, size_min: usize, bound: u32) -> Result<usize, CdrError> {
        let offset = self.position;
        let count = self.primitive::<u32>()? as usize;
        crate::encode::check_bound(count, bound, offset)?;
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
        match self.memory.checked_sub(bytes) {
            Some(left) => {
                self.memory = left;
                Ok(())
            }
            None => {
                let limit = limits::memory_max(self.bytes.len());
                Err(CdrError::TooLarge {
                    limit,
                    place: self.place(),
                })
            }
        }
    }

    /// Opens a structure; to be closed by [`end`](Self::end).
    ///
    /// # Errors
    /// [`CdrError::TooDeep`], [`CdrError::Truncated`].
    #[inline]
    pub fn begin(&mut self, extensibility: Extensibility) -> Result<Scope, CdrError> {
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
    pub fn begin_collection(&mut self) -> Result<Scope, CdrError> {
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

    #[inline]
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

    fn delimiter(&mut self) -> Result<Scope, CdrError> {
        let length = self.primitive::<u32>()? as usize;
        if length > self.remaining() {
            return Err(self.truncated(length));
        }
        let scope = Scope {
            outer: Some((self.limit, self.limit_depth)),
        };
        self.limit = self.position + length;
        self.limit_depth = self.depth;
        Ok(scope)
    }

    /// Closes a structure or collection, skipping what a newer version of the
    /// type has put behind the members known here.
    #[inline]
    pub fn end(&mut self, scope: Scope) {
        self.depth = self.depth.saturating_sub(1);
        if let Some((limit, limit_depth)) = scope.outer {
            self.position = self.limit;
            self.limit = limit;
            self.limit_depth = limit_depth;
        }
    }

    /// Whether a member is not there: it takes no part, or an older version of an
    /// appendable type ends before it.
    #[inline]
    pub fn absent(&self, extensibility: Extensibility, key: bool) -> bool {
        !self.members.includes(key)
            || (matches!(extensibility, Extensibility::Appendable)
                && self.position >= self.limit
                && self.depth == self.limit_depth)
    }

    /// Opens the next member of a mutable structure, `None` after the last; to be
    /// closed by [`end_parameter`](Self::end_parameter).
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    pub fn next_parameter(&mut self) -> Result<Option<ReadParameter>, CdrError> {
        match self.representation {
            Representation::Xcdr1 => self.next_parameter_xcdr1(),
            Representation::Xcdr2 => self.next_parameter_xcdr2(),
        }
    }

    fn next_parameter_xcdr1(&mut self) -> Result<Option<ReadParameter>, CdrError> {
        loop {
            self.align(4)?;
            let pid = self.primitive::<u16>()?;
            let mut length = usize::from(self.primitive::<u16>()?);
            let mut id = u32::from(pid & PID_MASK);
            match pid & PID_MASK {
                PID_SENTINEL => return Ok(None),
                PID_IGNORE => {
                    self.take(length)?;
                    continue;
                }
                PID_EXTENDED => {
                    if length != 8 {
                        return Err(self.truncated(8));
                    }
                    id = self.primitive::<u32>()? & MEMBER_ID_MASK;
                    length = self.primitive::<u32>()? as usize;
                }
                _ => {}
            }
            let must_understand = pid & PID_MUST_UNDERSTAND != 0;
            let origin = self.position;
            return self
                .open_parameter(id, must_understand, length, origin)
                .map(Some);
        }
    }

    fn next_parameter_xcdr2(&mut self) -> Result<Option<ReadParameter>, CdrError> {
        let relative = self.position.saturating_sub(self.origin);
        if self.remaining() <= relative.next_multiple_of(4) - relative {
            return Ok(None);
        }
        let header = self.primitive::<u32>()?;
        let code = (header >> 28) & 7;
        let (origin, id) = (self.origin, header & MEMBER_ID_MASK);
        let must_understand = header & EMHEADER_MUST_UNDERSTAND != 0;
        let length = match code {
            0..=3 => 1_usize << code,
            4 => self.primitive::<u32>()? as usize,
            // The length is the member's own first word as well.
            _ => {
                let mut ahead = *self;
                let count = ahead.primitive::<u32>()? as usize;
                let scale = match code {
                    5 => 1,
                    6 => 4,
                    _ => 8,
                };
                count.saturating_mul(scale).saturating_add(4)
            }
        };
        self.open_parameter(id, must_understand, length, origin)
            .map(Some)
    }

    fn open_parameter(
        &mut self,
        id: u32,
        must_understand: bool,
        length: usize,
        origin: usize,
    ) -> Result<ReadParameter, CdrError> {
        if length > self.remaining() {
            return Err(self.truncated(length));
        }
        let parameter = ReadParameter {
            id,
            must_understand,
            outer_limit: self.limit,
            outer_limit_depth: self.limit_depth,
            outer_origin: self.origin,
        };
        self.limit = self.position + length;
        self.limit_depth = self.depth + 1;
        self.origin = origin;
        Ok(parameter)
    }

    /// Where the open member lies.
    #[inline]
    pub fn span(&self) -> Span {
        Span {
            start: self.position as u32,
            end: self.limit as u32,
        }
    }

    /// Accepts that a member is not known.
    ///
    /// # Errors
    /// [`CdrError::MustUnderstand`].
    pub fn unknown(&self, parameter: &ReadParameter) -> Result<(), CdrError> {
        if parameter.must_understand {
            return Err(CdrError::MustUnderstand {
                id: parameter.id,
                place: self.place(),
            });
        }
        Ok(())
    }

    /// Closes a member of a mutable structure.
    #[inline]
    pub fn end_parameter(&mut self, parameter: ReadParameter) {
        self.position = self.limit;
        self.limit = parameter.outer_limit;
        self.limit_depth = parameter.outer_limit_depth;
        self.origin = parameter.outer_origin;
    }

    /// A reader at a member of the structure that this reader stands in; `None` if
    /// the sample does not have it.
    #[inline]
    pub fn locate(&self, at: impl Location) -> Option<Self> {
        at.within(self)
    }

    /// Shows a member of the structure that this reader stands in.
    #[inline]
    pub fn show<S: Shape>(&self, at: impl Location) -> Option<S::Shown<'a>> {
        self.locate(at).map(S::show_at)
    }
}

mod sealed {
    use super::Reader;

    pub trait Within {
        fn within<'a>(self, structure: &Reader<'a>) -> Option<Reader<'a>>;
    }
}

/// Where a member lies: an offset, or a [`Span`] in mutable structures.
pub trait Location: sealed::Within {}

impl Location for u32 {}
impl Location for Span {}

impl sealed::Within for u32 {
    #[inline]
    fn within<'a>(self, structure: &Reader<'a>) -> Option<Reader<'a>> {
        (self != ABSENT).then_some(Reader {
            position: self as usize,
            ..*structure
        })
    }
}

impl sealed::Within for Span {
    #[inline]
    fn within<'a>(self, structure: &Reader<'a>) -> Option<Reader<'a>> {
        let (position, limit) = (self.start as usize, self.end as usize);
        let origin = match structure.representation {
            Representation::Xcdr1 => position,
            Representation::Xcdr2 => structure.origin,
        };
        let limit_depth = structure.depth + 1;
        (self.start != ABSENT).then_some(Reader {
            position,
            limit,
            origin,
            limit_depth,
            ..*structure
        })
    }
}
