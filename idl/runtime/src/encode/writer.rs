//! Encoding to memory, little endian.

use std::marker::PhantomData;

use zerocopy::IntoBytes as _;

use super::{AllMembers, Encoder, Members, Selection};
use crate::encapsulation::{ByteOrder, Representation};
use crate::error::{CdrError, SamplePosition};
use crate::plain::{Dense, as_in_memory, range_of};
use crate::primitive::Primitive;

/// Writes bytes to memory of fixed size.
#[derive(Debug)]
pub struct Writer<'a, M: Selection = AllMembers> {
    out: &'a mut [u8],
    position: usize,
    origin: usize,
    depth: u8,
    representation: Representation,
    members: PhantomData<M>,
}

impl<'a, M: Selection> Writer<'a, M> {
    /// Writes from the start of `out`.
    pub fn new(representation: Representation, out: &'a mut [u8]) -> Self {
        Self {
            depth: 0,
            ..Self::resume(representation, out, 0, 0)
        }
    }

    /// Continues at `position` inside a structure, aligned as counted from `origin`.
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
            depth: 1,
            representation,
            members: PhantomData,
        }
    }

    /// The next `count` bytes with their old contents, counted as written.
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
                place: SamplePosition::offset(start),
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
    fn depth_mut(&mut self) -> &mut u8 {
        &mut self.depth
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
    fn whole<T: Dense>(&mut self, values: &[T]) -> Result<bool, CdrError> {
        if !as_in_memory(self.representation, ByteOrder::Little) || M::MEMBERS != Members::All {
            return Ok(false);
        }
        let (position, origin) = (self.position, self.origin);
        let range = range_of::<T>(values.len(), position, origin, self.depth);
        // Without room for all values, writing one by one finds the one that does not fit.
        match range.filter(|range| range.end <= self.out.len()) {
            Some(range) => {
                self.zeros(range.start - position)?;
                self.bytes(values.as_bytes())?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    #[inline]
    fn patch<P: Primitive>(&mut self, at: usize, value: P) {
        if let Some(bytes) = self.out.get_mut(at..at + P::SIZE) {
            value.store(ByteOrder::Little, bytes);
        }
    }

    fn insert(&mut self, at: usize, count: usize) -> Result<(), CdrError> {
        let end = self.position;
        self.reserve(count)?;
        if at <= end {
            self.out.copy_within(at..end, at + count);
        }
        Ok(())
    }
}
