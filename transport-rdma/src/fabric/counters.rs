//! Counters that the threads of a process share.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::fabric::FabricCounters;

/// Pushes of one segment, counted by its pushing thread.
#[derive(Debug, Default)]
pub(crate) struct PushCounters {
    pushes: AtomicU64,
    word_pushes: AtomicU64,
    bytes_pushed: AtomicU64,
}

/// Wake-ups of one process, counted by any thread.
#[derive(Debug, Default)]
pub(crate) struct SleepCounters {
    pub(crate) peer_wakes: AtomicU64,
    pub(crate) wake_calls: AtomicU64,
    pub(crate) sleeps: AtomicU64,
    pub(crate) nudges: AtomicU64,
}

/// Adds to a counter that one thread at a time writes, without a locked instruction.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl PushCounters {
    /// A `push` of `len` bytes to `peers` peers.
    pub(crate) fn pushed(&self, peers: u64, len: usize) {
        add(&self.pushes, peers);
        add(&self.bytes_pushed, peers * len as u64);
    }

    /// A `push_word` to `peers` peers.
    pub(crate) fn word_pushed(&self, peers: u64) {
        add(&self.word_pushes, peers);
        add(&self.bytes_pushed, peers * 8);
    }

    /// A push of each of these ranges and of one word, to `peers` peers.
    #[inline]
    pub(crate) fn pushed_guarded(&self, peers: u64, ranges: &[(usize, usize)]) {
        let bytes = ranges.iter().fold(8, |sum, (_, len)| sum + len);
        self.pushed_all(peers, ranges.len(), bytes);
    }

    /// Pushes of `ranges` ranges and of one word, of `bytes` bytes together, to `peers` peers.
    #[inline]
    pub(crate) fn pushed_all(&self, peers: u64, ranges: usize, bytes: usize) {
        add(&self.pushes, peers * ranges as u64);
        add(&self.word_pushes, peers);
        add(&self.bytes_pushed, peers * bytes as u64);
    }

    /// The counters of a segment, with those of its process.
    pub(crate) fn read(&self, process: &SleepCounters) -> FabricCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FabricCounters {
            pushes: load(&self.pushes),
            word_pushes: load(&self.word_pushes),
            bytes_pushed: load(&self.bytes_pushed),
            peer_wakes: load(&process.peer_wakes),
            wake_calls: load(&process.wake_calls),
            sleeps: load(&process.sleeps),
            nudges: load(&process.nudges),
        }
    }
}
