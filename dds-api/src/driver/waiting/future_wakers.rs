//! The futures that wait for something of a participant, and what wakes them.
//!
//! ```text
//!   poll     set_waker, then look --nothing--> Pending
//!   change   mark (any thread, also one that steps) --> the waking thread: wake
//!   time     a deadline has come                    --> the waking thread: wake
//! ```
//!
//! A waker is user code, so a thread that steps only marks a future, which takes no lock. The waking thread
//! looks at all of them when it is notified. While a participant has none, a thread that is no thread of the
//! participant, and holds no lock, wakes what is marked ([`FutureWakers::settle`]).
//!
//! No wake-up is lost: a future sets its waker before it looks, and the change comes before the mark.
//! So if the waking thread finds the mark and no waker, the future sees the change.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use spindle_dds_transport::fork::OwnerProcess;

use super::notifier::Notifier;

/// The futures of a participant that wait.
#[derive(Debug, Default)]
pub(crate) struct FutureWakers {
    waiting: Mutex<Vec<Arc<FutureWaker>>>,
    /// Waking threads that look at them.
    threads: AtomicUsize,
}

/// Wakes one future.
pub(crate) struct FutureWaker {
    waker: Mutex<Option<Waker>>,
    /// The future is to be woken.
    is_marked: AtomicBool,
    /// It is to be woken then in any case.
    deadline: Option<Instant>,
    notifier: Arc<Notifier>,
    owner: OwnerProcess,
}

/// A future that is woken when it is marked, until this is dropped: then nothing of it is left.
#[derive(Debug)]
pub(crate) struct WaitingFuture(Arc<FutureWaker>);

impl fmt::Debug for FutureWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureWaker")
            .field("is_marked", &self.is_marked)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl WaitingFuture {
    pub(crate) fn new(notifier: &Arc<Notifier>, deadline: Option<Instant>) -> Self {
        let future = Arc::new(FutureWaker {
            waker: Mutex::default(),
            is_marked: AtomicBool::new(false),
            deadline,
            notifier: notifier.clone(),
            owner: OwnerProcess::this(),
        });
        notifier.futures.waiting().push(future.clone());
        if deadline.is_some() {
            // The waking thread may sleep for longer.
            notifier.waking.notify();
        }
        Self(future)
    }

    /// Its part that marks it.
    pub(crate) fn marker(&self) -> &Arc<FutureWaker> {
        &self.0
    }

    /// Whether this process has inherited it by `fork`.
    pub(crate) fn is_inherited(&self) -> bool {
        self.0.owner.is_inherited()
    }

    /// The task to wake; the future looks once more after this call.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        // A waker is user code: it is cloned and dropped without the lock.
        let known = self.0.waker().take();
        let waker = match known {
            Some(known) if known.will_wake(waker) => known,
            _ => waker.clone(),
        };
        let before = self.0.waker().replace(waker);
        drop(before);
        // Pairs with the fence in `mark`: either this future sees the change, or it is marked after
        // its waker is set.
        fence(Ordering::SeqCst);
    }
}

impl Drop for WaitingFuture {
    fn drop(&mut self) {
        if self.is_inherited() {
            // A thread of the parent may have had the lock.
            return;
        }
        let mut waiting = self.0.notifier.futures.waiting();
        let is_it = |it: &Arc<FutureWaker>| Arc::ptr_eq(it, &self.0);
        if let Some(at) = waiting.iter().position(is_it) {
            let removed = waiting.swap_remove(at);
            drop(waiting);
            drop(removed);
        }
    }
}

impl FutureWaker {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the future waits for may have come. Never waits, and calls no user code.
    pub(crate) fn mark(&self) {
        fence(Ordering::SeqCst);
        if !self.is_marked.swap(true, Ordering::SeqCst) {
            self.notifier.waking.notify();
        }
    }

    /// Whether it was marked since the last call.
    #[cfg(test)]
    pub(crate) fn take_mark(&self) -> bool {
        self.is_marked.swap(false, Ordering::SeqCst)
    }

    fn is_due(&self, now: Instant) -> bool {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        self.is_marked.swap(false, Ordering::SeqCst) || is_late
    }

    /// Wakes the task. User code.
    fn wake(&self) -> bool {
        let Some(waker) = self.waker().take() else {
            return false;
        };
        // A waker that panics is a fault of user code: the others are woken all the same.
        if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
            tracing::error!("a waker panicked");
        }
        true
    }
}

impl FutureWakers {
    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<FutureWaker>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// The calling thread looks at them from now on.
    pub(crate) fn begin(&self) {
        self.threads.fetch_add(1, Ordering::SeqCst);
    }

    /// It does so no more. They find out that it is over.
    pub(crate) fn end(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
        let waiting = self.waiting().clone();
        waiting.iter().for_each(|it| {
            it.wake();
        });
    }

    /// Wakes those that are marked or whose time has come. Returns whether it woke any, and when the
    /// next deadline is.
    pub(crate) fn wake_due(&self) -> (bool, Option<Instant>) {
        let mut due = Vec::new();
        let mut next: Option<Instant> = None;
        let waiting = self.waiting();
        if !waiting.is_empty() {
            let now = Instant::now();
            for it in &*waiting {
                if it.is_due(now) {
                    due.push(it.clone());
                }
                // Also of one that is marked: it may be polled just now, and have no waker to wake.
                if let Some(deadline) = it.deadline.filter(|deadline| *deadline > now) {
                    next = Some(next.map_or(deadline, |next| next.min(deadline)));
                }
            }
        }
        drop(waiting);
        let woken = due.iter().filter(|it| it.wake()).count();
        (woken > 0, next)
    }

    /// Something has changed that any of them may wait for. Wakes them, if no waking thread does: called
    /// as [`settle`](Self::settle) is.
    pub(crate) fn mark_all(&self) {
        let waiting = self.waiting().clone();
        waiting.iter().for_each(|it| it.mark());
        self.settle();
    }

    /// Whether a waking thread looks at them.
    pub(crate) fn has_thread(&self) -> bool {
        self.threads.load(Ordering::SeqCst) != 0
    }

    /// Wakes those that are marked, if no waking thread does. Called without a lock, by a thread that
    /// does not step.
    pub(crate) fn settle(&self) {
        if !self.has_thread() {
            self.wake_due();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;
    use std::time::Duration;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counting() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn a_future_is_woken_once_for_each_mark_and_at_its_deadline() {
        let notifier = Arc::<Notifier>::default();
        let (count, waker) = counting();
        let woken = || count.0.load(Ordering::SeqCst);
        let later = Instant::now() + Duration::from_secs(3600);
        let future = WaitingFuture::new(&notifier, Some(later));
        future.set_waker(&waker);
        assert_eq!(notifier.futures.wake_due(), (false, Some(later)));
        future.marker().mark();
        future.marker().mark();
        assert!(notifier.futures.wake_due().0);
        assert_eq!(woken(), 1);
        future.marker().mark();
        let not_woken = (false, Some(later));
        assert_eq!(notifier.futures.wake_due(), not_woken, "it has no waker");
        future.set_waker(&waker);
        assert_eq!(notifier.futures.wake_due(), (false, Some(later)));
        let past = WaitingFuture::new(&notifier, Some(Instant::now()));
        past.set_waker(&waker);
        assert_eq!(notifier.futures.wake_due(), (true, Some(later)));
        assert_eq!(woken(), 2);
    }

    #[test]
    fn a_future_that_is_dropped_leaves_no_waker() {
        let notifier = Arc::<Notifier>::default();
        let (count, waker) = counting();
        let futures = [0; 3].map(|_| WaitingFuture::new(&notifier, None));
        futures.iter().for_each(|it| it.set_waker(&waker));
        drop(waker);
        assert_eq!((notifier.futures.len(), Arc::strong_count(&count)), (3, 4));
        drop(futures);
        assert_eq!((notifier.futures.len(), Arc::strong_count(&count)), (0, 1));
    }

    #[test]
    fn while_no_thread_looks_another_one_wakes_and_the_end_wakes_all() {
        let notifier = Arc::<Notifier>::default();
        let (count, waker) = counting();
        let woken = || count.0.load(Ordering::SeqCst);
        let future = WaitingFuture::new(&notifier, None);
        let wait = || future.set_waker(&waker);
        wait();
        notifier.futures.settle();
        assert_eq!(woken(), 0, "it is not marked");
        future.marker().mark();
        notifier.futures.settle();
        assert_eq!(woken(), 1);
        notifier.futures.begin();
        wait();
        future.marker().mark();
        notifier.futures.settle();
        assert_eq!(woken(), 1, "the waking thread does it");
        notifier.futures.end();
        assert_eq!(woken(), 2);
    }
}
