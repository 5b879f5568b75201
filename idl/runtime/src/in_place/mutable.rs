//! Members of mutable structures: each at most once, in any order, with a header
//! whose length may be known only behind the value.

use super::{InPlace, Room, Site};
use crate::encapsulation::Representation;
use crate::encode::{Encoder as _, extended_header, length_u32};
use crate::error::{CdrError, InMember, Place};
use crate::member::{Member, is_parameter};
use crate::shape::{LengthCode, Shape as _};

/// Bytes by which the extended parameter header of XCDR1 is longer.
const EXTENSION: usize = 8;

/// A member whose value is being written: where that starts.
pub(super) struct OpenMember {
    pub(super) site: Site,
    header: usize,
}

impl<R: Room, const N: usize> InPlace<R, N> {
    /// Whether a member of a mutable structure has been written. (Its value never
    /// starts at 0: its header stands before.)
    #[inline]
    pub(super) fn has<M: Member>(&self) -> bool {
        self.at[M::INDEX] != 0
    }

    #[inline]
    pub(super) fn only_once<M: Member>(&self) -> Result<(), CdrError> {
        if is_parameter::<M>() && self.has::<M>() {
            let place = Place::offset(self.end);
            return Err(CdrError::RepeatedMember { place }.in_member(M::PATH));
        }
        Ok(())
    }

    /// Finds that a member of a mutable structure has been written.
    ///
    /// # Errors
    /// [`CdrError::MissingMember`], or why setting it has failed.
    #[inline]
    pub fn require<M: Member>(&mut self) -> Result<(), CdrError> {
        if self.has::<M>() {
            return Ok(());
        }
        self.fault().report()?;
        let place = Place::offset(self.end);
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

    /// Writes the header of a member, if it has one, with room for its length.
    pub(super) fn open<M: Member>(&mut self) -> Result<OpenMember, CdrError> {
        self.only_once::<M>()?;
        let mut writer = self.writer();
        let mut header = writer.position();
        if is_parameter::<M>() {
            writer.align(4)?;
            header = writer.position();
            // Its effect on alignment is `origin`'s.
            let _ = writer.parameter_header::<M>(0).in_member(M::PATH)?;
        }
        let position = writer.position();
        let site = Site {
            representation: self.site.representation,
            position,
            origin: self.origin(position),
        };
        Ok(OpenMember { site, header })
    }

    /// Counts a member in whose value ends at `end`, and writes its length.
    pub(super) fn shut<M: Member>(
        &mut self,
        open: &OpenMember,
        end: usize,
    ) -> Result<(), CdrError> {
        let start = open.site.position;
        (self.at[M::INDEX], self.end) = (length_u32(start)?, end);
        if !is_parameter::<M>() {
            return Ok(());
        }
        let length = end - start;
        match self.site.representation {
            Representation::Xcdr2 => {
                if M::Shape::LENGTH_CODE == LengthCode::Next {
                    let length = length_u32(length)?;
                    self.writer().patch(start - 4, length);
                }
                Ok(())
            }
            Representation::Xcdr1 if start - open.header > EXTENSION => {
                let length = length_u32(length)?;
                self.writer().patch(start - 4, length);
                Ok(())
            }
            Representation::Xcdr1 => match u16::try_from(length) {
                Ok(length) => {
                    let bytes = self.bytes().get_mut(start - 2..start);
                    if let Some(bytes) = bytes {
                        bytes.copy_from_slice(&length.to_le_bytes());
                    }
                    Ok(())
                }
                Err(_) => self.extend_header::<M>(open),
            },
        }
    }

    /// Makes room for the extended header before a value that has turned out to be
    /// longer than the short one can say: the one case in which a value is moved.
    /// Alignment inside it counts from its own start, so it is the same elsewhere.
    #[cold]
    fn extend_header<M: Member>(&mut self, open: &OpenMember) -> Result<(), CdrError> {
        let (start, end) = (open.site.position, self.end);
        let length = length_u32(end - start)?;
        let mut writer = self.writer();
        writer.zeros(EXTENSION).in_member(M::PATH)?;
        let (pid, id) = extended_header::<M>();
        let bytes = self.bytes();
        bytes.copy_within(start..end, start + EXTENSION);
        self.end = open.header;
        let mut writer = self.writer();
        writer.primitives(&pid)?;
        writer.primitives(&[id, length])?;
        let start = writer.position();
        self.end = end + EXTENSION;
        self.at[M::INDEX] = length_u32(start)?;
        Ok(())
    }
}
