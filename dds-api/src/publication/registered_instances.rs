//! The instances that a writer has registered: with `register_instance`, or by writing or disposing
//! of them (DDS 1.4 §2.2.2.4.2.5).
//!
//! ```text
//!   publish --key hash--> SeenInstances of the slot --first time--> RegisteredInstances of the writer
//! ```
//!
//! A message only asks whether its instance is that of the slot's last message, or another one that the
//! slot has seen, which takes no lock.
//!
//! Invariants: a slot has seen instances in one round of one writer; what it has seen in the present
//! round of its writer is registered, or is one too many. A round ends when an instance is
//! unregistered. Rounds are numbered process-wide, as slots go from one writer to another.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spindle_dds_idl_runtime::KeyHash;

/// Instances that are registered by being written, at most: the writer of an application that never
/// unregisters any does not grow for ever.
pub(super) const WRITTEN_MAX: usize = 1 << 18;

/// The instances of one writer, by their names (see [`keys`](crate::keys)).
#[derive(Debug)]
pub(super) struct RegisteredInstances {
    round: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: HashSet<KeyHash>,
    /// Instances were written that are one too many, and are not among `names`.
    is_partial: bool,
}

/// Begins at 1: a new slot has seen nothing of any round.
static NEXT_ROUND: AtomicU64 = AtomicU64::new(1);

fn next_round() -> u64 {
    NEXT_ROUND.fetch_add(1, Ordering::Relaxed)
}

impl RegisteredInstances {
    pub(super) fn new() -> Self {
        Self {
            round: AtomicU64::new(next_round()),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present round. A thread that writes an instance while another one unregisters it has
    /// it registered or not.
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }

    /// The application registers an instance.
    pub(super) fn register(&self, name: KeyHash) {
        self.state().names.insert(name);
    }

    /// An instance is written or disposed of. Whether it was not registered, and is now.
    pub(super) fn register_written(&self, name: KeyHash) -> bool {
        let mut state = self.state();
        if state.names.len() >= WRITTEN_MAX && !state.names.contains(&name) {
            state.is_partial = true;
            return false;
        }
        state.names.insert(name)
    }

    pub(super) fn unregister(&self, name: KeyHash) {
        self.state().names.remove(&name);
        self.round.store(next_round(), Ordering::Relaxed);
    }

    pub(super) fn has(&self, name: KeyHash) -> bool {
        self.state().names.contains(&name)
    }

    /// Whether instances may be registered that it does not have.
    pub(super) fn is_partial(&self) -> bool {
        self.state().is_partial
    }

    pub(super) fn len(&self) -> usize {
        self.state().names.len()
    }

    /// Bytes that it has allocated.
    pub(super) fn allocated(&self) -> usize {
        self.state().names.capacity() * (size_of::<KeyHash>() + 1)
    }
}

/// The instances that a slot has seen in a round, by the key hashes in message headers: one at each
/// of its places, the last that belongs there.
#[derive(Debug, Default)]
pub(super) struct SeenInstances {
    round: u64,
    /// The one that was seen last, if any was in this round.
    last: KeyHash,
    /// Empty, or a power of two of them.
    hashes: Vec<KeyHash>,
}

const PLACES_MIN: usize = 16;
const PLACES_MAX: usize = 1024;

impl SeenInstances {
    /// Whether the instance with this key hash was seen last, in this round.
    #[inline(always)]
    pub(super) fn is_last(&self, hash: KeyHash, round: u64) -> bool {
        self.round == round && self.last == hash
    }

    /// Whether the instance with this key hash was seen in this round. It is seen again.
    pub(super) fn see(&mut self, hash: KeyHash, round: u64) -> bool {
        let mask = self.hashes.len().wrapping_sub(1);
        let known = self.round == round && self.hashes.get(place(hash) & mask) == Some(&hash);
        if known {
            self.last = hash;
        }
        known
    }

    /// The instance with this key hash is seen. So many instances are `registered`.
    pub(super) fn note(&mut self, hash: KeyHash, round: u64, registered: usize) {
        let places = (2 * registered).clamp(PLACES_MIN, PLACES_MAX);
        let places = places.next_power_of_two();
        if self.round != round || self.hashes.len() < places {
            self.round = round;
            let places = places.max(self.hashes.len());
            self.hashes.clear();
            self.hashes.resize(places, AT_FIRST_PLACE);
            self.hashes[0] = AT_ODD_PLACE;
        }
        let mask = self.hashes.len() - 1;
        self.hashes[place(hash) & mask] = hash;
        self.last = hash;
    }
}

/// What is at the places where nothing was seen: hashes that do not belong there.
const AT_FIRST_PLACE: KeyHash = KeyHash([0; 16]);
const AT_ODD_PLACE: KeyHash = KeyHash(1_u128.to_ne_bytes());

#[inline]
fn place(hash: KeyHash) -> usize {
    let halves = u128::from_ne_bytes(hash.0);
    let mixed = (halves as u64 ^ (halves >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u128) -> KeyHash {
        KeyHash(number.to_ne_bytes())
    }

    /// Looked at in both ways.
    fn has(seen: &mut SeenInstances, key: u128, round: u64) -> bool {
        let is_last = seen.is_last(hash(key), round);
        let is_seen = seen.see(hash(key), round);
        assert!(is_seen || !is_last);
        assert_eq!(seen.is_last(hash(key), round), is_seen);
        is_seen
    }

    #[test]
    fn nothing_is_seen_before_it_is_noted() {
        assert_eq!(place(AT_FIRST_PLACE), 0);
        assert_eq!(place(AT_ODD_PLACE) & 1, 1);
        let mut seen = SeenInstances::default();
        let keys = || (0..5000).chain((0..5000).map(|key| key << 64));
        for (round, registered) in [(1, 0), (2, 1), (3, 300), (4, 5000), (5, 0)] {
            assert!(keys().all(|key| !has(&mut seen, key, round)));
            seen.note(hash(u128::MAX), round, registered);
            assert!(has(&mut seen, u128::MAX, round));
            assert!(keys().all(|key| !has(&mut seen, key, round)), "{round}");
        }
        assert_eq!(seen.hashes.len(), PLACES_MAX);
    }

    #[test]
    fn what_is_noted_is_seen_until_the_round_ends_or_another_takes_its_place() {
        let mut seen = SeenInstances::default();
        for key in 0..8 {
            seen.note(hash(key), 7, key as usize + 1);
            assert!(seen.is_last(hash(key), 7) && has(&mut seen, key, 7));
        }
        let left = (0..8).filter(|key| has(&mut seen, *key, 7)).count();
        assert!((1..=8).contains(&left));
        assert!((0..8).all(|key| !has(&mut seen, key, 8)));
    }

    #[test]
    fn an_instance_is_registered_until_it_is_unregistered() {
        let instances = RegisteredInstances::new();
        let round = instances.round();
        assert!(instances.register_written(hash(1)));
        assert!(!instances.register_written(hash(1)));
        instances.register(hash(2));
        assert!(instances.has(hash(1)) && instances.has(hash(2)) && !instances.has(hash(3)));
        assert_eq!((instances.round(), instances.len()), (round, 2));
        instances.unregister(hash(1));
        assert!(!instances.has(hash(1)) && instances.has(hash(2)));
        assert_ne!(instances.round(), round);
        assert_ne!(RegisteredInstances::new().round(), instances.round());
    }

    #[test]
    fn instances_that_are_written_are_bounded() {
        let instances = RegisteredInstances::new();
        for key in 0..WRITTEN_MAX as u128 {
            assert!(instances.register_written(hash(key)));
        }
        assert!(!instances.is_partial());
        assert!(!instances.register_written(hash(0)), "it is registered");
        assert!(!instances.is_partial());
        assert!(!instances.register_written(hash(u128::MAX)));
        assert!(instances.is_partial() && !instances.has(hash(u128::MAX)));
        instances.register(hash(u128::MAX));
        assert_eq!(instances.len(), WRITTEN_MAX + 1);
    }
}
