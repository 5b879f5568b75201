//! The streams of a reader that wait for data.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::driver::waiting::notifier::Notifier;

/// The wakers of streams to be woken when data comes. While no stream waits, data costs a load of
/// one word.
pub(crate) struct StreamWakers {
    wakers: Mutex<Vec<Waker>>,
    /// A stream waits. Changed under the lock.
    waiting: AtomicBool,
    /// Data has come since the streams were woken last.
    due: AtomicBool,
    notifier: Arc<Notifier>,
}

impl fmt::Debug for StreamWakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamWakers")
            .field("waiting", &self.waiting)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl StreamWakers {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self {
            wakers: Mutex::default(),
            waiting: AtomicBool::new(false),
            due: AtomicBool::new(false),
            notifier,
        }
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream is to be woken once; it looks for data once more after this call.
    pub(crate) fn register(&self, waker: &Waker) {
        // A waker is user code: it is cloned and dropped without the lock.
        let waker = waker.clone();
        self.notifier.note_stream();
        let mut wakers = self.wakers();
        let known = wakers.iter().any(|known| known.will_wake(&waker));
        let spare = if known {
            Some(waker)
        } else {
            wakers.push(waker);
            None
        };
        self.waiting.store(true, Ordering::SeqCst);
        drop(wakers);
        drop(spare);
        // Pairs with the fence in `notify`: either the stream is seen there, or
        // its second look sees the data.
        fence(Ordering::SeqCst);
    }

    /// A stream of that task is dropped: nothing of it is left. Wakes the task once, as another stream
    /// of it may wait.
    pub(crate) fn unregister(&self, waker: &Waker) {
        let mut wakers = self.wakers();
        let known = wakers.iter().position(|known| known.will_wake(waker));
        let removed = known.map(|at| wakers.swap_remove(at));
        if removed.is_some() && wakers.is_empty() {
            self.waiting.store(false, Ordering::SeqCst);
        }
        drop(wakers);
        if let Some(removed) = removed {
            removed.wake();
        }
    }

    /// There is data. Never waits.
    pub(crate) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) {
            self.due.store(true, Ordering::SeqCst);
            self.notifier.waking.notify();
        }
    }

    /// Whether the streams are to be woken. Called by the waking thread.
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Ordering::SeqCst) && self.due.swap(false, Ordering::SeqCst)
    }

    /// Whether a stream waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Wakes the streams; `spare` is an empty list, and saves an allocation. Wakers are user code: called
    /// by the waking thread, and by a thread that deletes the reader.
    pub(crate) fn wake(&self, spare: &mut Vec<Waker>) {
        let mut wakers = self.wakers();
        std::mem::swap(&mut *wakers, spare);
        self.waiting.store(false, Ordering::SeqCst);
        drop(wakers);
        for waker in spare.drain(..) {
            // A waker that panics is a fault of user code: the others are woken all the same.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
    }
}
