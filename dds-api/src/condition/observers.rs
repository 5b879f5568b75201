//! Wakes threads that wait for a condition, from threads that must not wait.
//!
//! A waiting thread evaluates its conditions, and then blocks or steps the engine itself
//! (`driver/waiting`). A thread that changes something calls [`Observers::notify`], which only
//! tries locks. No wake-up is lost: a lock that cannot be taken shared is held by a thread that
//! attaches, detaches or begins to wait, and that thread notifies, or evaluates its conditions,
//! after it has released the lock.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, Thread};
use std::time::Instant;

/// What the value of a condition depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The enabled ones of the entity's statuses.
    Statuses,
    /// The samples in a reader.
    Samples,
    /// A value that the application sets.
    Guard,
}

/// The wait-sets to be woken when something changes.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    signals: RwLock<Vec<(Subject, Arc<Signal>)>>,
    /// Whether there are any, which is rare. Written under the lock.
    any: AtomicBool,
}

impl Observers {
    /// Wakes all observers. Never waits, allocates nothing.
    pub(crate) fn notify(&self) {
        self.notify_of(|_| true);
    }

    /// Wakes the observers of some subjects. Never waits, allocates nothing.
    pub(crate) fn notify_of(&self, concerns: impl Fn(Subject) -> bool) {
        // The change comes before the look at the observers; pairs with the lock taken by
        // `attach`, which notifies after it.
        fence(Ordering::SeqCst);
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(signals) = self.signals.try_read() {
            let concerned = signals.iter().filter(|(subject, _)| concerns(*subject));
            concerned.for_each(|(_, signal)| signal.raise());
        }
    }

    /// Whether a thread waits for one of the conditions.
    pub(crate) fn are_waiting(&self) -> bool {
        let signals = self.signals.read().unwrap_or_else(PoisonError::into_inner);
        signals.iter().any(|(_, signal)| signal.is_waiting())
    }

    pub(crate) fn attach(&self, subject: Subject, signal: &Arc<Signal>) {
        let mut signals = self.signals.write().unwrap_or_else(PoisonError::into_inner);
        signals.push((subject, signal.clone()));
        self.any.store(true, Ordering::Relaxed);
        drop(signals);
        self.notify();
    }

    /// Removes one attachment of `signal`.
    pub(crate) fn detach(&self, subject: Subject, signal: &Arc<Signal>) {
        let mut signals = self.signals.write().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            |(of, known): &(Subject, Arc<Signal>)| *of == subject && Arc::ptr_eq(known, signal);
        if let Some(at) = signals.iter().position(is_it) {
            signals.swap_remove(at);
        }
        self.any.store(!signals.is_empty(), Ordering::Relaxed);
        drop(signals);
        self.notify();
    }
}

/// A place in the driver where a thread that waits for data steps the engine itself, and sleeps.
pub(crate) trait DataWaiter: Send + Sync + fmt::Debug {
    /// Blocks until the signal is raised, which it returns, or until `deadline`. Called
    /// after [`Signal::begin`].
    fn wait(&self, signal: &Signal, deadline: Option<Instant>) -> bool;

    /// Wakes the thread that sleeps there. Never waits.
    fn rouse(&self);

    /// One step for a read that has found nothing. Returns whether there was something to do. Never
    /// waits.
    fn step_once(&self) -> bool;
}

/// Wakes one waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: AtomicBool,
    /// The waiter sleeps in its `DataWaiter`, or is about to.
    polls_itself: AtomicBool,
    waiter: RwLock<Option<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    data_waiter: Option<Arc<dyn DataWaiter>>,
}

impl Waiter {
    fn wake(&self, polls_itself: bool) {
        match &self.data_waiter {
            // A thread that raises its own signal, as it steps the engine, does not sleep.
            Some(data_waiter) if polls_itself => {
                if thread::current().id() != self.thread.id() {
                    data_waiter.rouse();
                }
            }
            _ => self.thread.unpark(),
        }
    }
}

impl Signal {
    /// Wakes the waiting thread, if there is one. Never waits.
    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        // Pairs with the fence in `set_polls_itself`: either the waiter sees that the signal is
        // raised, or this thread sees where the waiter sleeps.
        fence(Ordering::SeqCst);
        let polls_itself = self.polls_itself.load(Ordering::SeqCst);
        if let Ok(waiter) = self.waiter.try_read()
            && let Some(waiter) = &*waiter
        {
            waiter.wake(polls_itself);
        }
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// Whether the waiter is woken through its `DataWaiter` from now on, or by its thread.
    pub(crate) fn set_polls_itself(&self, polls_itself: bool) {
        self.polls_itself.store(polls_itself, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether a thread is the one to wake.
    pub(crate) fn is_waiting(&self) -> bool {
        let waiter = self.waiter.read().unwrap_or_else(PoisonError::into_inner);
        waiter.is_some()
    }

    /// The calling thread is about to wait. False if another thread waits.
    pub(crate) fn begin(&self, data_waiter: Option<Arc<dyn DataWaiter>>) -> bool {
        let mut waiter = self.waiter.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = &*waiter {
            // A thread that raised the signal meanwhile found the lock taken.
            first.wake(self.polls_itself.load(Ordering::SeqCst));
            return false;
        }
        let thread = thread::current();
        *waiter = Some(Waiter {
            thread,
            data_waiter,
        });
        true
    }

    pub(crate) fn end(&self) {
        *self.waiter.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Called before the conditions are evaluated.
    pub(crate) fn reset(&self) {
        self.raised.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Blocks until the signal is raised, which it returns, or until `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        while !self.is_raised() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_wakes_the_observers_of_its_subject() {
        let observers = Observers::default();
        let subjects = [Subject::Statuses, Subject::Samples, Subject::Guard];
        let signals = subjects.map(|subject| {
            let signal = Arc::new(Signal::default());
            observers.attach(subject, &signal);
            signal
        });
        let raised = || signals.each_ref().map(|signal| signal.is_raised());
        signals.iter().for_each(|signal| signal.reset());
        observers.notify_of(|subject| subject == Subject::Samples);
        assert_eq!(raised(), [false, true, false]);
        observers.notify();
        assert_eq!(raised(), [true; 3]);
    }

    #[test]
    fn one_attachment_is_removed_and_no_other() {
        let (observers, signal) = (Observers::default(), Arc::new(Signal::default()));
        observers.attach(Subject::Statuses, &signal);
        observers.attach(Subject::Samples, &signal);
        observers.detach(Subject::Samples, &signal);
        signal.reset();
        observers.notify_of(|subject| subject == Subject::Samples);
        assert!(!signal.is_raised());
        observers.notify_of(|subject| subject == Subject::Statuses);
        assert!(signal.is_raised());
    }
}
