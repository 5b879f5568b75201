//! Values with the layout of memory, read by one copy or borrowed.

use zerocopy::FromBytes;

use super::Reader;
use crate::encode::Members;
use crate::plain::{Plain, as_in_memory, range_of};

impl<'a> Reader<'a> {
    /// The bytes of `count` values after the cursor, and their end.
    #[inline]
    fn plain<T: Plain>(&self, count: usize, depth: u8) -> Option<(&'a [u8], usize)> {
        if !as_in_memory(self.representation, self.order) || self.members != Members::All {
            return None;
        }
        let range = range_of::<T>(count, self.position, self.origin, depth)?;
        let end = range.end;
        Some((self.bytes.get(range)?, end))
    }

    /// Reads this many values, if they have the layout of memory.
    #[inline]
    pub fn read_plain<T: Plain>(&mut self, count: usize) -> Option<Vec<T>> {
        let (bytes, end) = self.plain::<T>(count, self.depth)?;
        self.position = end;
        let values = bytes.chunks_exact(size_of::<T>());
        Some(values.map(load::<T>).collect())
    }

    /// Skips this many values, if they have the layout of memory: they cannot be invalid.
    #[inline]
    pub fn pass_plain<T: Plain>(&mut self, count: usize) -> bool {
        match self.plain::<T>(count, self.depth) {
            Some((_, end)) => {
                self.position = end;
                true
            }
            None => false,
        }
    }

    /// Borrows this many values after the cursor, if they have the layout of memory and an
    /// aligned address.
    #[inline]
    pub(crate) fn lend<T: Plain>(&self, count: usize) -> Option<&'a [T]> {
        let (bytes, _) = self.plain::<T>(count, 0)?;
        <[T]>::ref_from_bytes(bytes).ok()
    }

    /// Borrows the structure whose first member is at this reader.
    #[inline]
    pub fn lend_one<T: Plain>(&self) -> Option<&'a T> {
        let (bytes, _) = self.plain::<T>(1, 0)?;
        T::ref_from_bytes(bytes).ok()
    }
}

/// The value of exactly these bytes.
#[inline]
fn load<T: Plain>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).unwrap_or_else(|_| T::new_zeroed())
}
