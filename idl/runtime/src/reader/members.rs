//! Members of structures: read in passing, or found again where a check saw them.

use std::borrow::Borrow;

use super::Reader;
use crate::encapsulation::Representation;
use crate::encode::Encoder;
use crate::error::{CdrError, InMember};
use crate::member::{Member, Owned, Shown, is_flagged};
use crate::shape::Shape as _;

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
    /// Reads a member of a final or appendable structure, or its default.
    ///
    /// # Errors
    /// What is wrong with the bytes.
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

    /// Reads the value of a member that is there.
    ///
    /// # Errors
    /// What is wrong with the bytes.
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

    /// Reads with a cursor of its own, that this one may live in registers even where the
    /// other cannot, and goes where that has gone.
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

    /// Checks a member of a final or appendable structure and says where it is: if it
    /// is optional, where it says so.
    ///
    /// # Errors
    /// What is wrong with the bytes.
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

    /// Checks the open member of a mutable structure and says where it is.
    ///
    /// # Errors
    /// What is wrong with the bytes.
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

    /// Checks the value of a member; `false` says that its default takes its place.
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

    /// A reader at the value of a member of the structure that this reader stands in.
    #[inline]
    fn locate<M: Member>(&self, at: &[impl Location]) -> Option<Self> {
        let mut reader = at.get(M::INDEX)?.within(self)?;
        if is_flagged::<M>() {
            let _present = reader.begin_optional(M::ID).ok()??;
        }
        Some(reader)
    }

    /// Shows a member of the structure that this reader stands in, `at` being where
    /// its members are.
    #[inline]
    pub fn show<M: Member>(&self, at: &[impl Location]) -> Shown<'a, M> {
        self.locate::<M>(at)
            .map_or_else(M::absent, M::Shape::show_at)
    }

    /// Reads a member of the structure that this reader stands in.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn to_owned<M: Member>(&self, at: &[impl Location]) -> Result<Owned<M>, CdrError> {
        match self.locate::<M>(at) {
            Some(mut reader) => reader.value::<M>(),
            None => Ok(M::initial()),
        }
    }

    /// Writes a member of the structure that this reader stands in to a key hash.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn transcribe_key<M: Member, E: Encoder>(
        &self,
        at: &[impl Location],
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

/// Where a member lies: an offset, or a [`Span`] in mutable structures.
pub trait Location: sealed::Within {}

impl Location for u32 {}
impl Location for Span {}

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
