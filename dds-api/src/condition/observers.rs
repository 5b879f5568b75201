//! Waking threads that wait for a condition, from threads that must not wait.
//!
//! A waiter raises nothing and polls nothing: it evaluates its conditions and
//! parks. Whoever changes something calls [`Observers::notify`]: it only tries
//! locks. A lock that cannot be had shared is being held by somebody who
//! attaches, detaches or begins to wait, and who notifies, or evaluates, after
//! letting go of it: no wake-up is lost.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, Thread};
use std::time::Instant;

/// Who is to be woken when something changes.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    signals: RwLock<Vec<Arc<Signal>>>,
}

impl Observers {
    /// Wakes all observers. Never waits, allocates nothing.
    pub(crate) fn notify(&self) {
        // The change comes before the look at who observes; pairs with the
        // lock taken by `attach`, whose own notification comes after.
        fence(Ordering::SeqCst);
        if let Ok(signals) = self.signals.try_read() {
            signals.iter().for_each(|signal| signal.raise());
        }
    }

    /// Whether a thread waits just now for one of the conditions.
    pub(crate) fn are_waiting(&self) -> bool {
        let signals = self.signals.read().unwrap_or_else(PoisonError::into_inner);
        signals.iter().any(|signal| signal.is_waiting())
    }

    pub(crate) fn attach(&self, signal: &Arc<Signal>) {
        let mut signals = self.signals.write().unwrap_or_else(PoisonError::into_inner);
        signals.push(signal.clone());
        drop(signals);
        self.notify();
    }

    /// Takes one attachment of `signal` away.
    pub(crate) fn detach(&self, signal: &Arc<Signal>) {
        let mut signals = self.signals.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = signals.iter().position(|known| Arc::ptr_eq(known, signal)) {
            signals.swap_remove(at);
        }
        drop(signals);
        self.notify();
    }
}

/// Where one waiter can be reached.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    waiter: RwLock<Option<Thread>>,
}

impl Signal {
    /// Never waits.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        if let Ok(waiter) = self.waiter.try_read()
            && let Some(thread) = &*waiter
        {
            thread.unpark();
        }
    }

    fn is_waiting(&self) -> bool {
        let waiter = self.waiter.read().unwrap_or_else(PoisonError::into_inner);
        waiter.is_some()
    }

    /// Says that the calling thread is about to wait. False when another does.
    pub(crate) fn begin(&self) -> bool {
        let mut waiter = self.waiter.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &*waiter {
            // A change in this very moment found the lock taken.
            first.unpark();
            return false;
        }
        *waiter = Some(thread::current());
        true
    }

    pub(crate) fn end(&self) {
        *self.waiter.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// To be called before the conditions are evaluated.
    pub(crate) fn reset(&self) {
        self.raised.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Blocks until raised since `reset`, or until `deadline`; says which.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        while !self.raised.load(Ordering::SeqCst) {
            match deadline {
                None => thread::park(),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    thread::park_timeout(left);
                }
            }
        }
        true
    }
}
