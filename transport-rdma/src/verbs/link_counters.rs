//! Counters of one peer, updated by several threads.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::rdma::{BATCH_CLASSES, CHAIN_CLASSES, RdmaCounters};

#[derive(Debug, Default)]
pub(super) struct LinkCounters {
    work_requests: AtomicU64,
    bytes: AtomicU64,
    completions: AtomicU64,
    chains: [AtomicU64; CHAIN_CLASSES],
    batches: [AtomicU64; BATCH_CLASSES],
    sleep_words: AtomicU64,
    doorbells_sent: AtomicU64,
    doorbells_heard: AtomicU64,
    doorbells_slept_on: AtomicU64,
    slot_waits: AtomicU64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl LinkCounters {
    /// A chain of `requests` work requests with `bytes` bytes of rows was posted.
    pub(super) fn posted(&self, requests: usize, bytes: usize) {
        add(&self.work_requests, requests as u64);
        add(&self.bytes, bytes as u64);
        let class = requests.clamp(1, CHAIN_CLASSES) - 1;
        add(&self.chains[class], 1);
    }

    /// A word was posted; `requests` counts it and the ranges that it vouches for.
    pub(super) fn vouched(&self, requests: usize) {
        let class = requests.clamp(1, BATCH_CLASSES) - 1;
        add(&self.batches[class], 1);
    }

    /// My sleep word was posted.
    pub(super) fn sleep_word_posted(&self) {
        add(&self.sleep_words, 1);
    }

    pub(super) fn completed(&self, count: usize) {
        add(&self.completions, count as u64);
    }

    pub(super) fn doorbell_sent(&self) {
        add(&self.doorbells_sent, 1);
    }

    /// Doorbells were received, and their wake-ups are done.
    pub(super) fn heard(&self, count: u64) {
        self.doorbells_heard.fetch_add(count, Ordering::Release);
    }

    pub(super) fn slept_on(&self, count: u64) {
        add(&self.doorbells_slept_on, count);
    }

    pub(super) fn waited(&self) {
        add(&self.slot_waits, 1);
    }

    pub(super) fn read(&self) -> RdmaCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RdmaCounters {
            work_requests: load(&self.work_requests),
            bytes: load(&self.bytes),
            completions: load(&self.completions),
            chains: core::array::from_fn(|class| load(&self.chains[class])),
            batches: core::array::from_fn(|class| load(&self.batches[class])),
            sleep_words: load(&self.sleep_words),
            doorbells_sent: load(&self.doorbells_sent),
            // Acquire: pairs with the release in `heard`.
            doorbells_heard: self.doorbells_heard.load(Ordering::Acquire),
            doorbells_slept_on: load(&self.doorbells_slept_on),
            slot_waits: load(&self.slot_waits),
        }
    }
}
