//! An encoder that only counts bytes.

use std::marker::PhantomData;

use super::{AllMembers, Encoder, Members, Selection};
use crate::encapsulation::Representation;
use crate::error::CdrError;
use crate::plain::{Dense, range_of};
use crate::primitive::Primitive;

/// Counts the bytes that a [`Writer`](super::Writer) would write. Saturates.
#[derive(Debug)]
pub struct Counter<M: Selection = AllMembers> {
    position: usize,
    origin: usize,
    depth: u8,
    representation: Representation,
    members: PhantomData<M>,
}

impl<M: Selection> Counter<M> {
    /// Counts from an aligned start.
    pub fn new(representation: Representation) -> Self {
        Self::resume(representation, 0, 0, 0)
    }

    /// Counts from `position`, aligned as counted from `origin`.
    pub(crate) fn resume(
        representation: Representation,
        position: usize,
        origin: usize,
        depth: u8,
    ) -> Self {
        Self {
            position,
            origin,
            depth,
            representation,
            members: PhantomData,
        }
    }
}

impl<M: Selection> Encoder for Counter<M> {
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
    fn depth_mut(&mut self) -> &mut u8 {
        &mut self.depth
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), CdrError> {
        self.zeros(bytes.len())
    }

    #[inline]
    fn zeros(&mut self, count: usize) -> Result<(), CdrError> {
        self.position = self.position.saturating_add(count);
        Ok(())
    }

    #[inline]
    fn primitives<P: Primitive>(&mut self, values: &[P]) -> Result<(), CdrError> {
        self.zeros(values.len().saturating_mul(P::SIZE))
    }

    #[inline]
    fn whole<T: Dense>(&mut self, values: &[T]) -> Result<bool, CdrError> {
        if self.representation != Representation::Xcdr1 || M::MEMBERS != Members::All {
            return Ok(false);
        }
        match range_of::<T>(values.len(), self.position, self.origin, self.depth) {
            Some(range) => {
                self.position = range.end;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn patch<P: Primitive>(&mut self, _at: usize, _value: P) {}

    #[inline]
    fn insert(&mut self, _at: usize, count: usize) -> Result<(), CdrError> {
        self.zeros(count)
    }
}
