//! Counters of one fabric, as its threads count.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::fabric::FabricCounters;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pushes: AtomicU64,
    pub(crate) word_pushes: AtomicU64,
    pub(crate) bytes_pushed: AtomicU64,
    pub(crate) rings: AtomicU64,
    pub(crate) sleeps: AtomicU64,
    pub(crate) nudges: AtomicU64,
}

/// Adds to a counter that one thread at a time writes: no locked instruction.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Counters {
    /// A `push` of `len` bytes to so many peers.
    pub(crate) fn pushed(&self, peers: u64, len: usize) {
        add(&self.pushes, peers);
        add(&self.bytes_pushed, peers * len as u64);
    }

    /// A `push_word` to so many peers.
    pub(crate) fn word_pushed(&self, peers: u64) {
        add(&self.word_pushes, peers);
        add(&self.bytes_pushed, peers * 8);
    }

    pub(crate) fn read(&self) -> FabricCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FabricCounters {
            pushes: load(&self.pushes),
            word_pushes: load(&self.word_pushes),
            bytes_pushed: load(&self.bytes_pushed),
            rings: load(&self.rings),
            sleeps: load(&self.sleeps),
            nudges: load(&self.nudges),
        }
    }
}
