//! Into memory, little endian.

use std::marker::PhantomData;

use super::{AllMembers, Encoder, Selection};
use crate::encapsulation::Representation;
use crate::error::{CdrError, Place};
use crate::primitive::Primitive;

/// Puts bytes into memory that it never grows.
#[derive(Debug)]
pub struct Writer<'a, M: Selection = AllMembers> {
    out: &'a mut [u8],
    position: usize,
    origin: usize,
    representation: Representation,
    members: PhantomData<M>,
}

impl<'a, M: Selection> Writer<'a, M> {
    /// Writes from the start of `out`.
    pub fn new(representation: Representation, out: &'a mut [u8]) -> Self {
        Self::resume(representation, out, 0, 0)
    }

    /// Writes on at `position`, aligned as counted from `origin`.
    #[inline]
    pub fn resume(
        representation: Representation,
        out: &'a mut [u8],
        position: usize,
        origin: usize,
    ) -> Self {
        Self {
            out,
            position,
            origin,
            representation,
            members: PhantomData,
        }
    }

    /// The next `count` bytes, counted as written, holding what they held.
    ///
    /// # Errors
    /// [`CdrError::Full`].
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<&mut [u8], CdrError> {
        let start = self.position;
        let capacity = self.out.len();
        let end = start.saturating_add(count);
        match self.out.get_mut(start..end) {
            Some(bytes) => {
                self.position = end;
                Ok(bytes)
            }
            None => Err(CdrError::Full {
                capacity,
                needed: end,
                place: Place::offset(start),
            }),
        }
    }
}

impl<M: Selection> Encoder for Writer<'_, M> {
    type Selection = M;
    const PATCHES: bool = true;

    #[inline]
    fn representation(&self) -> Representation {
        self.representation
    }

    #[inline]
    fn position(&self) -> usize {
        self.position
    }

    #[inline]
    fn origin_mut(&mut self) -> &mut usize {
        &mut self.origin
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.reserve(count)?.fill(0);
        Ok(())
    }

    #[inline]
    fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError> {
        let out = self.reserve(values.len().saturating_mul(P::SIZE))?;
        P::store_all(values, out);
        Ok(())
    }

    #[inline]
    fn patch(&mut self, at: usize, value: u32) {
        if let Some(bytes) = self.out.get_mut(at..at + 4) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
}
