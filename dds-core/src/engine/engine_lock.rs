//! Whose turn it is to own the engine: a lock that is tried on the path of a message.
//!
//! Whoever has the turn gives it back by one store. A lock that knew who waits for it would
//! need an exchange there, for each message, and nobody who sends or steps waits: who finds
//! the turn taken leaves its work to whoever has it next. The few that do wait (an epoch is
//! added, a view begins, somebody asks for figures) try again, and sleep between tries.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::thread;
use std::time::Duration;

use crate::sync::{AtomicBool, Ordering};

/// Tries of who waits, until it yields its processor between them.
const TRIES_AT_ONCE: u32 = 100;
/// Tries until it sleeps between them: the holder may need the processor, and have
/// too low a priority to get it by a yield.
const TRIES_AWAKE: u32 = 200;
/// How long it sleeps. A step takes some microseconds.
const SLEEP: Duration = Duration::from_micros(20);

/// What one thread at a time owns.
#[derive(Debug)]
pub(crate) struct EngineLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is reached by whoever has the turn alone, one thread after the other: what
// one has done to it is visible to the next (`give` pairs with `try_take`).
unsafe impl<T: Send> Sync for EngineLock<T> {}

// Who panics with the turn gives it back, and whoever has it next goes on with what there is.
impl<T> UnwindSafe for EngineLock<T> {}
impl<T> RefUnwindSafe for EngineLock<T> {}

/// Has the turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Owner<'a, T> {
    turn: &'a EngineLock<T>,
    /// It may be sent to other threads, and shared between them, if this may.
    value: PhantomData<&'a mut T>,
}

impl<T> EngineLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// `None` while another thread has it.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Owner<'_, T>> {
        // Acquire: pairs with the release in `give`.
        let taken = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(|_| Owner {
            turn: self,
            value: PhantomData,
        })
    }

    /// Waits for it. For those who are in no hurry, and have not got it.
    pub(crate) fn take(&self) -> Owner<'_, T> {
        let mut tries = 0;
        loop {
            if let Some(owner) = self.try_take() {
                return owner;
            }
            if tries < TRIES_AT_ONCE {
                std::hint::spin_loop();
            } else if tries < TRIES_AWAKE {
                thread::yield_now();
            } else {
                nap();
            }
            tries = tries.saturating_add(1);
        }
    }

    fn give(&self, ordering: Ordering) {
        self.taken.store(false, ordering);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "no part of a step: outside of it somebody waits for one, as for any lock"
)]
fn nap() {
    thread::sleep(SLEEP);
}

impl<T> Deref for Owner<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: who has the turn alone reaches the value, through this owner, which is
        // borrowed.
        unsafe { &*self.turn.value.get() }
    }
}

impl<T> DerefMut for Owner<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and it is borrowed by nobody else.
        unsafe { &mut *self.turn.value.get() }
    }
}

/// Also where a sink has panicked: that has lost its own state, not the engine's.
impl<T> Drop for Owner<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `try_take`.
        self.turn.give(Ordering::Release);
    }
}

#[cfg(loom)]
impl<T> Owner<'_, T> {
    /// Gives the turn back with an ordering of the caller's: loom's planted bug.
    pub(crate) fn give_with(self, ordering: Ordering) {
        self.turn.give(ordering);
        std::mem::forget(self);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        let turn = EngineLock::new(0_u64);
        let owner = turn.try_take().expect("nobody has it");
        assert!(turn.try_take().is_none());
        drop(owner);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| *turn.take() += 1));
            }
        });
        assert_eq!(*turn.take(), 40_000);
    }

    #[test]
    fn who_panics_gives_it_back() {
        let turn = EngineLock::new(7);
        let panicked = std::panic::catch_unwind(|| {
            let _owner = turn.take();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
        assert_eq!(turn.try_take().as_deref(), Some(&7));
    }
}
