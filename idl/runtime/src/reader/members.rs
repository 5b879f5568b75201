//! Members of structures: read in sequence, or at the offsets that a check has found.

use std::borrow::Borrow;

use super::Reader;
use crate::encapsulation::Representation;
use crate::encode::Encoder;
use crate::error::{CdrError, InMember};
use crate::member::{Member, Owned, Shown, is_flagged};
use crate::shape::Shape as _;

/// The byte range of a member of a mutable structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range of a member that the sample does not have.
    pub const ABSENT: Self = Self {
        start: ABSENT,
        end: ABSENT,
    };
}

/// Offset of a member that the sample does not have.
pub const ABSENT: u32 = u32::MAX;

impl<'a> Reader<'a> {
    /// Reads a member of a final or appendable structure, or its default.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline(always)]
    pub fn member<M: Member>(&mut self) -> Result<Owned<M>, CdrError> {
        if self.is_absent(M::EXTENSIBILITY, M::KEY) {
            return Ok(M::initial());
        }
        if !is_flagged::<M>() {
            return self.value::<M>();
        }
        match self.begin_optional(M::ID).in_member(M::PATH)? {
            None => Ok(M::initial()),
            Some(present) => {
                let value = self.value::<M>()?;
                self.end_optional(present);
                Ok(value)
            }
        }
    }

    /// Reads the value of a present member.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline(always)]
    pub fn value<M: Member>(&mut self) -> Result<Owned<M>, CdrError> {
        let value = self.apart(|reader| match M::USE_DEFAULT {
            false => M::Shape::read(reader),
            true => reader
                .fits_or_skip::<M::Shape, _>(M::Shape::read)
                .map(|value| value.unwrap_or_else(M::initial)),
        });
        value.in_member(M::PATH)
    }

    /// Reads with a local cursor and then moves this one to it, so that this one can stay in
    /// registers.
    #[inline(always)]
    fn apart<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, CdrError>,
    ) -> Result<T, CdrError> {
        let mut cursor = *self;
        let value = read(&mut cursor);
        self.follow(&cursor);
        value
    }

    /// Checks a member of a final or appendable structure and returns its offset, or that of
    /// the mark of presence if it is optional.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline(always)]
    pub fn check_member<M: Member>(&mut self) -> Result<u32, CdrError> {
        if self.is_absent(M::EXTENSIBILITY, M::KEY) {
            return Ok(ABSENT);
        }
        let at = self.position();
        if !is_flagged::<M>() {
            return Ok(if self.verify::<M>()? { at } else { ABSENT });
        }
        match self.begin_optional(M::ID).in_member(M::PATH)? {
            None => Ok(ABSENT),
            Some(present) => {
                let fits = self.verify::<M>()?;
                self.end_optional(present);
                Ok(if fits { at } else { ABSENT })
            }
        }
    }

    /// Checks the open member of a mutable structure and returns its range.
    ///
    /// # Errors
    /// The bytes are invalid.
    #[inline]
    pub fn check_value<M: Member>(&mut self) -> Result<Span, CdrError> {
        let at = Span {
            start: self.position as u32,
            end: self.bytes.len() as u32,
        };
        Ok(if self.verify::<M>()? {
            at
        } else {
            Span::ABSENT
        })
    }

    /// Checks the value of a member; `false` means that its default replaces it.
    #[inline(always)]
    fn verify<M: Member>(&mut self) -> Result<bool, CdrError> {
        let fits = self.apart(|reader| match M::USE_DEFAULT {
            false => M::Shape::check(reader).map(|()| true),
            true => reader
                .fits_or_skip::<M::Shape, _>(M::Shape::check)
                .map(|fits| fits.is_some()),
        });
        fits.in_member(M::PATH)
    }

    /// A reader at the value of a member of the structure of this reader.
    #[inline]
    fn locate<M: Member>(&self, at: &[impl MemberLocation]) -> Option<Self> {
        let mut reader = at.get(M::INDEX)?.within(self)?;
        if is_flagged::<M>() {
            let _present = reader.begin_optional(M::ID).ok()??;
        }
        Some(reader)
    }

    /// Shows a member of the structure of this reader; `at` has the offsets of the members.
    #[inline]
    pub fn show<M: Member>(&self, at: &[impl MemberLocation]) -> Shown<'a, M> {
        self.locate::<M>(at)
            .map_or_else(M::absent, M::Shape::show_at)
    }

    /// Reads a member of the structure of this reader.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn to_owned<M: Member>(&self, at: &[impl MemberLocation]) -> Result<Owned<M>, CdrError> {
        match self.locate::<M>(at) {
            Some(mut reader) => reader.value::<M>(),
            None => Ok(M::initial()),
        }
    }

    /// Writes a member of the structure of this reader to a key hash.
    ///
    /// # Errors
    /// The bytes are invalid.
    pub fn transcribe_key<M: Member, E: Encoder>(
        &self,
        at: &[impl MemberLocation],
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let located = self.locate::<M>(at);
        if M::Shape::OPTIONAL {
            encoder.primitive(located.is_some())?;
        }
        match located {
            Some(mut reader) => M::Shape::transcribe_key(&mut reader, encoder),
            None => M::Shape::write(M::initial().borrow(), encoder),
        }
    }
}

mod sealed {
    use super::Reader;

    pub trait Within {
        fn within<'a>(&self, structure: &Reader<'a>) -> Option<Reader<'a>>;
    }
}

/// The location of a member: an offset, or a [`Span`] in mutable structures.
pub trait MemberLocation: sealed::Within {}

impl MemberLocation for u32 {}
impl MemberLocation for Span {}

impl sealed::Within for u32 {
    #[inline]
    fn within<'a>(&self, structure: &Reader<'a>) -> Option<Reader<'a>> {
        (*self != ABSENT).then_some(Reader {
            position: *self as usize,
            ..*structure
        })
    }
}

impl sealed::Within for Span {
    #[inline]
    fn within<'a>(&self, structure: &Reader<'a>) -> Option<Reader<'a>> {
        if self.start == ABSENT {
            return None;
        }
        let position = self.start as usize;
        let origin = match structure.representation {
            Representation::Xcdr1 => position,
            Representation::Xcdr2 => structure.origin,
        };
        let limit_depth = structure.depth + 1;
        Some(Reader {
            bytes: structure.bytes.get(..self.end as usize)?,
            position,
            origin,
            limit_depth,
            ..*structure
        })
    }
}
