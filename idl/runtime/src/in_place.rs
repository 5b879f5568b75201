//! What generated builders share: a sample that grows in a slot.
//!
//! A sample is written front to back. Members whose size is fixed are written
//! with their defaults as soon as their place is known and may be replaced later;
//! members whose size varies are appended once, with their value. So each byte up
//! to the end is written by this sample, padding included, and nothing of an
//! older one shows.

use std::borrow::Borrow;

use crate::encapsulation::{Extensibility, Representation};
use crate::encode::{AllMembers, Encoder, Parameter, Writer, check_bound, length_u32};
use crate::error::{CdrError, InMember};
use crate::key::{KeyHash, KeyHasher};
use crate::member::{Borrowed, Member, is_parameter};
use crate::reader::Reader;
use crate::shape::{Bytes, Shape as _};
use crate::topic::Slot;

/// A sample of a structure with `N` members under construction.
#[derive(Debug)]
pub struct InPlace<S, const N: usize> {
    slot: S,
    representation: Representation,
    extensibility: Extensibility,
    end: usize,
    /// Where the value of each member starts, once it does.
    at: [u32; N],
    /// The first error of a `set`, which cannot report it. (A builder is moved from stage to
    /// stage: what is rare is elsewhere.)
    fault: Option<Box<CdrError>>,
}

impl<S: Slot, const N: usize> InPlace<S, N> {
    /// Starts a sample.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
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

    #[inline]
    fn delimited(&self) -> bool {
        self.representation == Representation::Xcdr2 && self.extensibility != Extensibility::Final
    }

    #[inline]
    fn writer(&mut self) -> Writer<'_, AllMembers> {
        Writer::resume(self.representation, self.slot.bytes(), self.end, 0)
    }

    /// Alignment of mutable members starts anew with each one in XCDR1.
    #[inline]
    fn origin(&self, start: usize) -> usize {
        match (self.representation, self.extensibility) {
            (Representation::Xcdr1, Extensibility::Mutable) => start,
            _ => 0,
        }
    }

    /// Appends a member.
    ///
    /// # Errors
    /// [`CdrError::Full`], or what is wrong with the value.
    #[inline]
    pub fn append<M: Member>(&mut self, value: &Borrowed<M>) -> Result<(), CdrError> {
        self.append_with::<M>(
            |writer| writer.parameter_begin::<M>(value),
            |writer| M::Shape::write(value, writer),
        )
    }

    /// Appends a member with its default.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    pub fn append_default<M: Member>(&mut self) -> Result<(), CdrError> {
        self.append::<M>(M::initial().borrow())
    }

    /// Appends a sequence of `len` bytes that `fill` writes where they lie; they are
    /// zeroed before when `zero` is set.
    ///
    /// # Errors
    /// [`CdrError::Full`], [`CdrError::BoundExceeded`].
    #[inline]
    pub fn append_bytes<M: Member<Shape: Bytes>>(
        &mut self,
        len: usize,
        zero: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), CdrError> {
        check_bound(len, <M::Shape as Bytes>::BOUND, self.end).in_member(M::PATH)?;
        self.append_with::<M>(
            |writer| writer.parameter_header::<M>(len.saturating_add(4)),
            |writer| {
                writer.length(len)?;
                let bytes = writer.reserve(len)?;
                if zero {
                    bytes.fill(0);
                }
                fill(bytes);
                Ok(())
            },
        )
    }

    /// Appends a member: its header if it has one, then its value.
    #[inline]
    fn append_with<M: Member>(
        &mut self,
        header: impl FnOnce(&mut Writer<'_, AllMembers>) -> Result<Parameter, CdrError>,
        value: impl FnOnce(&mut Writer<'_, AllMembers>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        let mut writer = self.writer();
        let parameter = match is_parameter::<M>() {
            true => Some(header(&mut writer).in_member(M::PATH)?),
            false => None,
        };
        let start = writer.position();
        value(&mut writer).in_member(M::PATH)?;
        if let Some(parameter) = parameter {
            writer.parameter_end(parameter)?;
        }
        self.end = writer.position();
        self.at[M::INDEX] = length_u32(start)?;
        Ok(())
    }

    /// Replaces a member whose size is fixed.
    #[inline]
    pub fn set<M: Member>(&mut self, value: &Borrowed<M>) {
        let start = self.at[M::INDEX] as usize;
        let (representation, origin) = (self.representation, self.origin(start));
        let bytes = self.slot.bytes();
        let mut writer: Writer<'_> = Writer::resume(representation, bytes, start, origin);
        if let Err(error) = M::Shape::write(value, &mut writer) {
            self.fault
                .get_or_insert_with(|| Box::new(error.in_member(M::PATH)));
        }
    }

    /// Writes a member to a key hash, from where it stands in the sample.
    ///
    /// # Errors
    /// Only when the memory has been altered.
    pub fn hash<M: Member>(&mut self, hasher: &mut KeyHasher) -> Result<(), CdrError> {
        let start = self.at[M::INDEX] as usize;
        let (representation, origin, end) = (self.representation, self.origin(start), self.end);
        let bytes = self.slot.bytes().get(..end).unwrap_or_default();
        M::Shape::transcribe_key(
            &mut Reader::own(bytes, representation, start, origin),
            hasher,
        )
    }

    /// Completes the sample and publishes it.
    ///
    /// # Errors
    /// [`CdrError::Full`], or what the slot finds.
    #[inline]
    pub fn publish(mut self, key: KeyHash) -> Result<S::Receipt, S::Error> {
        if let Some(fault) = self.fault {
            return Err((*fault).into());
        }
        if self.delimited() {
            let length = length_u32(self.end - 4)?;
            self.writer().patch(0, length);
        } else if self.extensibility == Extensibility::Mutable {
            let mut writer = self.writer();
            writer.sentinel()?;
            self.end = writer.position();
        }
        self.slot.finish(self.end, key)
    }
}
