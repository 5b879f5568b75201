//! Pausing the polling thread, for measurements and tests: another thread steps by hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const WAKE_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Where the polling thread waits while it is paused.
#[derive(Debug, Default)]
pub(crate) struct PollingPause {
    /// The polling thread is to stand still.
    is_wanted: AtomicBool,
    /// Only the thread that asked for the pause steps.
    is_exclusive: AtomicBool,
    /// The polling thread stands still.
    still: Mutex<bool>,
    changed: Condvar,
}

impl PollingPause {
    fn still(&self) -> MutexGuard<'_, bool> {
        self.still.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether only the thread that asked for the pause steps.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_exclusive.load(Ordering::Relaxed)
    }

    /// Called by the polling thread between two steps.
    pub(crate) fn pass(&self) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        let mut still = self.still();
        *still = true;
        self.changed.notify_all();
        while self.is_wanted.load(Ordering::Relaxed) {
            still = self
                .changed
                .wait(still)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *still = false;
    }

    /// Waits until the polling thread stands still; `wake` wakes it. Other threads may step, unless
    /// the pause is `exclusive`.
    pub(crate) fn begin(&self, exclusive: bool, wake: impl Fn()) {
        let mut still = self.still();
        self.is_exclusive.store(exclusive, Ordering::Relaxed);
        self.is_wanted.store(true, Ordering::Relaxed);
        while !*still {
            // It may have been about to sleep when it was woken.
            wake();
            let waited = self.changed.wait_timeout(still, WAKE_AGAIN_AFTER);
            still = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The polling thread goes on.
    pub(crate) fn end(&self) {
        let _still = self.still();
        self.is_exclusive.store(false, Ordering::Relaxed);
        self.is_wanted.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }
}
