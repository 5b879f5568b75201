//! A word of a row that is read again and again.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

use crate::memory::{Region, load_acquire};

/// A word of a row, for many loads: whether it is inside was checked when it was made. The row stays
/// mapped as long as this lives.
pub struct RowWord {
    /// Inside of `row`.
    word: NonNull<AtomicU64>,
    row: Region,
}

// SAFETY: as for the region that this has a clone of: only atomic loads are made through it.
unsafe impl Send for RowWord {}
// SAFETY: as above.
unsafe impl Sync for RowWord {}

impl Region {
    /// The word at byte offset `at`. Panics like [`load`](Self::load).
    pub fn row_word(&self, at: usize) -> RowWord {
        RowWord {
            word: NonNull::from(self.word(at)),
            row: self.clone(),
        }
    }
}

impl RowWord {
    /// Loads it, as [`Region::load`] does.
    #[inline]
    pub fn load(&self) -> u64 {
        // SAFETY: `Region::word` found it in bounds and aligned, and `row` keeps it mapped. On a
        // read-only mapping only relaxed loads are made (`load_acquire` loads relaxed).
        load_acquire(unsafe { self.word.as_ref() })
    }
}

impl fmt::Debug for RowWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWord")
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_the_row_has_and_keeps_it() {
        let row = Region::heap(256);
        let word = row.read_only().row_word(136);
        assert_eq!(word.load(), 0);
        row.store(136, 7);
        assert_eq!(word.load(), 7);
        drop(row);
        assert_eq!(word.load(), 7);
    }

    #[test]
    #[should_panic(expected = "word 256 of 256")]
    fn it_is_inside_of_the_row() {
        Region::heap(256).row_word(256);
    }
}
