//! Mapped memory, of rows above all: mapping, prefaulting and freezing.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags};

use crate::fork::WritableRange;
use crate::memory::{Region, load_acquire};

/// Most passes of a freeze over a row whose owner is still writing.
const FREEZE_PASSES_MAX: usize = 8;

/// Bytes of a huge page, where pages have 4 KiB.
const HUGE: usize = 2 << 20;
/// Bytes that are populated by one system call; the kernel does about 4 MiB in a millisecond.
const POPULATE_AT_ONCE: usize = 4 << 20;
/// MADV_COLLAPSE of Linux 6.1, which libc defines only for glibc.
const COLLAPSE: libc::c_int = 25;
/// Most time that is spent on collapsing pages to huge ones.
const COLLAPSE_FOR: Duration = Duration::from_millis(50);
/// Pause after a conflict with another process that collapses pages of the same file.
const COLLAPSE_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A mapped row, or memory of an [`Arena`](crate::memory::Arena). Unmapped when the last
/// [`Region`] over it, or slice of it, is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
    writable: bool,
    /// Set if it is shared and writable: a child of `fork` has zeros there.
    listed: Option<WritableRange>,
    /// It is a peer's file: a freeze skips what was never written.
    pub(crate) is_peers: bool,
}

/// Where the lowest mapping that is aligned for huge pages was made last; 0 if there is none. To make
/// room for one and cut it to size takes four system calls, and below the last one there is room mostly.
static LOWEST_ALIGNED: AtomicUsize = AtomicUsize::new(0);

/// An aligned address below the last mapping of this kind, for `len` bytes. It may be taken.
fn next_aligned(len: usize) -> Option<usize> {
    let len = len.checked_next_multiple_of(HUGE)?;
    let below = |last: usize| last.checked_sub(len).filter(|it| *it > 0);
    let last = LOWEST_ALIGNED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below);
    last.ok().map(|last| last - len)
}

/// How much of a mapping was populated.
#[derive(Debug, Default)]
pub(crate) struct Populated {
    /// From the start of the mapping.
    bytes: usize,
}

// SAFETY: an address range belongs to the process, not to a thread; it is unmapped once.
unsafe impl Send for Mapping {}
// SAFETY: all access is through `Region`, which makes it atomic, or through slices of an `Arena`,
// each of which owns its part.
unsafe impl Sync for Mapping {}

/// Bytes of a page. (Through libc: rustix's way of asking ends a program in Valgrind.)
pub(crate) fn page_len() -> usize {
    // SAFETY: only a query.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(len).unwrap_or(4096)
}

/// Whether pages may be swapped out.
pub(crate) fn has_swap() -> bool {
    let mut told = core::mem::MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the kernel writes the structure, and nothing beyond it.
    let done = unsafe { libc::sysinfo(told.as_mut_ptr()) };
    // SAFETY: it has only integers, which are valid if they are zeros.
    done != 0 || unsafe { told.assume_init() }.totalswap > 0
}

impl Mapping {
    /// Maps a file of `len` bytes, a multiple of [`ROW_ALIGN`](crate::memory::ROW_ALIGN).
    pub(crate) fn new(file: impl AsFd, len: usize, writable: bool) -> Result<Self, Errno> {
        let protection = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        if len < HUGE {
            // SAFETY: a new mapping at an address of the kernel's choice touches no memory
            // that exists.
            let base = unsafe {
                rustix::mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)
            }?;
            return Ok(Self::over(base, len, writable)?.keep_from_children());
        }
        // Aligned for huge pages; the kernel would choose an address aligned for pages only.
        if let Some(base) = next_aligned(len)
            && let Some(mapping) = Self::map_at(base, &file, len, protection)
        {
            return Ok(mapping.keep_from_children());
        }
        let mut room = Self::private(len + HUGE, ProtFlags::empty())?;
        let skip = room.base.as_ptr().align_offset(HUGE);
        // SAFETY: `room` has `HUGE` bytes more than `len`, so the aligned address is inside.
        let base = unsafe { room.base.add(skip) };
        // SAFETY: it replaces a part of `room`, to which nothing refers.
        unsafe {
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            rustix::mm::mmap(base.as_ptr().cast(), len, protection, flags, file, 0)
        }?;
        let mapping = Self::over(base.as_ptr().cast(), len, writable)?;
        // The rest of the room is unmapped: the part before with `room`, the part behind here.
        room.len = skip;
        let behind = base.as_ptr().wrapping_add(len.next_multiple_of(page_len()));
        // SAFETY: this is the end of the room's address range, and nothing refers to it.
        unsafe { rustix::mm::munmap(behind.cast(), HUGE - skip) }?;
        LOWEST_ALIGNED.store(mapping.base.as_ptr() as usize, Ordering::Relaxed);
        Ok(mapping.keep_from_children())
    }

    /// Maps a file at an address, if nothing is there.
    fn map_at(base: usize, file: impl AsFd, len: usize, protection: ProtFlags) -> Option<Self> {
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        let base = ptr::without_provenance_mut::<c_void>(base);
        // SAFETY: the kernel maps nothing where there is a mapping: no memory that exists is touched.
        let mapped = unsafe { rustix::mm::mmap(base, len, protection, flags, file, 0) }.ok()?;
        let mapping = Self::over(mapped, len, protection.contains(ProtFlags::WRITE)).ok()?;
        // Before Linux 4.17 it may be elsewhere: then it is dropped.
        (mapped == base).then_some(mapping)
    }

    /// Maps zeros that are private to this mapping.
    pub(crate) fn private(len: usize, protection: ProtFlags) -> Result<Self, Errno> {
        // SAFETY: as in `new`.
        let base = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE)
        }?;
        Self::over(base, len, protection.contains(ProtFlags::WRITE))
    }

    /// Maps writable zeros that stay the same memory after a fork, so that the writes of a
    /// device remain visible.
    #[cfg(feature = "verbs")]
    pub(crate) fn shared(len: usize) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `new`.
        let base = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::SHARED)
        }?;
        Ok(Self::over(base, len, true)?.keep_from_children())
    }

    fn over(base: *mut c_void, len: usize, writable: bool) -> Result<Self, Errno> {
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?,
            len,
            writable,
            listed: None,
            is_peers: false,
        })
    }

    /// Of a shared mapping: children of this process cannot write to it.
    fn keep_from_children(mut self) -> Self {
        if self.writable {
            // SAFETY: a mapping that we own, accessed through `Region` only, and unmapped after
            // this is dropped (`Drop`).
            self.listed = Some(unsafe { WritableRange::new(self.base.as_ptr(), self.len) });
        }
        self
    }

    /// [Allocates](Self::allocate) the memory of the mapping, and has the kernel make huge pages
    /// of it.
    pub(crate) fn populate(
        &self,
        populated: &mut Populated,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Errno> {
        Ok(self.allocate(populated, &goes_on)? && self.collapse(goes_on))
    }

    /// Populates the mapping from where `populated` left off: the kernel allocates its memory
    /// now, not at the first use of each page. Stops if `goes_on`, which is called about
    /// every millisecond, returns false. Returns whether all was done. Needs Linux 5.14.
    pub(crate) fn allocate(
        &self,
        populated: &mut Populated,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Errno> {
        let advice = match self.writable {
            true => Advice::LinuxPopulateWrite,
            false => Advice::LinuxPopulateRead,
        };
        while populated.bytes < self.len {
            if !goes_on() {
                return Ok(false);
            }
            let part = self.base.as_ptr().wrapping_add(populated.bytes);
            let len = POPULATE_AT_ONCE.min(self.len - populated.bytes);
            // SAFETY: a part of a mapping that we own; no byte of it changes.
            unsafe { rustix::mm::madvise(part.cast(), len, advice) }?;
            populated.bytes += len;
        }
        Ok(true)
    }

    /// Has the kernel replace pages by huge pages for a bounded time: the processor then
    /// keeps the translation of a whole ring, and need not look it up for each sample.
    /// Returns false if it was told to stop. Needs Linux 6.1; the system's huge page settings
    /// matter only where they forbid them.
    fn collapse(&self, goes_on: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        let mut at = 0;
        while at + HUGE <= self.len && since.elapsed() < COLLAPSE_FOR {
            if !goes_on() {
                return false;
            }
            let part = self.base.as_ptr().wrapping_add(at);
            // SAFETY: a part of a mapping that we own; no byte of it changes.
            let done = unsafe { libc::madvise(part.cast(), HUGE, COLLAPSE) };
            match done {
                0 => at += HUGE,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(COLLAPSE_AGAIN_AFTER);
                }
                // No huge pages are available or supported.
                _ => break,
            }
        }
        true
    }

    /// The whole mapping as a region.
    pub(crate) fn region(self: &Arc<Self>) -> Region {
        let keep = Arc::clone(self);
        // SAFETY: page-aligned, `len` long (a multiple of ROW_ALIGN), mapped until `keep` is
        // dropped, and accessed by this process through regions only.
        unsafe { Region::from_raw(self.base, self.len, self.writable, keep) }
    }

    /// Replaces the shared memory by a private copy at the same address: its owner can no
    /// longer change what is read here.
    pub(crate) fn freeze(self: &Arc<Self>) -> io::Result<()> {
        let copy = Arc::new(Self::private(self.len, ProtFlags::READ | ProtFlags::WRITE)?);
        self.copy_into(&copy.region())?;
        // SAFETY: the range belongs to `copy`, and nothing else refers to it.
        unsafe { rustix::mm::mprotect(copy.base.as_ptr().cast(), copy.len, MprotectFlags::READ) }?;
        let Ok(copy) = Arc::try_unwrap(copy).map(core::mem::ManuallyDrop::new) else {
            return Err(Errno::BUSY.into());
        };
        let (from, to) = (copy.base.as_ptr().cast(), self.base.as_ptr().cast());
        // SAFETY: both ranges are whole mappings of this length that we own; `copy` is not
        // unmapped again (ManuallyDrop). The kernel replaces the target in one step for all
        // threads. It stays readable, and bytes that a word vouched for keep their values,
        // so references into it stay valid.
        unsafe { rustix::mm::mremap_fixed(from, self.len, self.len, MremapFlags::MAYMOVE, to) }?;
        Ok(())
    }

    /// Copies until a whole pass finds no change: then the copy is the row at one moment. If
    /// the owner never stops writing, the last pass counts: each word is then no older than
    /// the words at lower addresses.
    fn copy_into(self: &Arc<Self>, copy: &Region) -> io::Result<()> {
        let row = self.region();
        for _ in 0..FREEZE_PASSES_MAX {
            let mut changed = false;
            for (start, end) in self.data()? {
                let words = start / 8..end / 8;
                for (now, then) in row.words()[words.clone()].iter().zip(&copy.words()[words]) {
                    // Acquire: pairs with the owner's release stores.
                    let now = load_acquire(now);
                    if then.load(Ordering::Relaxed) != now {
                        then.store(now, Ordering::Relaxed);
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// Ranges outside of which a peer's row is zeros. To read a page that the owner never wrote
    /// would allocate its memory. (A descriptor of the file would tell, too; it would have to be
    /// kept for each row.)
    fn data(&self) -> io::Result<Vec<(usize, usize)>> {
        if !self.is_peers || has_swap() {
            // A page that is not in memory may have been swapped out.
            return Ok(vec![(0, self.len)]);
        }
        let page = page_len();
        let mut pages = vec![0_u8; self.len.div_ceil(page)];
        // SAFETY: only a query, of a mapping that we own; the kernel writes a byte for each of its
        // pages.
        let told = unsafe {
            libc::mincore(
                self.base.as_ptr().cast(),
                self.len,
                pages.as_mut_ptr().cast(),
            )
        };
        if told != 0 {
            return Err(io::Error::last_os_error());
        }
        let is_same = |a: &u8, b: &u8| a & 1 == b & 1;
        let mut at = 0;
        let runs = pages.chunk_by(is_same).map(|run| {
            let start = at;
            at += run.len() * page;
            (run[0] & 1 == 1, (start, at.min(self.len)))
        });
        Ok(runs
            .filter_map(|(there, run)| there.then_some(run))
            .collect())
    }
}

#[cfg(not(any(loom, miri)))]
impl Mapping {
    /// Has the kernel allocate each page alone, when it is first written to. Where the system makes
    /// huge pages unasked, one write would allocate 2 MiB.
    pub(crate) fn keep_pages_small(&self) {
        let base = self.base.as_ptr().cast();
        // SAFETY: a mapping that we own; no byte of it changes. A kernel without huge pages
        // refuses, which is harmless.
        let _ = unsafe { rustix::mm::madvise(base, self.len, Advice::LinuxNoHugepage) };
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Address of a byte. Panics if it is neither inside nor the end.
    pub(crate) fn at(&self, at: usize) -> NonNull<u8> {
        assert!(at <= self.len, "byte {at} of {}", self.len);
        // SAFETY: in bounds by the assertion above.
        unsafe { self.base.add(at) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.listed = None;
        // SAFETY: the range was mapped for `self`, and every region over it is gone, because
        // each holds `self`. A failure would leave it mapped, which is harmless.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn mapping(len: usize, number: u64) -> Mapping {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = rustix::fs::memfd_create("a row", flags).expect("a file");
        rustix::fs::ftruncate(&file, len as u64).expect("its length");
        let mapping = Mapping::new(&file, len, true).expect("a mapping");
        let mapping = Arc::new(mapping);
        mapping.region().store(0, number);
        mapping.region().store(len - 8, number);
        Arc::try_unwrap(mapping).expect("the only one")
    }

    /// Also where addresses are taken, or have been given back.
    #[test]
    fn long_mappings_are_aligned_for_huge_pages_and_apart() {
        let len = HUGE + 4096;
        let (mut all, mut in_the_way) = (Vec::new(), Vec::new());
        for round in 0..4 {
            all.extend((0..20).map(|number| mapping(len, number)));
            let bases = all.iter().map(|it| it.base.as_ptr() as usize);
            let mut bases: Vec<usize> = bases.collect();
            assert!(bases.iter().all(|base| base.is_multiple_of(HUGE)));
            bases.sort_unstable();
            assert!(bases.windows(2).all(|pair| pair[0] + len <= pair[1]));
            let next = LOWEST_ALIGNED.load(Ordering::Relaxed) - (round + 1) * 2 * HUGE;
            let near = ptr::without_provenance_mut::<c_void>(next);
            let (protection, flags) = (ProtFlags::READ, MapFlags::PRIVATE);
            // SAFETY: the address is a hint: no memory that exists is touched.
            let page = unsafe { rustix::mm::mmap_anonymous(near, 4096, protection, flags) };
            in_the_way.push(Mapping::over(page.expect("a page"), 4096, false).expect("a page"));
            all.drain(round * 3..round * 3 + 2);
        }
    }
}
