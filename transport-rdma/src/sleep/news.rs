//! Telling peers where there is news, so that a peer need not look at every word: the part that
//! needs a proof, beside [`sleep`](super).
//!
//! A process has a *news block*, which its peers read: a count of its batches of pushes, and a
//! log of the buckets of the last of them. It is written by the one thread that pushes.
//!
//! ```text
//!   writer, at the end of a batch          reader
//!   -----------------------------          ------
//!   word := value                          announce its epoch, fence   (if it is to sleep)
//!   log[count] := bucket                   read count: as seen before?
//!   count := count + 1                       yes: no word has changed
//!   fence                                    no:  read log[seen..count], and look at the words
//!   epoch odd? wake the reader                    of the segments in these buckets
//! ```
//!
//! **No change is missed.** All stores are releases and all loads acquires. A reader that reads
//! a count sees the log up to it, and the words that were stored before. What a writer stores
//! later is followed by another count, which a later look finds. A reader that goes to sleep
//! looks after its fence: either that look sees the count, and thereby the word, or the writer
//! sees the epoch and wakes the reader (the fences of [`sleep`](super)). So the count takes the
//! place of the word in the proof there, and has to be raised before the writer's fence.
//!
//! **The log is overwritten** while it is read, if the reader is slow: entry `n + ENTRIES` takes
//! the place of entry `n`. It is stored after the count `n + ENTRIES`, so a reader that has read
//! it reads that count, or a later one, afterwards; then it takes all buckets to be meant.
//!
//! A count is input from another process. One that falls or jumps is news of all buckets.
//!
//! (`tests/loom_sleep.rs` runs this code under loom. If the count is raised after the fence, or
//! the log is not checked for having been overwritten, it finds a change that is missed.)

use super::{Fenced, fence_before_wake};

/// A news block: a count, and a log.
pub trait NewsBlock {
    /// Entries of the log, a power of two.
    const ENTRIES: u64;

    /// The count, for its owner.
    fn own_count(&self) -> u64;
    /// The count, with acquire ordering.
    fn count(&self) -> u64;
    /// Stores the count with release ordering.
    fn set_count(&self, count: u64);
    /// An entry of the log, with acquire ordering. `at` is below `ENTRIES`.
    fn entry(&self, at: u64) -> u8;
    /// Stores an entry of the log with release ordering.
    fn set_entry(&self, at: u64, bucket: u8);
}

/// Says that a batch of pushes in this bucket has ended, and fences: the epochs of sleepers may
/// be read now. One thread of a process at a time.
#[inline]
pub fn raise_before_wake(block: &impl NewsBlock, bucket: u8) -> Fenced {
    raise(block, bucket);
    fence_before_wake()
}

#[inline]
fn raise<B: NewsBlock>(block: &B, bucket: u8) {
    let count = block.own_count();
    block.set_entry(count % B::ENTRIES, bucket);
    block.set_count(count.wrapping_add(1));
}

/// Looks for batches that have ended since the count was `seen`, and calls `found` for each of
/// their buckets. Returns false if it cannot tell which: then all buckets are meant.
#[inline]
#[must_use]
pub fn look<B: NewsBlock>(block: &B, seen: &mut u64, found: impl FnMut(u8)) -> bool {
    let count = block.count();
    if count == *seen {
        return true;
    }
    let from = core::mem::replace(seen, count);
    read_log(block, from, count, found)
}

fn read_log<B: NewsBlock>(block: &B, from: u64, to: u64, mut found: impl FnMut(u8)) -> bool {
    let batches = to.wrapping_sub(from);
    if batches >= B::ENTRIES {
        return false;
    }
    (0..batches).for_each(|at| found(block.entry(from.wrapping_add(at) % B::ENTRIES)));
    // Whether the first of them is still there.
    block.count().wrapping_sub(from) < B::ENTRIES
}
