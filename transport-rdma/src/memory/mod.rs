//! Row memory: the only module of this crate that turns addresses into accesses.
//!
//! A [`Region`] is one member's row as this process sees it: the row itself (mapped writable
//! by its owner), a read-only mapping of a peer's row, or a local copy that a backend writes
//! on the peer's behalf. Other threads and processes write to it while it is read, so:
//!
//! - Words (counters, guards, flags, headers) are only ever accessed as atomic 64-bit words.
//!   A word is never torn, and a load returns some value that was stored.
//! - Everything wider is data that a word vouches for. It is read only after an acquire load
//!   of that word, and the protocol forbids its owner to change it before the reader has
//!   released it. Only the caller knows that this holds; so [`Region::bytes`] is unsafe, and
//!   so is any use of the pointers of [`Region::begin`] and [`Region::place`].
//!
//! An [`Arena`] has private memory beside the rows, for what a process notes about them.
//!
//! What other processes write is outside of this program's memory model. To this program the
//! memory is as if shared with additional threads that only ever make the accesses above.

mod arena;
pub(crate) mod mapping;
mod resident;
mod row_word;

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;

pub use arena::{Arena, Zeroable, ZeroedSlice};
pub use resident::ResidentPages;
pub use row_word::RowWord;

/// Alignment of every row and of every column block in it: two cache lines, because x86-64
/// prefetches lines in pairs.
pub const ROW_ALIGN: usize = 128;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Most lines that are prefetched for writing: a processor tracks few outstanding misses.
const EXPECTED_LINES: usize = 4;

/// Defines a function that prefetches the cache line of a byte, by the given instruction of
/// x86-64 or of aarch64; elsewhere it does nothing.
macro_rules! hint {
    ($(#[$about:meta])* $visible:vis fn $name:ident: $x86_64:literal, $aarch64:literal) => {
        $(#[$about])*
        #[inline]
        $visible fn $name(byte: *const u8) {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a prefetch changes neither memory nor registers, and does not fault at
            // any address. (All 64-bit processors since 2006 accept `prefetchw`, if only as
            // a no-op.)
            unsafe {
                core::arch::asm!(
                    concat!($x86_64, " [{}]"), in(reg) byte,
                    options(nostack, preserves_flags, readonly)
                );
            }
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            // SAFETY: as above; a prefetch of the base instruction set.
            unsafe {
                core::arch::asm!(
                    concat!($aarch64, ", [{}]"), in(reg) byte,
                    options(nostack, preserves_flags, readonly)
                );
            }
            #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            let _ = byte;
        }
    };
}

hint! {
    /// Prefetches a cache line for writing. (The standard library's prefetch would fetch it
    /// for reading only, unless it is compiled for newer processors alone.)
    fn prefetch_write: "prefetchw", "prfm pstl1keep"
}

hint! {
    /// Prefetches a cache line for reading.
    fn prefetch_read: "prefetcht0", "prfm pldl1keep"
}

/// Prefetches bytes that are about to be read: the first and the last cache line. The
/// hardware prefetcher finds the lines between them once reading begins. Only a hint: nothing
/// is read, so the bytes may be anywhere.
#[inline]
pub fn expect_read(bytes: NonNull<u8>, len: usize) {
    let first = bytes.as_ptr().cast_const();
    prefetch_read(first);
    prefetch_read(first.wrapping_add(len.saturating_sub(1)));
}

/// Loads a word with acquire ordering, also from memory that is mapped read-only, for which
/// the rules of `core::sync::atomic` allow only relaxed loads. (No additional instruction on
/// x86-64, whose loads are ordered.)
#[inline]
pub(crate) fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// One row as this process sees it. Cheap to clone; the memory stays mapped until the last
/// clone is gone.
#[derive(Clone)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
    keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory behind `base` is shared by design. Safe methods make only atomic
// accesses to it, and `keep`, which is Send + Sync, keeps it mapped.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// A region over memory that `keep` owns.
    ///
    /// # Safety
    /// `base` is aligned to [`ROW_ALIGN`]. The `len` bytes from it are in one allocation (so
    /// at most `isize::MAX`), initialized, and stay readable (and writable if `writable`) as
    /// long as `keep` lives. `len` is a multiple of 8. No code of this process accesses them
    /// non-atomically, except through [`Region::bytes`] and the pointers of
    /// [`Region::begin`] and [`Region::place`], or atomically in another size.
    pub unsafe fn from_raw(
        base: NonNull<u8>,
        len: usize,
        writable: bool,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        assert!(base.addr().get().is_multiple_of(ROW_ALIGN) && len.is_multiple_of(8));
        Self {
            base,
            len,
            writable,
            keep,
        }
    }

    /// A zeroed region of private memory; `len` is rounded up to [`ROW_ALIGN`].
    pub fn heap(len: usize) -> Self {
        let len = Self::heap_len(len);
        let heap = Heap::new(len);
        let base = heap.base;
        // SAFETY: the base is aligned and followed by `len` zeroed bytes, which are freed
        // only when `heap`, owned by `keep`, is dropped.
        unsafe { Self::from_raw(base, len, true, Arc::new(heap)) }
    }

    /// The same memory, read-only through this handle. For backends.
    pub fn read_only(&self) -> Self {
        Self {
            writable: false,
            ..self.clone()
        }
    }

    /// The `len` bytes from `at`; `None` if they are not inside, or not aligned as rows are.
    pub fn window(&self, at: usize, len: usize) -> Option<Self> {
        let aligned = at.is_multiple_of(ROW_ALIGN) && len.is_multiple_of(8);
        if !aligned || !self.contains(at, len) {
            return None;
        }
        Some(Self {
            // SAFETY: inside of the region, as just checked.
            base: unsafe { self.base.add(at) },
            len,
            ..self.clone()
        })
    }

    /// The length that [`Region::heap`] gives for a requested one.
    pub(crate) const fn heap_len(len: usize) -> usize {
        if len == 0 {
            ROW_ALIGN
        } else {
            len.next_multiple_of(ROW_ALIGN)
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this process may write to it: true only for its own row.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether `len` bytes at `at` lie inside.
    #[inline]
    pub fn contains(&self, at: usize, len: usize) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Address of the first byte; for tests that show where a sample is.
    pub fn address(&self) -> usize {
        self.base.addr().get()
    }

    /// The word at byte offset `at`. For backends; it may be stored to only if the region is
    /// writable.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && self.contains(at, 8),
            "word {at} of {}",
            self.len
        );
        // SAFETY: in bounds by the assertion above.
        let word = unsafe { self.base.add(at) };
        // SAFETY: aligned to 8 (the base is aligned to 128, `at` to 8), mapped as long as
        // `self` lives, and words are only accessed atomically. On a read-only mapping only
        // relaxed loads are made (`store` asserts that it is writable; `load_acquire` loads
        // relaxed).
        unsafe { AtomicU64::from_ptr(word.cast().as_ptr()) }
    }

    /// The word at byte offset `at`, and the `N` bytes behind it. For backends; they may be stored
    /// to only if the region is writable. These bytes are never accessed as words.
    #[inline]
    pub(crate) fn word_and_bytes<const N: usize>(&self, at: usize) -> (&AtomicU64, &[AtomicU8; N]) {
        assert!(
            at.is_multiple_of(8) && self.contains(at, 8 + N),
            "a word and {N} bytes at {at} of {}",
            self.len
        );
        // SAFETY: in bounds by the assertion above.
        let bytes = unsafe { self.base.add(at + 8) };
        // SAFETY: mapped as long as `self` lives, and accessed atomically only, without write
        // permission by relaxed loads. An `AtomicU8` has the layout of a byte.
        let bytes = unsafe { bytes.cast::<[AtomicU8; N]>().as_ref() };
        (self.word(at), bytes)
    }

    /// The low half of a word, as an address for the kernel to wait on. This process reads
    /// and writes it only as part of the whole word.
    pub(crate) fn futex(&self, at: usize) -> &AtomicU32 {
        let word = core::ptr::from_ref(self.word(at)).cast_mut().cast();
        // SAFETY: the first half of a live word (both targets are little-endian), and never
        // accessed through this reference.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// The high half of a word, likewise.
    pub(crate) fn futex_high(&self, at: usize) -> &AtomicU32 {
        let word: *mut u32 = core::ptr::from_ref(self.word(at)).cast_mut().cast();
        // SAFETY: the second half of a live word of eight bytes, and never accessed through
        // this reference.
        unsafe { AtomicU32::from_ptr(word.wrapping_add(1)) }
    }

    /// All words, for backends that write a copy on a peer's behalf. They may be stored to
    /// only if the region is writable.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: aligned, in one allocation, a multiple of 8 long, mapped as long as `self`
        // lives. Words are only accessed atomically, and without write permission only by
        // relaxed loads.
        unsafe { core::slice::from_raw_parts(self.base.cast().as_ptr(), self.len / 8) }
    }

    /// Loads the word at byte offset `at` with acquire ordering: all that its owner stored
    /// before this value is visible afterwards. Pairs with
    /// [`Fabric::store`](crate::Fabric::store). Panics if `at` is unaligned or outside;
    /// offsets come from a layout, never from a peer.
    #[inline]
    pub fn load(&self, at: usize) -> u64 {
        load_acquire(self.word(at))
    }

    /// Stores a word of the own row with release ordering. For backends; the rest of the
    /// product uses [`Fabric::store`](crate::Fabric::store).
    #[inline]
    pub fn store(&self, at: usize, value: u64) {
        assert!(self.writable, "a peer's row is read-only");
        self.word(at).store(value, Ordering::Release);
    }

    /// Stores consecutive words of the own row from `at`, each with release ordering.
    #[inline(always)]
    pub(crate) fn store_words<const N: usize>(&self, at: usize, values: &[u64; N]) {
        assert!(self.writable, "a peer's row is read-only");
        assert!(at.is_multiple_of(8));
        let words = &self.words()[at / 8..][..N];
        for (word, value) in words.iter().zip(values) {
            word.store(*value, Ordering::Release);
        }
    }

    /// Consecutive words from `at`, for reading them more than once. Panics like
    /// [`load`](Self::load).
    #[inline]
    pub fn words_at<const N: usize>(&self, at: usize) -> Words<'_, N> {
        assert!(
            at.is_multiple_of(8) && self.contains(at, N * 8),
            "{N} words at {at} of {}",
            self.len
        );
        // SAFETY: in bounds by the assertion above.
        let words = unsafe { self.base.add(at) };
        // SAFETY: aligned to 8, mapped as long as `self` lives, and words are only accessed
        // atomically; through `Words` only relaxed loads are made.
        Words(unsafe { words.cast().as_ref() })
    }

    /// Consecutive groups of `N` words from `at`; bounds are checked once for all. Panics
    /// like [`load`](Self::load).
    #[inline]
    pub fn word_groups<const N: usize>(
        &self,
        at: usize,
        groups: usize,
    ) -> impl Iterator<Item = Words<'_, N>> {
        assert!(at.is_multiple_of(8));
        let words = &self.words()[at / 8..][..groups * N];
        words.as_chunks().0.iter().map(Words)
    }

    /// Copies `N` words from `at`, as [`copy_out`](Self::copy_out) does bytes.
    #[inline]
    pub fn copy_words<const N: usize>(&self, at: usize) -> [u64; N] {
        self.words_at(at).copy()
    }

    /// Copies `into.len()` bytes from `at`, word by word, each read atomically. The copy is
    /// consistent only if a word vouches for the bytes; otherwise it is a mixture of old and
    /// new words, but never undefined behaviour. `at` and the length are multiples of 8.
    /// Panics if outside.
    pub fn copy_out(&self, at: usize, into: &mut [u8]) {
        assert!(at.is_multiple_of(8) && into.len().is_multiple_of(8));
        let words = &self.words()[at / 8..(at + into.len()) / 8];
        for (word, into) in words.iter().zip(into.as_chunks_mut().0) {
            *into = word.load(Ordering::Relaxed).to_le_bytes();
        }
        // Orders the loads above before a check that follows.
        fence(Ordering::Acquire);
    }

    /// Writes `bytes` at `at` into a copy, word by word, on its owner's behalf. A reader that
    /// sees one of these words sees all that was written before the call. `at` and the
    /// length are multiples of 8. Panics if outside. For backends.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) {
        assert!(self.writable && at.is_multiple_of(8) && bytes.len().is_multiple_of(8));
        let words = &self.words()[at / 8..(at + bytes.len()) / 8];
        // Release: pairs with the acquire loads of `load`.
        fence(Ordering::Release);
        for (word, bytes) in words.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// The bytes `at..at + len`.
    ///
    /// # Safety
    /// In bounds, vouched for by a word that was loaded before, and not changed by their
    /// owner while the reference lives (a peer keeps this promise by the protocol: it waits
    /// for `released`).
    #[inline]
    pub unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        assert!(self.contains(at, len), "{at}+{len} of {}", self.len);
        // SAFETY: in bounds by the assertion above.
        let base = unsafe { self.base.add(at) };
        // SAFETY: mapped as long as `self` lives; unchanged by the contract.
        unsafe { core::slice::from_raw_parts(base.as_ptr(), len) }
    }

    /// Pointer to the bytes `at..at + len`, for reading parts of them under the conditions of
    /// [`bytes`](Self::bytes), while a clone of the region lives. Panics if outside.
    #[inline]
    pub fn begin(&self, at: usize, len: usize) -> NonNull<u8> {
        assert!(self.contains(at, len), "{at}+{len} of {}", self.len);
        // SAFETY: in bounds by the assertion above.
        unsafe { self.base.add(at) }
    }

    /// Pointer to bytes of the own row that only the caller may access meanwhile, for writing
    /// them: those of a claimed extent that is not committed yet.
    pub fn place(&self, at: usize, len: usize) -> NonNull<u8> {
        assert!(self.writable, "a peer's row is read-only");
        self.begin(at, len)
    }

    /// Prefetches the first cache lines of `at..at + len` for writing, which the readers have
    /// in their caches. Otherwise the next locked instruction would wait for the stores to
    /// get them. Only a hint.
    #[inline]
    pub fn expect_write(&self, at: usize, len: usize) {
        let lines = len.div_ceil(LINE).min(EXPECTED_LINES);
        if !self.contains(at, lines * LINE) {
            return;
        }
        for line in 0..lines {
            // SAFETY: in bounds, as just seen.
            prefetch_write(unsafe { self.base.add(at + line * LINE) }.as_ptr());
        }
    }
}

/// Consecutive words of a row; see [`Region::words_at`].
#[derive(Debug, Clone, Copy)]
pub struct Words<'a, const N: usize>(&'a [AtomicU64; N]);

impl<const N: usize> Words<'_, N> {
    /// One of the words, as [`Region::load`] reads it.
    #[inline]
    pub fn load(self, at: usize) -> u64 {
        load_acquire(&self.0[at])
    }

    /// A copy of all words, as by [`Region::copy_words`].
    #[inline]
    pub fn copy(self) -> [u64; N] {
        let mut values = [0; N];
        for (value, word) in values.iter_mut().zip(self.0) {
            *value = word.load(Ordering::Relaxed);
        }
        // Orders the loads above before a check that follows.
        fence(Ordering::Acquire);
        values
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("len", &self.len)
            .field("writable", &self.writable)
            .field("owners", &Arc::strong_count(&self.keep))
            .finish_non_exhaustive()
    }
}

/// An aligned, zeroed allocation. It is aligned by hand inside an allocation of small
/// alignment: the allocator zeroes such a one without touching it, so unused parts of a row
/// take no memory.
struct Heap {
    /// Aligned to `ROW_ALIGN`, inside the allocation.
    base: NonNull<u8>,
    allocation: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a plain allocation, freed once.
unsafe impl Send for Heap {}
// SAFETY: as above; nothing is reachable through a shared `Heap`.
unsafe impl Sync for Heap {}

impl Heap {
    fn new(len: usize) -> Self {
        let size = len.saturating_add(ROW_ALIGN - 8);
        let Ok(layout) = Layout::from_size_align(size, 8) else {
            handle_alloc_error(Layout::new::<[u8; ROW_ALIGN]>());
        };
        // SAFETY: `len` is at least ROW_ALIGN, so the layout is not empty.
        let allocation = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocation) else {
            handle_alloc_error(layout)
        };
        let skip = allocation.addr().get().wrapping_neg() % ROW_ALIGN;
        // SAFETY: the address is a multiple of 8, so at most `ROW_ALIGN - 8`
        // bytes are skipped, and `len` bytes follow.
        let base = unsafe { allocation.add(skip) };
        Self {
            base,
            allocation,
            layout,
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once, here.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_same_memory() {
        let region = Region::heap(1024);
        let window = region.window(128, 256).unwrap();
        region.store(136, 5);
        assert_eq!((window.load(8), window.len()), (5, 256));
        assert_eq!(window.address(), region.address() + 128);
        for (at, len) in [(64, 8), (0, 4), (0, 1032), (1024, 8), (128, usize::MAX - 7)] {
            assert!(region.window(at, len).is_none(), "{at}+{len}");
        }
    }

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        let region = Region::heap(1000);
        assert_eq!(region.len(), 1024);
        region.store(16, 0x0807_0605_0403_0201);
        assert_eq!(region.load(16), 0x0807_0605_0403_0201);
        region.store_words(32, &[5, 6]);
        assert_eq!(region.copy_words(24), [0, 5, 6]);
        let mut copy = [0; 16];
        region.copy_out(8, &mut copy);
        assert_eq!(copy, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        // SAFETY: in bounds, and no other code accesses this region.
        unsafe { region.place(16, 2).cast().write([9_u8, 9]) };
        // SAFETY: as above.
        assert_eq!(unsafe { region.bytes(15, 4) }, [0, 9, 9, 3]);
        assert!(region.contains(1016, 8) && !region.contains(1017, 8));
        assert!(!region.contains(usize::MAX, 2));
        region.copy_in(1008, &copy);
        assert_eq!(region.load(1016), 0x0807_0605_0403_0201);
    }

    #[test]
    fn a_prefetch_for_writing_changes_nothing() {
        let region = Region::heap(256);
        region.store_words(0, &[7; 32]);
        for (at, len) in [
            (0, 1),
            (0, 256),
            (248, 64),
            (192, 65),
            (1000, 1),
            (8, usize::MAX),
        ] {
            region.expect_write(at, len);
        }
        assert_eq!(region.copy_words(0), [7; 32]);
    }

    #[test]
    fn groups_of_words_are_consecutive() {
        let region = Region::heap(128);
        region.store_words(96, &[1, 2, 3, 4]);
        let groups = region.word_groups::<2>(88, 2);
        let groups: Vec<_> = groups.map(|words| words.copy()).collect();
        assert_eq!(groups, [[0, 1], [2, 3]]);
        assert_eq!(region.word_groups::<2>(128, 0).count(), 0);
    }

    #[test]
    #[should_panic(expected = "range end index")]
    fn groups_of_words_end_with_their_region() {
        let _ = Region::heap(128).word_groups::<2>(104, 2).count();
    }

    #[test]
    fn heaps_of_all_lengths_are_aligned() {
        for len in (1..5000).step_by(97) {
            let region = Region::heap(len);
            assert!(region.address().is_multiple_of(ROW_ALIGN));
            assert!(region.len() >= len && region.load(region.len() - 8) == 0);
        }
    }
}
