//! The lock on an engine's state: on the path of a message it is only tried.
//!
//! The holder releases it by one store. A lock that keeps track of its waiters needs an exchange
//! there, for each message, and threads that send or step never wait: a thread that finds the
//! lock taken leaves its work to the next holder. The few threads that do wait (to add a
//! subgroup, install a view or read figures) try again, and sleep between tries.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::thread;
use std::time::Duration;

use crate::sync::{AtomicBool, Ordering};

/// Tries of a waiting thread before it yields its processor between tries.
const TRIES_BEFORE_YIELD: u32 = 100;
/// Tries before it sleeps between tries: the holder may need the processor, and have
/// too low a priority to get it by a yield.
const TRIES_BEFORE_SLEEP: u32 = 200;
/// Sleep between two tries. A step takes some microseconds.
const SLEEP: Duration = Duration::from_micros(20);

/// A value with one owner at a time.
#[derive(Debug)]
pub(crate) struct EngineLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is reached through a guard only, and there is one guard at a time: `try_lock`
// makes one where it changes `locked` from false to true, and only the guard's end changes it
// back. What one owner did to the value is visible to the next (`unlock` pairs with `try_lock`).
unsafe impl<T: Send> Sync for EngineLock<T> {}

// An owner that panics releases the lock, and the next owner goes on with the state as it is.
impl<T> UnwindSafe for EngineLock<T> {}
impl<T> RefUnwindSafe for EngineLock<T> {}

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct EngineGuard<'a, T> {
    lock: &'a EngineLock<T>,
    /// Makes the guard `Send` and `Sync` where `&mut T` is.
    value: PhantomData<&'a mut T>,
}

impl<T> EngineLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Returns `None` while another thread holds the lock.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<EngineGuard<'_, T>> {
        // Acquire: pairs with the release in `unlock`.
        let locked =
            self.locked
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        locked.ok().map(|_| EngineGuard {
            lock: self,
            value: PhantomData,
        })
    }

    /// Waits for the lock. For threads that are not on the path of a message.
    pub(crate) fn lock(&self) -> EngineGuard<'_, T> {
        let mut tries = 0;
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            if tries < TRIES_BEFORE_YIELD {
                std::hint::spin_loop();
            } else if tries < TRIES_BEFORE_SLEEP {
                thread::yield_now();
            } else {
                sleep();
            }
            tries = tries.saturating_add(1);
        }
    }

    fn unlock(&self, ordering: Ordering) {
        self.locked.store(false, ordering);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no part of a step: a thread outside of one waits for the lock"
)]
fn sleep() {
    thread::sleep(SLEEP);
}

impl<T> Deref for EngineGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while this guard exists, no other one does, so only references from this
        // guard reach the value; it is borrowed shared.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for EngineGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the guard is borrowed exclusively, so this reference is the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// Runs also where a sink panics: that loses the sink's state, not the engine's.
impl<T> Drop for EngineGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `try_lock`.
        self.lock.unlock(Ordering::Release);
    }
}

#[cfg(loom)]
impl<T> EngineGuard<'_, T> {
    /// Releases the lock with an ordering of the caller's: a mutant for loom to find.
    pub(crate) fn unlock_with(self, ordering: Ordering) {
        self.lock.unlock(ordering);
        std::mem::forget(self);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_the_lock() {
        let lock = EngineLock::new(0_u64);
        let guard = lock.try_lock().expect("the lock is free");
        assert!(lock.try_lock().is_none());
        drop(guard);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }

    #[test]
    fn an_owner_that_panics_releases_the_lock() {
        let lock = EngineLock::new(7);
        let panicked = std::panic::catch_unwind(|| {
            let _guard = lock.lock();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
        assert_eq!(lock.try_lock().as_deref(), Some(&7));
    }
}
