//! Holding the polling thread, for measurements: whoever holds it steps by hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WAKE_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Where the polling thread waits while somebody else steps.
#[derive(Debug, Default)]
pub(crate) struct PollingPause {
    wanted: AtomicBool,
    /// Nobody else steps meanwhile.
    alone: AtomicBool,
    /// Whether the thread stands still.
    still: Mutex<bool>,
    changed: Condvar,
}

impl PollingPause {
    fn still(&self) -> MutexGuard<'_, bool> {
        self.still.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether only whoever holds it steps, or is about to.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// The polling thread, between two steps.
    pub(crate) fn pass(&self) {
        if !self.wanted.load(Ordering::Relaxed) {
            return;
        }
        let mut still = self.still();
        *still = true;
        self.changed.notify_all();
        while self.wanted.load(Ordering::Relaxed) {
            still = self
                .changed
                .wait(still)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *still = false;
    }

    /// From now on the polling thread stops where it passes; `wake` has it come there. Whoever
    /// polls steps, unless this is `alone`.
    pub(crate) fn begin(&self, alone: bool, wake: impl Fn()) {
        let mut still = self.still();
        self.alone.store(alone, Ordering::Relaxed);
        self.wanted.store(true, Ordering::Relaxed);
        while !*still {
            // It may have been about to sleep when it was woken.
            wake();
            let waited = self.changed.wait_timeout(still, WAKE_AGAIN_AFTER);
            still = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// It goes on.
    pub(crate) fn end(&self) {
        let _still = self.still();
        self.alone.store(false, Ordering::Relaxed);
        self.wanted.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }
}
