//! Collections inside a view. They own nothing and copy only on request.

use std::fmt;
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable};

use crate::encapsulation::ByteOrder;
use crate::plain::Plain;
use crate::primitive::Primitive;
use crate::reader::Reader;
use crate::shape::Shape;

/// A sequence or array of primitives in place, in either byte order.
#[derive(Clone, Copy)]
pub struct SeqView<'a, P> {
    bytes: &'a [u8],
    len: usize,
    order: ByteOrder,
    element: PhantomData<P>,
}

impl<'a, P: Primitive> SeqView<'a, P> {
    pub(crate) fn new(bytes: &'a [u8], len: usize, order: ByteOrder) -> Self {
        Self {
            bytes,
            len,
            order,
            element: PhantomData,
        }
    }

    /// This many zeros.
    pub(crate) fn empty(len: usize) -> Self {
        Self::new(&[], len, ByteOrder::Little)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Element `index`, `None` beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<P> {
        (index < self.len).then(|| {
            let start = index * P::SIZE;
            let bytes = self.bytes.get(start..start + P::SIZE);
            bytes.map_or_else(P::default, |bytes| P::load(self.order, bytes))
        })
    }

    /// The elements, by value.
    pub fn iter(&self) -> SeqIter<'a, P> {
        SeqIter {
            elements: *self,
            next: 0,
        }
    }

    /// Copies the elements to the front of `out`, as many as both have.
    pub fn copy_to(&self, out: &mut [P]) {
        let count = self.len.min(out.len());
        let (filled, rest) = match out.get_mut(..count) {
            Some(out) => out.split_at_mut((self.bytes.len() / P::SIZE).min(count)),
            None => return,
        };
        let bytes = self.bytes.get(..filled.len() * P::SIZE);
        P::load_all(self.order, bytes.unwrap_or_default(), filled);
        rest.fill(P::default());
    }

    /// The elements in a vector.
    pub fn to_vec(&self) -> Vec<P> {
        let elements = self.bytes.chunks_exact(P::SIZE);
        let mut elements: Vec<P> = match self.order {
            ByteOrder::Little => elements
                .map(|one| P::load(ByteOrder::Little, one))
                .collect(),
            ByteOrder::Big => elements.map(|one| P::load(ByteOrder::Big, one)).collect(),
        };
        elements.resize(self.len, P::default());
        elements
    }
}

impl<'a, P: Primitive + FromBytes + Immutable> SeqView<'a, P> {
    /// The elements as a slice, if they have the layout of memory: in a little endian sample,
    /// at an aligned address, and of a type for which any bytes are a value.
    pub fn as_slice(&self) -> Option<&'a [P]> {
        if self.len == 0 {
            return Some(&[]);
        }
        let native = cfg!(target_endian = "little") && self.order == ByteOrder::Little;
        if !native && P::SIZE > 1 {
            return None;
        }
        let elements = <[P]>::ref_from_bytes(self.bytes).ok()?;
        (elements.len() == self.len).then_some(elements)
    }
}

impl<P: Primitive> fmt::Debug for SeqView<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<P: Primitive> PartialEq<[P]> for SeqView<'_, P> {
    fn eq(&self, other: &[P]) -> bool {
        self.len == other.len() && self.iter().zip(other).all(|(a, b)| a == *b)
    }
}

impl<'a, P: Primitive> IntoIterator for SeqView<'a, P> {
    type Item = P;
    type IntoIter = SeqIter<'a, P>;

    fn into_iter(self) -> SeqIter<'a, P> {
        self.iter()
    }
}

/// Iterates over a [`SeqView`].
#[derive(Debug, Clone)]
pub struct SeqIter<'a, P: Primitive> {
    elements: SeqView<'a, P>,
    next: usize,
}

impl<P: Primitive> Iterator for SeqIter<'_, P> {
    type Item = P;

    #[inline]
    fn next(&mut self) -> Option<P> {
        let element = self.elements.get(self.next)?;
        self.next += 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.elements.len - self.next;
        (left, Some(left))
    }
}

impl<P: Primitive> ExactSizeIterator for SeqIter<'_, P> {}

/// A sequence or array of other elements in place. Elements differ in size, so they are
/// visited in order.
pub struct ListView<'a, T> {
    reader: Reader<'a>,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for ListView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ListView<'_, T> {}

impl<'a, T: Shape> ListView<'a, T> {
    pub(crate) fn new(reader: Reader<'a>, len: usize) -> Self {
        Self {
            reader,
            len,
            element: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements in order.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter {
            reader: self.reader,
            left: self.len,
            element: PhantomData,
        }
    }
}

impl<'a, T: Shape + Plain> ListView<'a, T> {
    /// The elements as a slice, if they have the layout of memory: in a little endian sample
    /// in XCDR1, at an aligned address. The writer of the sample is trusted not to alter
    /// it.
    pub fn as_slice(&self) -> Option<&'a [T]> {
        match self.len {
            0 => Some(&[]),
            len => self.reader.lend::<T>(len),
        }
    }
}

impl<'a, T: Shape> fmt::Debug for ListView<'a, T>
where
    T::Shown<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Shape> IntoIterator for ListView<'a, T> {
    type Item = T::Shown<'a>;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// Iterates over a [`ListView`].
pub struct ListIter<'a, T> {
    reader: Reader<'a>,
    left: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for ListIter<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> fmt::Debug for ListIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListIter")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Shape> Iterator for ListIter<'a, T> {
    type Item = T::Shown<'a>;

    fn next(&mut self) -> Option<T::Shown<'a>> {
        self.left = self.left.checked_sub(1)?;
        if self.reader.is_empty() {
            Some(T::absent())
        } else {
            Some(T::show(&mut self.reader))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Shape> ExactSizeIterator for ListIter<'_, T> {}
