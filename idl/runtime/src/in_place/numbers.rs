//! A sequence of primitives that the application fills in place.

use std::fmt;
use std::marker::PhantomData;

use zerocopy::{FromBytes, IntoBytes};

use crate::encapsulation::ByteOrder;
use crate::primitive::Primitive;

/// The requested number of primitives, initially zero.
pub struct SeqMut<'p, P> {
    bytes: &'p mut [u8],
    element: PhantomData<P>,
}

impl<'p, P: Primitive> SeqMut<'p, P> {
    /// Over the bytes of whole elements, which it zeroes.
    pub(super) fn zeroed(bytes: &'p mut [u8]) -> Self {
        bytes.fill(0);
        Self {
            bytes,
            element: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / P::SIZE
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `index`, `None` beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<P> {
        let start = index.checked_mul(P::SIZE)?;
        let bytes = self.bytes.get(start..)?.get(..P::SIZE)?;
        Some(P::load(ByteOrder::Little, bytes))
    }

    /// Replaces element `index`; returns whether it exists.
    #[inline]
    pub fn set(&mut self, index: usize, value: P) -> bool {
        let bytes = index
            .checked_mul(P::SIZE)
            .and_then(|start| self.bytes.get_mut(start..))
            .and_then(|bytes| bytes.get_mut(..P::SIZE));
        match bytes {
            Some(bytes) => {
                value.store(ByteOrder::Little, bytes);
                true
            }
            None => false,
        }
    }

    /// Replaces all elements.
    pub fn fill(&mut self, value: P) {
        self.fill_with(|_| value);
    }

    /// Replaces each element by `element` of its index.
    #[inline]
    pub fn fill_with(&mut self, element: impl FnMut(usize) -> P) {
        fill_with(self.bytes, element);
    }

    /// Replaces elements from the first on, as many as both have.
    #[inline]
    pub fn copy_from(&mut self, values: &[P]) {
        let count = self.len().min(values.len());
        if let Some(bytes) = self.bytes.get_mut(..count * P::SIZE) {
            P::store_all(values.get(..count).unwrap_or_default(), bytes);
        }
    }
}

impl<P: Primitive + FromBytes + IntoBytes> SeqMut<'_, P> {
    /// The elements as a slice, if their address is aligned: always in ring memory, for
    /// elements that XCDR aligns to their size.
    pub fn as_mut_slice(&mut self) -> Option<&mut [P]> {
        match cfg!(target_endian = "little") {
            true => <[P]>::mut_from_bytes(self.bytes).ok(),
            false => None,
        }
    }
}

/// Writes elements without gaps, each computed from its index.
#[inline]
pub(super) fn fill_with<P: Primitive>(bytes: &mut [u8], mut element: impl FnMut(usize) -> P) {
    for (index, bytes) in bytes.chunks_exact_mut(P::SIZE).enumerate() {
        element(index).store(ByteOrder::Little, bytes);
    }
}

impl<P: Primitive> fmt::Debug for SeqMut<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = (0..self.len()).filter_map(|index| self.get(index));
        f.debug_list().entries(elements).finish()
    }
}
