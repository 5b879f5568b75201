//! Waking the threads that run user code, from threads that must not wait.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::condition::{DataWaiter, Signal};
use crate::status::StatusMask;

/// The bell of one thread. Rung before there is one, it is not remembered: the
/// thread looks at everything when it starts.
#[derive(Debug, Default)]
pub(crate) struct ThreadNotifier(Signal);

impl ThreadNotifier {
    /// Never waits; a system call only when the thread sleeps.
    pub(crate) fn ring(&self) {
        self.0.raise();
    }

    /// The calling thread is the one to wake, until [`end`](Self::end): on that data_waiter, if it
    /// lies there.
    pub(crate) fn begin(&self, data_waiter: Option<Arc<dyn DataWaiter>>) {
        let is_first = self.0.begin(data_waiter);
        debug_assert!(is_first, "each thread has a bell of its own");
    }

    /// What the thread waits for. It resets it before it looks for what it has to do.
    pub(crate) fn signal(&self) -> &Signal {
        &self.0
    }

    /// Nobody is woken any more.
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

/// The notifier of a participant.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    /// Of the dispatch thread, which calls listeners.
    pub(crate) listeners: ThreadNotifier,
    /// Of the waking thread, which no listener holds up.
    pub(crate) wakers: ThreadNotifier,
    /// How many entities have been given a sign.
    signs: AtomicU32,
    /// Signs of those whose listeners are to be called.
    calls: AtomicU64,
    /// Statuses that the mask of a listener has ever had, of whatever entity.
    heard: AtomicU32,
    /// A stream has waited for data once.
    streamed: AtomicBool,
    /// Where threads wait that look for themselves, once it is enabled.
    data_waiter: OnceLock<Weak<dyn DataWaiter>>,
}

impl Notifier {
    /// A new entity's sign: one bit, so that the dispatch thread need not look at all entities
    /// to find the one that calls. Where there are more than 64 entities, some share one.
    pub(crate) fn assign_bit(&self) -> u64 {
        1 << (self.signs.fetch_add(1, Ordering::Relaxed) % u64::BITS)
    }

    /// An entity of this sign has something for its listeners, and has noted what. Never waits.
    pub(crate) fn call(&self, sign: u64) {
        // Release: pairs with the acquire in `take_called`, for what the entity has noted.
        self.calls.fetch_or(sign, Ordering::Release);
        self.listeners.ring();
    }

    /// The signs of those who have called since this was asked last.
    pub(crate) fn take_called(&self) -> u64 {
        self.calls.swap(0, Ordering::Acquire)
    }

    /// A listener with this mask is set somewhere.
    pub(crate) fn hear(&self, mask: StatusMask) {
        let mut heard = mask.bits();
        if mask.contains(StatusMask::DATA_ON_READERS) {
            // It is told by what comes in readers.
            heard |= StatusMask::DATA_AVAILABLE.bits();
        }
        self.heard.fetch_or(heard, Ordering::SeqCst);
    }

    /// Whether a listener may be there for one of them.
    pub(crate) fn has_listener_for(&self, statuses: StatusMask) -> bool {
        StatusMask::from_bits(self.heard.load(Ordering::SeqCst)).intersects(statuses)
    }

    /// A stream waits for data.
    pub(crate) fn stream(&self) {
        if !self.has_streams() {
            self.streamed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one has ever done so.
    pub(crate) fn has_streams(&self) -> bool {
        self.streamed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_data_waiter(&self, data_waiter: Weak<dyn DataWaiter>) {
        let _ = self.data_waiter.set(data_waiter);
    }

    pub(crate) fn data_waiter(&self) -> Option<Arc<dyn DataWaiter>> {
        self.data_waiter.get()?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_is_told_by_its_sign() {
        let notifier = Notifier::default();
        let signs: Vec<u64> = (0..65).map(|_| notifier.assign_bit()).collect();
        let all = signs.iter().fold(0, |all, sign| all | sign);
        assert_eq!(all, u64::MAX, "64 entities have signs of their own");
        assert_eq!(signs[64], signs[0], "then they share them");
        assert_eq!(notifier.take_called(), 0);
        notifier.call(signs[3]);
        notifier.call(signs[5]);
        assert_eq!(notifier.take_called(), signs[3] | signs[5]);
        assert_eq!(
            notifier.take_called(),
            0,
            "who was taken note of calls no more"
        );
    }
}
