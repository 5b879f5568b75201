//! What generated builders share: a sample that grows in a slot.
//!
//! A sample is written front to back. Members whose size is fixed are written
//! with their defaults as soon as their place is known and may be replaced later;
//! members whose size varies are appended once, with their value. So each byte up
//! to the end is written by this sample, padding included, and nothing of an
//! older one shows.

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{AllMembers, Encoder, Writer, check_bound};
use crate::error::CdrError;
use crate::key::{KeyHash, KeyHasher};
use crate::reader::Reader;
use crate::shape::{ByteSequence, LengthCode, Shape};
use crate::topic::Slot;

/// How a member is framed by its structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Not at all: final and appendable structures.
    Bare,
    /// With a header: mutable structures.
    Parameter {
        /// Member id.
        id: u32,
        /// Whether readers must understand it, as they must keys.
        must_understand: bool,
    },
}

/// A sample of a structure with `N` members under construction.
#[derive(Debug)]
pub struct InPlace<S, const N: usize> {
    slot: S,
    representation: Representation,
    extensibility: Extensibility,
    end: usize,
    /// Where the value of each member starts, once it does.
    at: [usize; N],
    /// The first error of a `set`, which cannot report it.
    fault: Option<CdrError>,
}

impl<S: Slot, const N: usize> InPlace<S, N> {
    /// Starts a sample.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    pub fn start(
        slot: S,
        representation: Representation,
        extensibility: Extensibility,
    ) -> Result<Self, CdrError> {
        let at = [0; N];
        let mut sample = Self {
            slot,
            representation,
            extensibility,
            end: 0,
            at,
            fault: None,
        };
        if sample.delimited() {
            sample.writer().primitive(0_u32)?;
            sample.end = 4;
        }
        Ok(sample)
    }

    fn delimited(&self) -> bool {
        self.representation == Representation::Xcdr2 && self.extensibility != Extensibility::Final
    }

    fn writer(&mut self) -> Writer<'_, AllMembers> {
        Writer::resume(self.representation, self.slot.bytes(), self.end, 0)
    }

    /// Alignment of mutable members starts anew with each one in XCDR1.
    fn origin(&self, start: usize) -> usize {
        match (self.representation, self.extensibility) {
            (Representation::Xcdr1, Extensibility::Mutable) => start,
            _ => 0,
        }
    }

    /// Appends member `index`.
    ///
    /// # Errors
    /// [`CdrError::Full`], or what is wrong with the value.
    #[inline]
    pub fn append<T: Shape>(
        &mut self,
        index: usize,
        frame: Frame,
        value: &T::Borrowed,
    ) -> Result<(), CdrError> {
        let mut writer = self.writer();
        let parameter = match frame {
            Frame::Bare => None,
            Frame::Parameter {
                id,
                must_understand,
            } => Some(writer.parameter_begin::<T>(id, must_understand, value)?),
        };
        let start = writer.position();
        T::write(value, &mut writer)?;
        if let Some(parameter) = parameter {
            writer.parameter_end(parameter)?;
        }
        self.end = writer.position();
        self.at[index] = start;
        Ok(())
    }

    /// Replaces member `index`, whose size is fixed.
    #[inline]
    pub fn set<T: Shape>(&mut self, index: usize, value: &T::Borrowed) {
        let start = self.at[index];
        let (representation, origin) = (self.representation, self.origin(start));
        let bytes = self.slot.bytes();
        let mut writer: Writer<'_> = Writer::resume(representation, bytes, start, origin);
        if let Err(error) = T::write(value, &mut writer) {
            self.fault.get_or_insert(error);
        }
    }

    /// Appends member `index`, a sequence of `len` bytes that `fill` writes where
    /// they lie; they are zeroed before when `zero` is set.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::BoundExceeded`].
    pub fn append_bytes<const BOUND: u32>(
        &mut self,
        index: usize,
        frame: Frame,
        len: usize,
        zero: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), CdrError> {
        let code: LengthCode = ByteSequence::<BOUND>::LENGTH_CODE;
        check_bound(len, BOUND, self.end)?;
        let mut writer = self.writer();
        let parameter = match frame {
            Frame::Bare => None,
            Frame::Parameter {
                id,
                must_understand,
            } => Some(writer.parameter_header(code, id, must_understand, len.saturating_add(4))?),
        };
        let start = writer.position();
        writer.length(len)?;
        let bytes = writer.reserve(len)?;
        if zero {
            bytes.fill(0);
        }
        fill(bytes);
        if let Some(parameter) = parameter {
            writer.parameter_end(parameter)?;
        }
        self.end = writer.position();
        self.at[index] = start;
        Ok(())
    }

    /// Writes member `index` to a key hash, from where it stands in the sample.
    ///
    /// # Errors
    /// Only when the memory has been altered.
    pub fn hash<T: Shape>(&mut self, index: usize, hasher: &mut KeyHasher) -> Result<(), CdrError> {
        let start = self.at[index];
        let (representation, origin, end) = (self.representation, self.origin(start), self.end);
        let bytes = self.slot.bytes().get(..end).unwrap_or_default();
        T::transcribe_key(
            &mut Reader::own(bytes, representation, start, origin),
            hasher,
        )
    }

    /// Completes the sample and publishes it.
    ///
    /// # Errors
    /// [`CdrError::Full`], or what the slot finds.
    pub fn publish(mut self, key: KeyHash) -> Result<S::Receipt, S::Error> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        if self.delimited() {
            let length = crate::encode::length_u32(self.end - 4)?;
            self.writer().patch(0, length);
        } else if self.extensibility == Extensibility::Mutable {
            let mut writer = self.writer();
            writer.sentinel()?;
            self.end = writer.position();
        }
        self.slot.finish(self.end, key)
    }
}
