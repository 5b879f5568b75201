//! The flags between the engine, which lets a subgroup go idle, and the threads that leave work
//! in it. [`active_set`](crate::engine::active_set) says why no work is missed.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether the engine has laid an epoch to rest: between it and the threads that leave work
/// in the epoch.
#[derive(Debug)]
pub(crate) struct IdleFlag(AtomicBool);

/// Whether an epoch at rest was stirred: one for all epochs of a participant.
#[derive(Debug)]
pub(crate) struct LeftWork(AtomicBool);

impl IdleFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The engine looks once more after this, and then no more.
    pub(crate) fn begin(&self) {
        self.begin_with(|| fence(Ordering::SeqCst));
    }

    /// [`Self::begin`] with a fence of the caller's: loom's planted bug.
    pub(crate) fn begin_with(&self, fence: impl FnOnce()) {
        self.0.store(true, Ordering::Relaxed);
        fence();
    }

    /// The engine looks at each step again.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it lasts: no thread has interrupted it.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Work was left in the epoch, and a sequentially consistent fence came after. Whether
    /// the engine has to be nudged to see it.
    pub(crate) fn interrupt(&self, left_work: &LeftWork) -> bool {
        // Who finds that somebody else has interrupted it leaves the rest to that one: the
        // engine has still to begin the pass that comes of it.
        let resting = self.0.load(Ordering::Relaxed);
        if resting {
            self.0.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire in `take`; the engine finds the epoch.
            left_work.0.store(true, Ordering::Release);
        }
        resting
    }
}

impl LeftWork {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether epochs were stirred since this was asked last.
    pub(crate) fn take(&self) -> bool {
        // Without a write to a shared line where nothing was.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}
