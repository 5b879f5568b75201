//! Members of mutable structures: parameter lists in XCDR1, member headers in XCDR2.

use super::Reader;
use crate::encapsulation::Representation;
use crate::encode::{
    EMHEADER_MUST_UNDERSTAND, EXTENDED_MUST_UNDERSTAND, MEMBER_ID_MASK, PID_EXTENDED, PID_IGNORE,
    PID_MASK, PID_MUST_UNDERSTAND, PID_SENTINEL,
};
use crate::error::CdrError;

/// The member of a mutable structure at the cursor.
#[derive(Debug)]
#[must_use]
pub struct ReadParameter<'a> {
    /// Member id.
    pub id: u32,
    must_understand: bool,
    outer: &'a [u8],
    outer_limit_depth: u8,
    outer_origin: usize,
}

/// An open optional member, with its header if it has one.
#[derive(Debug)]
#[must_use]
pub struct Present<'a>(Option<ReadParameter<'a>>);

impl<'a> Reader<'a> {
    /// Opens the next member of a mutable structure, `None` after the last; to be
    /// closed by [`end_parameter`](Self::end_parameter).
    ///
    /// # Errors
    /// [`CdrError::Truncated`].
    pub fn next_parameter(&mut self) -> Result<Option<ReadParameter<'a>>, CdrError> {
        match self.representation {
            Representation::Xcdr1 => self.next_parameter_xcdr1(),
            Representation::Xcdr2 => self.next_parameter_xcdr2(),
        }
    }

    fn next_parameter_xcdr1(&mut self) -> Result<Option<ReadParameter<'a>>, CdrError> {
        loop {
            self.align(4)?;
            let pid = self.primitive::<u16>()?;
            let mut length = usize::from(self.primitive::<u16>()?);
            let mut id = u32::from(pid & PID_MASK);
            let mut must_understand = pid & PID_MUST_UNDERSTAND != 0;
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
                    // The flag of the short header refers to the extended one, which
                    // has a flag of its own for the member.
                    let word = self.primitive::<u32>()?;
                    must_understand = word & EXTENDED_MUST_UNDERSTAND != 0;
                    id = word & MEMBER_ID_MASK;
                    length = self.primitive::<u32>()? as usize;
                }
                _ => {}
            }
            let origin = self.position;
            return self
                .open_parameter(id, must_understand, length, origin)
                .map(Some);
        }
    }

    /// Opens the optional member with this id at the cursor, in a structure that is not
    /// mutable; `None` when it is absent. To be closed by
    /// [`end_optional`](Self::end_optional).
    ///
    /// # Errors
    /// [`CdrError::Truncated`], [`CdrError::UnexpectedMember`].
    pub fn begin_optional(&mut self, expected: u32) -> Result<Option<Present<'a>>, CdrError> {
        if self.representation == Representation::Xcdr2 {
            return Ok(self.primitive::<bool>()?.then_some(Present(None)));
        }
        let place = self.place();
        let parameter = match self.next_parameter_xcdr1()? {
            Some(parameter) if parameter.id == expected => parameter,
            other => {
                let sentinel = u32::from(PID_SENTINEL);
                let id = other.map_or(sentinel, |parameter| parameter.id);
                return Err(CdrError::UnexpectedMember {
                    id,
                    expected,
                    place,
                });
            }
        };
        if self.remaining() == 0 {
            self.end_parameter(parameter);
            return Ok(None);
        }
        Ok(Some(Present(Some(parameter))))
    }

    /// Closes an optional member.
    #[inline]
    pub fn end_optional(&mut self, present: Present<'a>) {
        if let Some(parameter) = present.0 {
            self.end_parameter(parameter);
        }
    }

    fn next_parameter_xcdr2(&mut self) -> Result<Option<ReadParameter<'a>>, CdrError> {
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
            // The length is also the first word of the member.
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
    ) -> Result<ReadParameter<'a>, CdrError> {
        let parameter = ReadParameter {
            id,
            must_understand,
            outer: self.end_after(length)?,
            outer_limit_depth: self.limit_depth,
            outer_origin: self.origin,
        };
        self.limit_depth = self.depth + 1;
        self.origin = origin;
        Ok(parameter)
    }

    /// Skips an unknown member, unless it must be understood.
    ///
    /// # Errors
    /// [`CdrError::MustUnderstand`].
    pub fn unknown(&self, parameter: &ReadParameter<'_>) -> Result<(), CdrError> {
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
    pub fn end_parameter(&mut self, parameter: ReadParameter<'a>) {
        self.leave(parameter.outer);
        self.limit_depth = parameter.outer_limit_depth;
        self.origin = parameter.outer_origin;
    }
}
