//! The engine lock, and how its holder nudges a sleeping thread.

use std::panic::catch_unwind;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::sleep;

use super::model;
use crate::engine::engine_lock::{EngineGuard, EngineLock};
use crate::sync::{AtomicU64, Ordering};

/// How the lock is released.
type Unlock = fn(EngineGuard<'_, UnsafeCell<u64>>);
const PRODUCT: Unlock = |guard| drop(guard);
const WITHOUT_RELEASE: Unlock = |guard| guard.unlock_with(Ordering::Relaxed);

/// Two threads try to take the lock, twice each, and increment its value.
fn contend(unlock: Unlock) {
    let lock = Arc::new(EngineLock::new(UnsafeCell::new(0)));
    let attempt = move |lock: &EngineLock<UnsafeCell<u64>>| {
        let guard = lock.try_lock();
        let locked = guard.is_some();
        if let Some(guard) = guard {
            // SAFETY: the guard is the only access to the value: loom checks it.
            guard.with_mut(|value| unsafe { *value += 1 });
            unlock(guard);
        }
        u64::from(locked)
    };
    let other = {
        let lock = lock.clone();
        thread::spawn(move || attempt(&lock) + attempt(&lock))
    };
    let mine = attempt(&lock) + attempt(&lock);
    let increments = mine + other.join().unwrap();
    let guard = lock.try_lock().expect("the lock is free");
    // SAFETY: as above.
    assert_eq!(guard.with(|value| unsafe { *value }), increments);
}

#[test]
fn loom_one_thread_at_a_time_holds_the_lock() {
    model(|| contend(PRODUCT));
}

#[test]
fn loom_finds_an_unlock_without_release() {
    let found = catch_unwind(|| model(|| contend(WITHOUT_RELEASE)));
    assert!(found.is_err(), "loom did not find it");
}

/// When the holder of the lock nudges.
#[derive(Clone, Copy, PartialEq)]
enum Nudges {
    BeforeLocking,
    UnderLock,
}

/// One thread leaves work while it holds the lock, and nudges under the lock: without a fence.
/// Another announces that it sleeps, and takes the lock for its second look.
fn sleep_beside_a_holder(nudges: Nudges) {
    struct State {
        lock: EngineLock<UnsafeCell<u64>>,
        sleep_word: AtomicU64,
        doorbell: AtomicU64,
    }
    let state = Arc::new(State {
        lock: EngineLock::new(UnsafeCell::new(0)),
        sleep_word: AtomicU64::new(0),
        doorbell: AtomicU64::new(0),
    });
    let nudge = |state: &State| {
        if WakeInterest::of_sleep_word(sleep::epoch_under_lock(&state.sleep_word)).is_some() {
            state.doorbell.fetch_add(1, Ordering::Release);
        }
    };
    let holder = {
        let state = state.clone();
        thread::spawn(move || {
            if nudges == Nudges::BeforeLocking {
                nudge(&state);
            }
            // A thread that finds the lock taken leaves its work in another way: with a fence.
            let Some(guard) = state.lock.try_lock() else {
                return false;
            };
            // SAFETY: the guard is the only access to the value: loom checks it.
            guard.with_mut(|work| unsafe { *work = 1 });
            if nudges == Nudges::UnderLock {
                nudge(&state);
            }
            drop(guard);
            true
        })
    };
    sleep::announce(&state.sleep_word, WakeInterest::Data.sleep_word(1));
    let sleeps = match state.lock.try_lock() {
        // Another thread steps: this one looks again.
        None => false,
        Some(guard) => {
            // SAFETY: as above.
            let work = guard.with(|work| unsafe { *work });
            drop(guard);
            work == 0
        }
    };
    let leaves_work = holder.join().expect("no panic");
    let woken = state.doorbell.load(Ordering::Acquire) > 0;
    assert!(!(sleeps && leaves_work) || woken, "it sleeps on");
}

#[test]
fn loom_a_nudge_under_the_lock_needs_no_fence() {
    model(|| sleep_beside_a_holder(Nudges::UnderLock));
}

#[test]
fn loom_finds_a_nudge_before_the_lock() {
    let found = catch_unwind(|| model(|| sleep_beside_a_holder(Nudges::BeforeLocking)));
    assert!(found.is_err(), "loom did not find it");
}
