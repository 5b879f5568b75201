//! The flags between the engine, which lets a subgroup go idle, and the threads that leave work
//! in it. [`active_set`](crate::engine::active_set) says why no work is missed.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether the engine treats a subgroup as idle. Set by the engine, cleared by it or by a thread
/// that leaves work in the subgroup.
#[derive(Debug)]
pub(crate) struct IdleFlag(AtomicBool);

/// Whether a thread has left work in an idle subgroup: one flag for all subgroups of a
/// participant.
#[derive(Debug)]
pub(crate) struct LeftWork(AtomicBool);

impl IdleFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Sets the flag. The engine takes one more pass after this, and then none.
    pub(crate) fn begin(&self) {
        self.begin_with(|| fence(Ordering::SeqCst));
    }

    /// [`Self::begin`] with a fence of the caller's: loom's mutant has none.
    pub(crate) fn begin_with(&self, fence: impl FnOnce()) {
        self.0.store(true, Ordering::Relaxed);
        fence();
    }

    /// Clears the flag: each step evaluates the subgroup again.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the flag is still set: no thread has interrupted the idle state.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Called after work was left in the subgroup and a sequentially consistent fence. Returns
    /// whether the engine must be nudged to see the work.
    pub(crate) fn interrupt(&self, left_work: &LeftWork) -> bool {
        // If another thread has interrupted it, that thread nudges: the engine has not begun
        // the pass that follows.
        let idle = self.0.load(Ordering::Relaxed);
        if idle {
            self.0.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire in `take`; the engine sees the cleared flag.
            left_work.0.store(true, Ordering::Release);
        }
        idle
    }
}

impl LeftWork {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether work was left since the last call.
    pub(crate) fn take(&self) -> bool {
        // The load avoids a write to a shared line where nothing was left.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
