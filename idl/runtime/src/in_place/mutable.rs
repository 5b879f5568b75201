//! Members with a header, which may contain the length of the value: members of mutable
//! structures, each at most once and in any order, and optional members.

use super::room::offset;
use super::{InPlace, Room, Site};
use crate::encapsulation::Representation;
use crate::encode::{Encoder as _, OpenParameter, length_u32};
use crate::error::{CdrError, InMember, SamplePosition};
use crate::member::{Member, is_parameter};
use crate::shape::Shape as _;

/// A member whose value is being written.
pub(super) struct OpenMember {
    /// Offset of the value.
    pub(super) site: Site,
    /// Its header, if it has one.
    parameter: Option<OpenParameter>,
}

impl<R: Room, const N: usize> InPlace<R, N> {
    /// Whether a member of a mutable structure has been written. (Its offset is never 0:
    /// its header precedes it.)
    #[inline]
    pub(super) fn has<M: Member>(&self) -> bool {
        self.at[M::INDEX] != 0
    }

    #[inline]
    pub(super) fn only_once<M: Member>(&self) -> Result<(), CdrError> {
        if is_parameter::<M>() && self.has::<M>() {
            let place = SamplePosition::offset(self.end as usize);
            return Err(CdrError::RepeatedMember { place }.in_member(M::PATH));
        }
        Ok(())
    }

    /// Checks that a member of a mutable structure has been written.
    ///
    /// # Errors
    /// [`CdrError::MissingMember`], or the error of setting it.
    #[inline]
    pub fn require<M: Member>(&mut self) -> Result<(), CdrError> {
        if self.has::<M>() {
            return Ok(());
        }
        self.fault().report()?;
        let place = SamplePosition::offset(self.end as usize);
        Err(CdrError::MissingMember { place }.in_member(M::PATH))
    }

    /// Writes a member of a mutable structure with its default, unless it has been
    /// written.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    pub fn supply<M: Member>(&mut self) -> Result<(), CdrError> {
        match self.has::<M>() {
            true => Ok(()),
            false => self.append_default::<M>(),
        }
    }

    /// Writes the bytes before the value of a member: a header in mutable structures, the
    /// mark of presence of an optional member in others.
    #[inline]
    pub(super) fn open<M: Member>(&mut self) -> Result<OpenMember, CdrError> {
        self.only_once::<M>()?;
        let xcdr1 = self.site.representation() == Representation::Xcdr1;
        let mut writer = self.writer();
        let mut parameter = None;
        if is_parameter::<M>() || (M::Shape::OPTIONAL && xcdr1) {
            parameter = Some(writer.parameter_open::<M>().in_member(M::PATH)?);
        } else if M::Shape::OPTIONAL {
            writer.primitive(true).in_member(M::PATH)?;
        }
        let (position, origin) = (offset(writer.position()), offset(*writer.origin_mut()));
        let site = Site {
            position,
            origin,
            ..self.site
        };
        Ok(OpenMember { site, parameter })
    }

    /// Completes a member whose value ends at `end`, and writes its length if the header has
    /// one. In XCDR1, a value of more than 65,535 bytes is moved to make room for a longer
    /// header.
    #[inline]
    pub(super) fn shut<M: Member>(&mut self, open: OpenMember, end: usize) -> Result<(), CdrError> {
        let mut start = open.site.position;
        self.end = length_u32(end)?;
        if let Some(parameter) = open.parameter {
            let mut writer = self.writer();
            writer.parameter_close::<M>(parameter).in_member(M::PATH)?;
            let closed = length_u32(writer.position())?;
            start += closed - self.end;
            self.end = closed;
        }
        self.at[M::INDEX] = start;
        Ok(())
    }
}
