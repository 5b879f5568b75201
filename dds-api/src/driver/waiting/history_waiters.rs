//! The futures that wait for the historical data of a reader.
//!
//! A thread that steps marks them, so it must not wait: it only tries the lock. The thread that has the
//! lock looks once more when it has released it, and both fence between their two accesses: no mark is
//! left out.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::future_wakers::FutureWaker;

/// Those of one reader. While there are none, a change costs a load of one word.
#[derive(Debug, Default)]
pub(crate) struct HistoryWaiters {
    /// Changed under the lock.
    count: AtomicUsize,
    /// Something has changed since they were marked.
    is_due: AtomicBool,
    waiting: Mutex<Vec<Arc<FutureWaker>>>,
}

/// A future that is marked at each change, until this is dropped.
pub(crate) struct HistoryWait<'w> {
    waiters: &'w HistoryWaiters,
    future: Arc<FutureWaker>,
}

impl fmt::Debug for HistoryWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryWait").finish_non_exhaustive()
    }
}

impl HistoryWaiters {
    /// What has changed before is not told: the caller looks after this call.
    pub(crate) fn wait(&self, future: &Arc<FutureWaker>) -> HistoryWait<'_> {
        self.change(|waiting| waiting.push(future.clone()));
        HistoryWait {
            waiters: self,
            future: future.clone(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<FutureWaker>>)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut waiting);
        self.count.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
        // Pairs with the fence in `notify`: either the flag is seen here, or the lock is free there.
        fence(Ordering::SeqCst);
        self.mark_due();
    }

    /// What they wait for may have come. Never waits.
    pub(crate) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) != 0 {
            self.is_due.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            self.mark_due();
        }
    }

    fn mark_due(&self) {
        while self.is_due.load(Ordering::SeqCst) {
            let waiting = match self.waiting.try_lock() {
                Ok(waiting) => waiting,
                Err(TryLockError::Poisoned(waiting)) => waiting.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            if self.is_due.swap(false, Ordering::SeqCst) {
                waiting.iter().for_each(|future| future.mark());
            }
            drop(waiting);
            fence(Ordering::SeqCst);
        }
    }
}

impl Drop for HistoryWait<'_> {
    fn drop(&mut self) {
        let is_it = |it: &Arc<FutureWaker>| Arc::ptr_eq(it, &self.future);
        self.waiters.change(|waiting| {
            if let Some(at) = waiting.iter().position(is_it) {
                waiting.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::future_wakers::WaitingFuture;
    use super::super::notifier::Notifier;
    use super::*;

    #[test]
    fn a_change_marks_what_waits_also_while_another_thread_has_the_lock() {
        let notifier = Arc::<Notifier>::default();
        let [first, second] = [0; 2].map(|_| WaitingFuture::new(&notifier, None));
        let waiters = HistoryWaiters::default();
        let marks = || [&first, &second].map(|it| it.marker().take_mark());
        let one = waiters.wait(first.marker());
        waiters.notify();
        assert_eq!(marks(), [true, false]);
        let two = waiters.wait(second.marker());
        assert_eq!(marks(), [false; 2]);
        // As while another one begins to wait.
        let lock = waiters.waiting.lock().expect("no panic");
        waiters.notify();
        assert_eq!(marks(), [false; 2]);
        drop(lock);
        waiters.mark_due();
        assert_eq!(marks(), [true; 2]);
        drop(one);
        waiters.notify();
        assert_eq!(marks(), [false, true]);
        drop(two);
        waiters.notify();
        assert!(marks() == [false; 2] && !waiters.is_due.load(Ordering::SeqCst));
    }
}
