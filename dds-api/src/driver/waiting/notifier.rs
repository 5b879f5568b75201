//! Waking the threads that run user code, from threads that must not wait.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use super::future_wakers::FutureWakers;
use crate::condition::{DataWaiter, Signal};
use crate::status::StatusMask;

/// Wakes one thread. A notification before the thread has begun is not remembered: the thread looks
/// at everything when it begins.
#[derive(Debug, Default)]
pub(crate) struct ThreadNotifier(Signal);

impl ThreadNotifier {
    /// Never waits; a system call only when the thread sleeps.
    pub(crate) fn notify(&self) {
        self.0.raise();
    }

    /// The calling thread is the one to wake, until [`end`](Self::end): on that data_waiter, if it
    /// lies there.
    pub(crate) fn begin(&self, data_waiter: Option<Arc<dyn DataWaiter>>) {
        let is_first = self.0.begin(data_waiter);
        debug_assert!(is_first, "each thread has a bell of its own");
    }

    /// The signal that the thread waits for, and resets before it looks for work.
    pub(crate) fn signal(&self) -> &Signal {
        &self.0
    }

    /// The thread ends: it is not woken any more.
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

/// What a thread is asked to do once.
struct Task(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

/// Wakes the two threads of a participant that run user code.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    /// The dispatch thread, which calls listeners.
    pub(crate) dispatching: ThreadNotifier,
    /// The waking thread, which wakes streams and futures.
    pub(crate) waking: ThreadNotifier,
    /// How many entities have been assigned a bit.
    entities: AtomicU32,
    /// Bits of the entities whose listeners are to be called.
    pending: AtomicU64,
    /// Statuses that the mask of any listener has ever had.
    listened_for: AtomicU32,
    /// The futures that wait, and are woken by the waking thread.
    pub(crate) futures: FutureWakers,
    /// What the waking thread is to do, as it may block.
    tasks: Mutex<Vec<Task>>,
    /// A stream has waited for data at least once.
    has_streams: AtomicBool,
    /// Where threads wait that poll for themselves. Set when the participant is enabled, and when it
    /// has come back to its group.
    data_waiter: RwLock<Option<Weak<dyn DataWaiter>>>,
}

impl Notifier {
    /// A bit for a new entity, so that the dispatch thread looks only at entities with pending
    /// statuses. With more than 64 entities, some share one.
    pub(crate) fn assign_bit(&self) -> u64 {
        1 << (self.entities.fetch_add(1, Ordering::Relaxed) % u64::BITS)
    }

    /// The entity with this bit has noted statuses for its listeners. Never waits.
    pub(crate) fn notify_listeners(&self, bit: u64) {
        // Release: pairs with the acquire in `take_called`, for what the entity has noted.
        self.pending.fetch_or(bit, Ordering::Release);
        self.dispatching.notify();
    }

    /// The bits of entities with statuses for listeners, since the last call.
    pub(crate) fn take_called(&self) -> u64 {
        self.pending.swap(0, Ordering::Acquire)
    }

    /// The statuses by which a listener with this mask is called.
    pub(crate) fn triggers(mask: StatusMask) -> StatusMask {
        if mask.contains(StatusMask::DATA_ON_READERS) {
            // Its reader's DATA_AVAILABLE is what triggers it.
            return mask | StatusMask::DATA_AVAILABLE;
        }
        mask
    }

    /// A listener is called by these statuses of any entity.
    pub(crate) fn listen_for(&self, statuses: StatusMask) {
        self.listened_for
            .fetch_or(statuses.bits(), Ordering::SeqCst);
    }

    /// Whether the dispatch thread runs.
    pub(crate) fn is_dispatching(&self) -> bool {
        self.dispatching.0.is_waiting()
    }

    /// Whether any entity may have a listener for one of these statuses.
    pub(crate) fn has_listener_for(&self, statuses: StatusMask) -> bool {
        StatusMask::from_bits(self.listened_for.load(Ordering::SeqCst)).intersects(statuses)
    }

    /// The waking thread does this as soon as it can: it may block. Without that thread, which is so
    /// before and after a participant is in a group, the calling thread does it.
    pub(crate) fn let_waking_thread_run(&self, task: impl FnOnce() + Send + 'static) {
        self.tasks().push(Task(Box::new(task)));
        self.waking.notify();
        // A waking thread that ends first says so, and then does what there is to do.
        if !self.futures.has_thread() {
            self.run_tasks();
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what there is to do. Returns whether there was anything.
    pub(crate) fn run_tasks(&self) -> bool {
        let tasks = std::mem::take(&mut *self.tasks());
        let any = !tasks.is_empty();
        tasks.into_iter().for_each(|task| (task.0)());
        any
    }

    /// A stream waits for data.
    pub(crate) fn note_stream(&self) {
        if !self.has_streams() {
            self.has_streams.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a stream has ever waited for data.
    pub(crate) fn has_streams(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    pub(crate) fn set_data_waiter(&self, data_waiter: Weak<dyn DataWaiter>) {
        let known = self.data_waiter.write();
        *known.unwrap_or_else(PoisonError::into_inner) = Some(data_waiter);
    }

    pub(crate) fn data_waiter(&self) -> Option<Arc<dyn DataWaiter>> {
        let known = self.data_waiter.read();
        known
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()?
            .upgrade()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_with_pending_statuses_is_found_by_its_bit() {
        let notifier = Notifier::default();
        let bits: Vec<u64> = (0..65).map(|_| notifier.assign_bit()).collect();
        let all = bits.iter().fold(0, |all, bit| all | bit);
        assert_eq!(all, u64::MAX, "64 entities have bits of their own");
        assert_eq!(bits[64], bits[0], "then they share them");
        assert_eq!(notifier.take_called(), 0);
        notifier.notify_listeners(bits[3]);
        notifier.notify_listeners(bits[5]);
        assert_eq!(notifier.take_called(), bits[3] | bits[5]);
        assert_eq!(notifier.take_called(), 0, "a bit is taken once");
    }
}
