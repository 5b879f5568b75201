//! Values that lie in the sample as in memory, read or lent as a whole.

use zerocopy::FromBytes;

use super::Reader;
use crate::encode::Members;
use crate::plain::{Plain, as_in_memory, range_of};

impl<'a> Reader<'a> {
    /// The bytes of as many values behind the cursor, and where they end.
    #[inline]
    fn plain<T: Plain>(&self, count: usize, depth: u8) -> Option<(&'a [u8], usize)> {
        if !as_in_memory(self.representation, self.order) || self.members != Members::All {
            return None;
        }
        let range = range_of::<T>(count, self.position, self.origin, depth)?;
        let end = range.end;
        Some((self.bytes.get(range)?, end))
    }

    /// Reads as many values, if they lie here as in memory.
    #[inline]
    pub fn read_plain<T: Plain>(&mut self, count: usize) -> Option<Vec<T>> {
        let (bytes, end) = self.plain::<T>(count, self.depth)?;
        self.position = end;
        let values = bytes.chunks_exact(size_of::<T>());
        Some(values.map(load::<T>).collect())
    }

    /// Passes as many values, if they lie here as in memory: nothing can be wrong with
    /// them.
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

    /// Lends as many values, if they lie here as in memory, at an address that suits
    /// them. The cursor stands before them.
    #[inline]
    pub(crate) fn lend<T: Plain>(&self, count: usize) -> Option<&'a [T]> {
        let (bytes, _) = self.plain::<T>(count, 0)?;
        <[T]>::ref_from_bytes(bytes).ok()
    }

    /// Lends the structure whose members this reader stands before.
    #[inline]
    pub fn lend_one<T: Plain>(&self) -> Option<&'a T> {
        let (bytes, _) = self.plain::<T>(1, 0)?;
        T::ref_from_bytes(bytes).ok()
    }
}

/// A value from exactly its bytes.
#[inline]
fn load<T: Plain>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).unwrap_or_else(|_| T::new_zeroed())
}
