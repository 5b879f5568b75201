//! Values that a child of `fork` has inherited.
//!
//! `fork` copies the calling thread alone. The child has copies of all values of its parent, but
//! none of the library's threads, and locks that another thread had stay locked in it. What the two
//! processes share are mappings and descriptors: the child must not write to a row, nor use a
//! socket or the domain's record. So
//!
//! - each process has a number, which a handler of `fork` counts up in the child. A value that acts
//!   on something shared keeps its [`OwnerProcess`], and does nothing in another one;
//! - the same handler replaces all memory that this process shares and may write to by zeros
//!   that are private to the child: what the child writes there reaches no other process.
//!
//! The handler makes atomic accesses and system calls only, as a child of a process with several
//! threads may. A process made by the system call alone, past the C library, has no handler run.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::io;
use std::sync::Once;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

/// The number of this process among its ancestors; 0 is none.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// The process in which a value was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerProcess(u32);

impl OwnerProcess {
    /// This process.
    pub fn this() -> Self {
        watch_forks();
        Self(number())
    }

    /// Whether this process has inherited the value by `fork`.
    #[inline]
    pub fn is_inherited(self) -> bool {
        self.0 != number()
    }

    /// The number that [`number`] returns in that process.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The number of this process. It differs from those of all its ancestors, and is not 0.
#[inline]
pub fn number() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}

fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler is async-signal-safe, takes no lock, and lives as long as the
        // program. It runs in the child before `fork` returns there.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if failed != 0 {
            let error = io::Error::from_raw_os_error(failed);
            tracing::warn!(%error, "children of this process are not noticed: they must not use what they inherit");
        }
    });
}

/// Runs in the child, on its only thread.
extern "C" fn in_child() {
    NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut block = &FIRST;
    loop {
        block.ranges.iter().for_each(Range::make_private);
        // SAFETY: null, or a block that is never freed.
        match unsafe { block.next.load(Ordering::Acquire).as_ref() } {
            Some(next) => block = next,
            None => break,
        }
    }
}

/// Ranges of shared memory that this process may write to. There is no lock: another thread may be
/// adding or removing one when a thread forks.
struct Block {
    /// A bit for each range that is taken.
    taken: AtomicU64,
    ranges: [Range; u64::BITS as usize],
    next: AtomicPtr<Self>,
}

static FIRST: Block = Block::new();

#[derive(Debug)]
struct Range {
    /// 0: none. Written after `len`.
    start: AtomicUsize,
    len: AtomicUsize,
}

impl Range {
    /// Replaces the memory by private zeros.
    fn make_private(&self) {
        // Acquire: pairs with the release in `WritableRange::new`.
        let start = self.start.load(Ordering::Acquire);
        if start == 0 {
            return;
        }
        let (start, len) = (
            ptr::with_exposed_provenance_mut(start),
            self.len.load(Ordering::Relaxed),
        );
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a mapping of this process, as long as it is listed (`WritableRange::new`). Only
        // this thread exists. All accesses to a row are to words and bytes, for which each value
        // is valid, and other processes change them at any time.
        let replaced = unsafe { rustix::mm::mmap_anonymous(start, len, protection, flags) };
        if replaced.is_err() {
            // Then the child ends when it writes there.
            // SAFETY: the same mapping.
            let _ = unsafe { rustix::mm::mprotect(start, len, MprotectFlags::READ) };
        }
    }
}

impl Block {
    const fn new() -> Self {
        Self {
            taken: AtomicU64::new(0),
            ranges: [const {
                Range {
                    start: AtomicUsize::new(0),
                    len: AtomicUsize::new(0),
                }
            }; u64::BITS as usize],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Takes a range of this block; `None` if all are taken.
    fn take(&self) -> Option<u32> {
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let bit = taken.trailing_ones();
            if bit == u64::BITS {
                return None;
            }
            // Acquire: pairs with the release in the drop of a `WritableRange`.
            if self.taken.fetch_or(1 << bit, Ordering::Acquire) & 1 << bit == 0 {
                return Some(bit);
            }
        }
    }

    /// The block behind this one, which is made if there is none.
    fn next(&self) -> &'static Self {
        // SAFETY: null, or a block that is never freed.
        if let Some(next) = unsafe { self.next.load(Ordering::Acquire).as_ref() } {
            return next;
        }
        let made = Box::into_raw(Box::new(Self::new()));
        let (before, order) = (ptr::null_mut(), Ordering::AcqRel);
        let next = self
            .next
            .compare_exchange(before, made, order, Ordering::Acquire);
        let next = match next {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: made above, and known to no other thread.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: a block that is never freed.
        unsafe { &*next }
    }
}

/// A range of shared memory that children of this process must not write to.
#[derive(Debug)]
pub(crate) struct WritableRange {
    block: &'static Block,
    bit: u32,
}

impl core::fmt::Debug for Block {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Block")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl WritableRange {
    /// Lists a mapping until this is dropped.
    ///
    /// # Safety
    /// It belongs to the caller, is accessed as a row is (see [`Region`](crate::Region)), and is
    /// not unmapped before this is dropped.
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Self {
        watch_forks();
        let mut block = &FIRST;
        let bit = loop {
            match block.take() {
                Some(bit) => break bit,
                None => block = block.next(),
            }
        };
        let range = &block.ranges[bit as usize];
        range.len.store(len, Ordering::Relaxed);
        range
            .start
            .store(start.expose_provenance(), Ordering::Release);
        Self { block, bit }
    }
}

impl Drop for WritableRange {
    fn drop(&mut self) {
        let range = &self.block.ranges[self.bit as usize];
        range.start.store(0, Ordering::Relaxed);
        self.block
            .taken
            .fetch_and(!(1 << self.bit), Ordering::Release);
    }
}

/// The status with which a child ends that runs this. It may only do what a signal handler may.
#[cfg(test)]
pub(crate) fn in_a_child(run: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child calls only `run`, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let status = i32::from(!run());
            // SAFETY: ends the process.
            unsafe { libc::_exit(status) }
        }
        child => {
            assert!(child > 0, "it cannot fork");
            let mut status = 0;
            // SAFETY: writes the status, which lives during the call.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(waited, child);
            status
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::mapping::Mapping;

    fn row() -> Arc<Mapping> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("row", flags).expect("a file");
        rustix::fs::ftruncate(&file, 4096).expect("it grows");
        Arc::new(Mapping::new(&file, 4096, true).expect("its mapping"))
    }

    #[test]
    fn what_a_child_writes_to_rows_stays_in_the_child() {
        // More than a block.
        let rows: Vec<_> = (0..100).map(|_| row()).collect();
        let regions: Vec<_> = rows.iter().map(|row| row.region()).collect();
        regions.iter().for_each(|region| region.store(8, 7));
        let status = in_a_child(|| {
            regions.iter().all(|region| {
                let before = region.load(8);
                region.store(8, 9);
                (before, region.load(8)) == (0, 9)
            })
        });
        assert_eq!(status, 0);
        assert!(regions.iter().all(|region| region.load(8) == 7));
    }

    #[test]
    fn a_child_has_another_number_than_its_ancestors() {
        let owner = OwnerProcess::this();
        assert!(!owner.is_inherited());
        let status = in_a_child(|| {
            let (child, inherited) = (OwnerProcess::this(), owner.is_inherited());
            let grandchild = in_a_child(|| owner.is_inherited() && child.is_inherited());
            inherited && !child.is_inherited() && grandchild == 0
        });
        assert_eq!(status, 0);
        assert!(!owner.is_inherited());
    }

    #[test]
    fn ranges_are_listed_once_and_used_again() {
        let memory = row();
        let list = || {
            let start = memory.region().address() as *mut u8;
            // SAFETY: a row, which lives longer.
            unsafe { WritableRange::new(start, 4096) }
        };
        let all: Vec<_> = (0..200).map(|_| list()).collect();
        for (at, range) in all.iter().enumerate() {
            let is_same = |other: &&WritableRange| {
                ptr::eq(other.block, range.block) && other.bit == range.bit
            };
            assert_eq!(all.iter().filter(is_same).count(), 1, "{at}");
        }
        let (block, bit) = (all[0].block, all[0].bit);
        drop(all);
        let is_taken = block.ranges[bit as usize].start.load(Ordering::Relaxed);
        // Another test may have taken it meanwhile.
        assert_ne!(is_taken, memory.region().address());
    }
}
