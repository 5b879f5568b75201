//! Whose turn it is, and how its owner nudges a sleeper.

use std::panic::catch_unwind;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::sleep;

use super::model;
use crate::engine::engine_lock::{EngineLock, Owner};
use crate::sync::{AtomicU64, Ordering};

/// How the turn is given back.
type Give = fn(Owner<'_, UnsafeCell<u64>>);
const AS_IT_IS: Give = |owner| drop(owner);
const WITHOUT_RELEASE: Give = |owner| owner.give_with(Ordering::Relaxed);

/// Two threads that try to have the turn.
fn take_turns(give: Give) {
    let turn = Arc::new(EngineLock::new(UnsafeCell::new(0)));
    let attempt = move |turn: &EngineLock<UnsafeCell<u64>>| {
        let owner = turn.try_take();
        let had = owner.is_some();
        if let Some(owner) = owner {
            // SAFETY: whoever has the turn has it alone: loom checks it.
            owner.with_mut(|value| unsafe { *value += 1 });
            give(owner);
        }
        u64::from(had)
    };
    let other = {
        let turn = turn.clone();
        thread::spawn(move || attempt(&turn) + attempt(&turn))
    };
    let mine = attempt(&turn) + attempt(&turn);
    let had = mine + other.join().unwrap();
    let owner = turn.try_take().expect("nobody has it");
    // SAFETY: as above.
    assert_eq!(owner.with(|value| unsafe { *value }), had);
}

#[test]
fn loom_one_at_a_time_has_the_turn() {
    model(|| take_turns(AS_IT_IS));
}

#[test]
fn loom_finds_a_turn_that_is_given_without_release() {
    let found = catch_unwind(|| model(|| take_turns(WITHOUT_RELEASE)));
    assert!(found.is_err(), "loom did not notice");
}

/// When the owner nudges.
#[derive(Clone, Copy, PartialEq)]
enum Nudges {
    BeforeItsTurn,
    InItsTurn,
}

/// One thread leaves work while it has the turn, and nudges as its owner: without a fence.
/// Another announces that it sleeps, and has the turn for its second look.
fn sleep_beside_an_owner(nudges: Nudges) {
    struct Shared {
        turn: EngineLock<UnsafeCell<u64>>,
        sleep_word: AtomicU64,
        bell: AtomicU64,
    }
    let shared = Arc::new(Shared {
        turn: EngineLock::new(UnsafeCell::new(0)),
        sleep_word: AtomicU64::new(0),
        bell: AtomicU64::new(0),
    });
    let nudge = |shared: &Shared| {
        if WakeInterest::of_sleep_word(sleep::epoch_under_lock(&shared.sleep_word)).is_some() {
            shared.bell.fetch_add(1, Ordering::Release);
        }
    };
    let owner = {
        let shared = shared.clone();
        thread::spawn(move || {
            if nudges == Nudges::BeforeItsTurn {
                nudge(&shared);
            }
            // Who finds the turn taken leaves its work in another way: with a fence.
            let Some(owner) = shared.turn.try_take() else {
                return false;
            };
            // SAFETY: whoever has the turn has it alone: loom checks it.
            owner.with_mut(|work| unsafe { *work = 1 });
            if nudges == Nudges::InItsTurn {
                nudge(&shared);
            }
            drop(owner);
            true
        })
    };
    sleep::announce(&shared.sleep_word, WakeInterest::Data.sleep_word(1));
    let sleeps = match shared.turn.try_take() {
        // Somebody is at it: it looks again.
        None => false,
        Some(owner) => {
            // SAFETY: as above.
            let work = owner.with(|work| unsafe { *work });
            drop(owner);
            work == 0
        }
    };
    let leaves_work = owner.join().expect("no panic");
    let rung = shared.bell.load(Ordering::Acquire) > 0;
    assert!(!(sleeps && leaves_work) || rung, "it sleeps on");
}

#[test]
fn loom_who_owns_what_a_sleeper_looks_at_nudges_without_a_fence() {
    model(|| sleep_beside_an_owner(Nudges::InItsTurn));
}

#[test]
fn loom_finds_a_nudge_ahead_of_its_turn() {
    let found = catch_unwind(|| model(|| sleep_beside_an_owner(Nudges::BeforeItsTurn)));
    assert!(found.is_err(), "loom did not notice");
}
