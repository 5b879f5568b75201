//! How a participant sleeps whose wakers are all threads of its own process.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::fabric::{Ring, Want};
use crate::sleep;

#[derive(Debug, Default)]
pub(super) struct Sleeper {
    word: AtomicU64,
    /// The sleep word at which it was last woken: once is enough.
    woken_at: AtomicU64,
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Sleeper {
    pub(super) fn announce_sleep(&self, want: Want) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = false;
        let epoch = (self.word.load(Ordering::Relaxed) >> 2) + 1;
        sleep::announce(&self.word, want.sleep_word(epoch));
    }

    pub(super) fn announce_awake(&self) {
        let awake = self.word.load(Ordering::Relaxed) & !3;
        self.word.store(awake, Ordering::Release);
    }

    /// After something was left for the sleeper: wakes it if it wants to know,
    /// once for each time it sleeps. Whether it did.
    pub(super) fn wake(&self, ring: Ring, rings: &AtomicU64) {
        let epoch = sleep::before_ring().epoch(&self.word);
        let wanted = Want::of_sleep_word(epoch).is_some_and(|want| want.answers(ring));
        // Woken once in this epoch, it looks after it has woken: that look, or
        // the one after its next announcement, sees all that was left so far.
        let wakes = wanted && self.woken_at.swap(epoch, Ordering::Relaxed) != epoch;
        if wakes {
            // Who has woken finds that it was rung.
            rings.fetch_add(1, Ordering::Relaxed);
            self.ring();
        }
    }

    /// Wakes it if it sleeps, whatever it wants; whether it slept.
    pub(super) fn nudge(&self) -> bool {
        let epoch = sleep::before_ring().epoch(&self.word);
        let asleep = Want::of_sleep_word(epoch).is_some();
        if asleep {
            self.ring();
        }
        asleep
    }

    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    /// Blocks until woken since `announce_sleep`, or the time is over.
    pub(super) fn park(&self, timeout: Option<Duration>) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        match timeout {
            None => *self
                .bell
                .wait_while(rung, |rung| !*rung)
                .unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                *self
                    .bell
                    .wait_timeout_while(rung, timeout, |rung| !*rung)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }
}
