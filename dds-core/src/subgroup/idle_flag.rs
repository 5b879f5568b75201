//! The flags between the engine, which lets an epoch go idle, and the threads that leave work
//! in it.
//!
//! ```text
//!   engine   set the flag | fence | look for work in one more pass
//!   thread   leave work   | fence | look at the flag: if set, clear it and set `LeftWork`
//! ```
//!
//! Invariant: either the thread sees the flag, or the pass sees the work. A loom model checks it;
//! [`active_set`](crate::engine::active_set) says why no other change is missed.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether the engine lets an epoch be idle: shared with the threads that leave work in the epoch.
#[derive(Debug)]
pub(crate) struct IdleFlag(AtomicBool);

/// Whether work was left in an idle epoch: one flag for all epochs of a participant.
#[derive(Debug)]
pub(crate) struct LeftWork(AtomicBool);

impl IdleFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Sets the flag. The engine makes one more pass after this, and then only polls.
    pub(crate) fn begin(&self) {
        self.begin_with(|| fence(Ordering::SeqCst));
    }

    /// [`Self::begin`] with the caller's fence: loom plants a bug with it.
    pub(crate) fn begin_with(&self, fence: impl FnOnce()) {
        self.0.store(true, Ordering::Relaxed);
        fence();
    }

    /// Clears the flag: the engine evaluates the epoch at each step again.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the flag is still set, that is, no thread has interrupted it.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Called after work was left in the epoch and a sequentially consistent fence. Returns whether
    /// the engine must be nudged to see the work.
    pub(crate) fn interrupt(&self, left_work: &LeftWork) -> bool {
        // If another thread has interrupted it already, that thread nudges, and the pass that
        // follows has still to begin.
        let resting = self.0.load(Ordering::Relaxed);
        if resting {
            self.0.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire in `take`, so that the engine finds the epoch.
            left_work.0.store(true, Ordering::Release);
        }
        resting
    }
}

impl LeftWork {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether work was left in an idle epoch since the last call.
    pub(crate) fn take(&self) -> bool {
        // Avoids a write to a shared cache line when there is nothing.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
