//! How much of a range of addresses has memory, by the word of the kernel.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::mapping::page_len;

/// Bytes of an entry of the page table, as the kernel tells it (pagemap in proc_pid_pagemap(5)).
const ENTRY_LEN: usize = 8;
/// In an entry: the page is in memory.
const PRESENT: u64 = 1 << 63;
/// In an entry: the page is swapped out.
const SWAPPED: u64 = 1 << 62;
/// Most entries that are read at once.
const ENTRIES_MAX: usize = 4096;

/// The page table of this process.
#[derive(Debug)]
pub struct ResidentPages {
    table: File,
    page_len: usize,
    /// Entries as they are read.
    entries: Vec<u8>,
}

impl ResidentPages {
    /// Fails where the kernel does not tell: a process may be kept from reading about itself.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            table: File::open("/proc/self/pagemap")?,
            page_len: page_len(),
            entries: vec![0; ENTRIES_MAX * ENTRY_LEN],
        })
    }

    /// Bytes of a range that lie in pages which this process has in memory. Of a page that processes
    /// share, it counts whether this one has used it.
    pub fn bytes(&mut self, addresses: Range<usize>) -> io::Result<usize> {
        let mut page = addresses.start / self.page_len;
        let end = addresses.end.div_ceil(self.page_len);
        let mut bytes = 0;
        while page < end {
            let len = (end - page).min(ENTRIES_MAX) * ENTRY_LEN;
            let entries = &mut self.entries[..len];
            self.table
                .read_exact_at(entries, (page * ENTRY_LEN) as u64)?;
            let (entries, _) = entries.as_chunks::<ENTRY_LEN>();
            for entry in entries {
                if u64::from_ne_bytes(*entry) & (PRESENT | SWAPPED) != 0 {
                    let start = addresses.start.max(page * self.page_len);
                    bytes += addresses.end.min((page + 1) * self.page_len) - start;
                }
                page += 1;
            }
        }
        Ok(bytes)
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::memory::mapping::Mapping;
    use rustix::mm::ProtFlags;
    use std::sync::Arc;

    #[test]
    fn bytes_count_once_their_page_was_written_to() {
        let pages = 3 * ENTRIES_MAX;
        let len = pages * page_len();
        let mapping = Mapping::private(len, ProtFlags::READ | ProtFlags::WRITE);
        let mapping = Arc::new(mapping.expect("memory"));
        mapping.keep_pages_small();
        let region = mapping.region();
        let all = region.address()..region.address() + len;
        let mut resident = ResidentPages::open().expect("its own page table");
        let mut bytes = |range| resident.bytes(range).expect("told");
        assert_eq!(bytes(all.clone()), 0);
        for page in [0, 1, ENTRIES_MAX, pages - 1] {
            region.store(page * page_len(), 1);
        }
        assert_eq!(bytes(all.clone()), 4 * page_len());
        // Cut within a page.
        let cut = all.start + page_len() + 128;
        let parts = [all.start..cut, cut..all.end].map(&mut bytes);
        assert_eq!(parts, [page_len() + 128, 3 * page_len() - 128]);
        assert_eq!(bytes(all.start + 8..all.start + 24), 16);
        assert_eq!(bytes(all.start..all.start), 0);
    }
}
