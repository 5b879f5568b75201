//! Zeroed private memory for bookkeeping: a page that was never written to takes no memory.
//!
//! ```text
//!   mapping   | slice | slice | slice |  free  |      zeros of the kernel
//! ```
//!
//! Invariants: slices do not overlap, and nothing is written to a slice when it is made. Each
//! slice keeps its mapping. Under loom and Miri, to which mapped memory is unknown, a slice is an
//! ordinary allocation.

use core::fmt;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::io;

use crate::memory::ROW_ALIGN;

/// Types of which zeros are a value.
///
/// # Safety
/// All bytes zero, padding included, are a valid value, and the default one.
pub unsafe trait Zeroable: Default {}

// SAFETY: the same layout as a `u32`; the default value is 0.
unsafe impl Zeroable for AtomicU32 {}
// SAFETY: the same layout as a `u64`; the default value is 0.
unsafe impl Zeroable for AtomicU64 {}

// SAFETY: under loom no memory of zeros is taken for a value.
#[cfg(loom)]
unsafe impl Zeroable for loom::sync::atomic::AtomicU32 {}
// SAFETY: as above.
#[cfg(loom)]
unsafe impl Zeroable for loom::sync::atomic::AtomicU64 {}

/// Hands out slices of zeros. Dropping it leaves them as they are.
#[derive(Debug)]
pub struct Arena {
    /// Bytes that are mapped at once; more for a larger slice.
    map_len: usize,
    /// The newest mapping.
    source: Source,
}

/// A slice of an [`Arena`]. It begins as zeros.
pub struct ZeroedSlice<T> {
    items: Items<T>,
}

impl Arena {
    /// An arena that maps so many bytes at once.
    pub fn new(map_len: usize) -> Self {
        Self {
            map_len,
            source: Source::default(),
        }
    }

    /// Bytes that a slice takes.
    pub const fn bytes_of<T>(len: usize) -> usize {
        match len
            .saturating_mul(size_of::<T>())
            .checked_next_multiple_of(ROW_ALIGN)
        {
            Some(bytes) => bytes,
            None => usize::MAX,
        }
    }

    /// A slice of zeros. Fails if no memory can be mapped.
    pub fn slice<T: Zeroable>(&mut self, len: usize) -> io::Result<ZeroedSlice<T>> {
        const { assert!(align_of::<T>() <= ROW_ALIGN && !core::mem::needs_drop::<T>()) };
        let items = self.source.items(len, self.map_len)?;
        Ok(ZeroedSlice { items })
    }

    /// Addresses of what was mapped last: all of its slices if it has mapped once. Empty before.
    pub fn addresses(&self) -> Range<usize> {
        self.source.addresses()
    }

    /// Allocates the memory of what was mapped last, so that the first use of a page does not
    /// fault. Stops if `goes_on`, which is called about every millisecond, returns false. A failure
    /// is not fatal: pages are allocated at their first use. Needs Linux 5.14.
    pub fn prefault(&self, goes_on: impl Fn() -> bool) {
        self.source.prefault(goes_on);
    }
}

impl<T> Deref for ZeroedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.items.all()
    }
}

impl<T> DerefMut for ZeroedSlice<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.items.all_mut()
    }
}

impl<T> fmt::Debug for ZeroedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZeroedSlice")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(not(any(loom, miri)))]
use mapped::{Items, Source};

#[cfg(not(any(loom, miri)))]
mod mapped {
    use core::ops::Range;
    use core::ptr::NonNull;
    use std::io;
    use std::sync::Arc;

    use rustix::mm::ProtFlags;

    use super::{Arena, Zeroable};
    use crate::memory::mapping::{Mapping, Populated};
    use crate::retry::repeat;

    /// The newest mapping of an arena.
    #[derive(Debug, Default)]
    pub(super) struct Source {
        mapping: Option<Arc<Mapping>>,
        /// Bytes at its end that belong to no slice.
        free: usize,
    }

    pub(super) struct Items<T> {
        base: NonNull<T>,
        len: usize,
        /// Keeps the memory mapped.
        _mapping: Arc<Mapping>,
    }

    // SAFETY: it owns its items, as a boxed slice does; the mapping is Send.
    unsafe impl<T: Send> Send for Items<T> {}
    // SAFETY: as above; only items are reachable through a shared reference.
    unsafe impl<T: Sync> Sync for Items<T> {}

    impl Source {
        pub(super) fn items<T: Zeroable>(
            &mut self,
            len: usize,
            map_len: usize,
        ) -> io::Result<Items<T>> {
            let bytes = Arena::bytes_of::<T>(len);
            let mapping = match &self.mapping {
                Some(mapping) if bytes <= self.free => mapping,
                _ => {
                    let mapping = map(bytes.max(map_len).max(1))?;
                    self.free = mapping.len();
                    &*self.mapping.insert(mapping)
                }
            };
            // `free` is at most the length, and falls by multiples of ROW_ALIGN, as the length is.
            let base = mapping.at(mapping.len() - self.free);
            self.free -= bytes;
            Ok(Items {
                base: base.cast(),
                len,
                _mapping: Arc::clone(mapping),
            })
        }

        pub(super) fn addresses(&self) -> Range<usize> {
            let Some(mapping) = &self.mapping else {
                return 0..0;
            };
            let start = mapping.at(0).addr().get();
            start..start + mapping.len()
        }

        pub(super) fn prefault(&self, goes_on: impl Fn() -> bool) {
            let Some(mapping) = &self.mapping else { return };
            if let Err(error) = mapping.allocate(&mut Populated::default(), goes_on) {
                tracing::warn!(
                    %error,
                    "no memory for all of the bookkeeping now: its pages come when they are used"
                );
            }
        }
    }

    fn map(len: usize) -> io::Result<Arc<Mapping>> {
        let len = Arena::bytes_of::<u8>(len);
        let mapping = repeat(|| Mapping::private(len, ProtFlags::READ | ProtFlags::WRITE))?;
        mapping.keep_pages_small();
        Ok(Arc::new(mapping))
    }

    impl<T> Items<T> {
        #[inline]
        pub(super) fn all(&self) -> &[T] {
            // SAFETY: aligned (`Source::items` takes multiples of ROW_ALIGN in a mapping that is
            // page-aligned); these `len` items lie in the mapping, and belong to this slice alone.
            // They are valid: zeros are (`Zeroable`), and what was stored since is.
            unsafe { core::slice::from_raw_parts(self.base.as_ptr(), self.len) }
        }

        #[inline]
        pub(super) fn all_mut(&mut self) -> &mut [T] {
            // SAFETY: as above; the one reference is borrowed mutably.
            unsafe { core::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
        }
    }
}

#[cfg(any(loom, miri))]
use allocated::{Items, Source};

#[cfg(any(loom, miri))]
mod allocated {
    use std::io;

    use super::Zeroable;

    #[derive(Debug, Default)]
    pub(super) struct Source;

    pub(super) struct Items<T>(Box<[T]>);

    impl Source {
        pub(super) fn items<T: Zeroable>(
            &mut self,
            len: usize,
            _map_len: usize,
        ) -> io::Result<Items<T>> {
            Ok(Items((0..len).map(|_| T::default()).collect()))
        }

        pub(super) fn addresses(&self) -> core::ops::Range<usize> {
            0..0
        }

        pub(super) fn prefault(&self, _goes_on: impl Fn() -> bool) {}
    }

    impl<T> Items<T> {
        pub(super) fn all(&self) -> &[T] {
            &self.0
        }

        pub(super) fn all_mut(&mut self) -> &mut [T] {
            &mut self.0
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::sync::atomic::Ordering;

    use super::*;

    fn values(slice: &[AtomicU64]) -> Vec<u64> {
        let values = slice.iter().map(|it| it.load(Ordering::Relaxed));
        values.collect()
    }

    #[test]
    fn slices_begin_as_zeros_and_do_not_overlap() {
        let mut arena = Arena::new(1000);
        // In the first mapping, behind its end, and larger than a mapping.
        let lens = [3, 1, 100, 60, 0, 5000, 2];
        let slices = lens.map(|len| arena.slice::<AtomicU64>(len).expect("memory"));
        let small = arena.slice::<AtomicU32>(5).expect("memory");
        drop(arena);
        for (number, (slice, len)) in (1..).zip(slices.iter().zip(lens)) {
            assert_eq!(values(slice), vec![0; len]);
            slice
                .iter()
                .for_each(|it| it.store(number, Ordering::Relaxed));
        }
        for (number, (slice, len)) in (1..).zip(slices.iter().zip(lens)) {
            assert_eq!(values(slice), vec![number; len]);
        }
        assert!(small.iter().all(|it| it.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_slice_is_changed_through_a_mutable_reference() {
        let mut slice = Arena::new(0).slice::<AtomicU64>(4).expect("memory");
        *slice[2].get_mut() = 7;
        assert_eq!(values(&slice), [0, 0, 7, 0]);
    }

    #[cfg(not(miri))]
    #[test]
    fn more_than_there_is_is_an_error() {
        let mut arena = Arena::new(0);
        for len in [usize::MAX, usize::MAX / 8, 1 << 55] {
            let error = arena.slice::<AtomicU64>(len).expect_err("no such memory");
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        }
        assert_eq!(values(&arena.slice(2).expect("memory")), [0, 0]);
    }

    /// Pages of this slice that have memory.
    #[cfg(not(miri))]
    fn resident(slice: &[AtomicU64]) -> usize {
        let mut pages = vec![0_u8; size_of_val(slice).div_ceil(4096)];
        let at = slice.as_ptr().cast_mut().cast();
        // SAFETY: only a query; the kernel writes a byte for each page (of 4096 bytes or more).
        let told = unsafe { libc::mincore(at, size_of_val(slice), pages.as_mut_ptr()) };
        assert_eq!(told, 0, "{}", io::Error::last_os_error());
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[cfg(not(miri))]
    #[test]
    fn only_pages_that_were_written_to_have_memory_unless_prefaulted() {
        // 16 MiB: with huge pages there would be one of 2 MiB.
        let words = 2 << 20;
        let mut arena = Arena::new(Arena::bytes_of::<AtomicU64>(words));
        let slice = arena.slice::<AtomicU64>(words).expect("memory");
        assert_eq!(resident(&slice), 0);
        for at in [0, words / 2, words - 1] {
            slice[at].store(1, Ordering::Relaxed);
        }
        assert!(resident(&slice) <= 3 * 16, "{}", resident(&slice));
        arena.prefault(|| false);
        assert!(resident(&slice) <= 3 * 16, "it was told to stop");
        arena.prefault(|| true);
        assert_eq!(resident(&slice), size_of_val(&*slice).div_ceil(4096));
        assert_eq!(slice[words - 1].load(Ordering::Relaxed), 1);
    }
}
