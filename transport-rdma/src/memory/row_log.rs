//! A count in a row, and bytes behind it.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64};

use crate::memory::{ROW_ALIGN, Region};

/// A word of a row and the `N` bytes behind it, for many accesses: whether they are inside was
/// checked when it was made. The row stays mapped as long as this lives.
pub(crate) struct RowLog<const N: usize> {
    /// Inside of `row`.
    parts: NonNull<Parts<N>>,
    row: Region,
}

#[repr(C)]
struct Parts<const N: usize> {
    word: AtomicU64,
    bytes: [AtomicU8; N],
}

// SAFETY: as for the region that this has a clone of: it is accessed atomically only.
unsafe impl<const N: usize> Send for RowLog<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for RowLog<N> {}

impl Region {
    /// The word at byte offset `at`, and the bytes behind it. For backends; they may be stored to
    /// only if the region is writable, and otherwise be loaded only without ordering. The bytes
    /// are never accessed as words. Panics if they are not inside, or not aligned.
    pub(crate) fn row_log<const N: usize>(&self, at: usize) -> RowLog<N> {
        let len = size_of::<Parts<N>>();
        assert!(
            at.is_multiple_of(8) && ROW_ALIGN.is_multiple_of(8) && self.contains(at, len),
            "a word and {N} bytes at {at} of {}",
            self.len()
        );
        RowLog {
            parts: NonNull::from(self.word(at)).cast(),
            row: self.clone(),
        }
    }
}

impl<const N: usize> RowLog<N> {
    /// The word.
    #[inline]
    pub(crate) fn word(&self) -> &AtomicU64 {
        &self.parts().word
    }

    /// The bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[AtomicU8; N] {
        &self.parts().bytes
    }

    #[inline]
    fn parts(&self) -> &Parts<N> {
        // SAFETY: `Region::row_log` found all of it in bounds and aligned, and `row` keeps it
        // mapped. It consists of atomics, of which only relaxed loads are made where the mapping is
        // read-only.
        unsafe { self.parts.as_ref() }
    }

    /// The row.
    pub(crate) fn row(&self) -> &Region {
        &self.row
    }
}

impl<const N: usize> fmt::Debug for RowLog<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowLog")
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn it_is_what_the_row_has() {
        let row = Region::heap(256);
        let log = row.row_log::<8>(136);
        log.word().store(7, Ordering::Release);
        log.bytes()[7].store(9, Ordering::Release);
        assert_eq!(row.load(136), 7);
        drop(row);
        assert_eq!(log.bytes()[7].load(Ordering::Relaxed), 9);
        assert_eq!(log.row().load(136), 7);
    }

    #[test]
    #[should_panic(expected = "a word and 8 bytes at 248 of 256")]
    fn it_is_inside_of_the_row() {
        Region::heap(256).row_log::<8>(248);
    }
}
