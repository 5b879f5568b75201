//! Which thread of a process polls its fabrics, and which is woken: the part that needs a
//! proof, beside [`sleep`](crate::sleep). The pattern is leader/followers.
//!
//! A process has a *poller*, a thread that exists as long as its fabrics. It may have a
//! *follower*: an application thread that waits for data and polls by itself, because being
//! told by the poller would cost one more wake-up. Each has a slot to park in and doorbells
//! of its own; the sleep word says which of them peers wake. The thread that holds the
//! *poller role* writes the sleep word.
//!
//! ```text
//!           poller sleeps                     follower takes the role
//!   AWAKE <---------------> ASLEEP <-----------------------------------> FOLLOWER
//!     ^     poller woke               hands it back, poller sleeps on    ^  |
//!     |                                                     takes it     |  | leaves it
//!     |         poller reclaims an expired lease                         |  v on a lease
//!     +--------------------------------------------------------------- LEASED
//!
//!   sleep word:  AWAKE even | ASLEEP odd, poller | FOLLOWER even, or odd, follower
//!                LEASED even
//! ```
//!
//! The poller stays parked while a follower holds the role; only a timeout wakes it. Work
//! that is due then (a heartbeat, say) it does without the role. A follower hands the role
//! back without waking the poller: it announces sleep on the poller's behalf and takes the
//! second look for it.
//!
//! **The hazard.** The poller, woken by its timeout, notes its doorbells, finds that a
//! follower holds the role, looks for work, and parks again. If the follower handed the
//! role back and a peer signalled the poller before the doorbells were noted, that wake-up
//! is consumed, and the peer does not wake this process again in the same epoch. Therefore
//! the poller sets a mark *after* it has noted its doorbells, and the follower clears the
//! mark *before* it announces. A follower that finds the mark set when it hands back wakes
//! the poller. A mark that would be set later finds the role handed back, and the poller
//! takes it. (`tests/loom_poller_role.rs` runs this code under loom. A mutant that does not
//! set the mark makes it deadlock.)
//!
//! **The lease.** A follower that polls now and then holds the role on a *lease* between
//! its polls. Peers wake no thread meanwhile, so the poller must have been told to look
//! soon. Each poll starts a new *term*; the poller reclaims the role if it finds the same
//! term twice.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const FOLLOWER: u32 = 2;
const LEASED: u32 = 3;
const STATE: u32 = 3;
/// The poller has been up while a follower held the role.
const MARK: u32 = 4;
/// One term, in the bits above.
const TERM: u32 = 8;

/// The poller role of a process; at first the poller holds it.
///
/// One word: state in bits 0 and 1, the mark in bit 2, the number of terms (modulo 2^29) in
/// the rest.
#[derive(Debug)]
pub struct PollerRole(AtomicU32);

impl Default for PollerRole {
    fn default() -> Self {
        Self::new()
    }
}

/// Which thread holds the role, as the poller finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleHolder {
    /// The poller itself.
    Poller,
    /// A follower that polls or is parked.
    Follower,
    /// A follower that is not polling at the moment; the number of its term.
    Leased(u32),
}

impl PollerRole {
    /// Held by the poller, which is awake.
    pub fn new() -> Self {
        Self(AtomicU32::new(AWAKE))
    }

    // ---- called by the poller ----

    /// The poller has announced its sleep and looked once more. From now on a follower may
    /// take the role.
    pub fn poller_sleeps(&self) {
        // Release: the follower continues with the sleep word as the poller left it.
        self.update(|state| state & !(STATE | MARK) | ASLEEP);
    }

    /// The poller is awake and has noted its doorbells. If it holds the role, it is awake
    /// for its peers, too; otherwise it looks for work that is due and parks again.
    pub fn poller_woke(&self) -> RoleHolder {
        let before = self.update(|state| match state & STATE {
            ASLEEP => state & !(STATE | MARK),
            FOLLOWER => state | MARK,
            _ => state,
        });
        match before & STATE {
            FOLLOWER => RoleHolder::Follower,
            LEASED => RoleHolder::Leased(before / TERM),
            _ => RoleHolder::Poller,
        }
    }

    /// Takes the role back if its lease is still of `term`; returns whether it was.
    pub fn poller_reclaims(&self, term: u32) -> bool {
        let before = self.update(|state| {
            if state & STATE == LEASED && state / TERM == term {
                state & !(STATE | MARK)
            } else {
                state
            }
        });
        before & STATE == LEASED && before / TERM == term
    }

    /// Number of terms so far, modulo 2^29.
    pub fn terms(&self) -> u32 {
        self.0.load(Ordering::Relaxed) / TERM
    }

    // ---- called by followers; one at a time holds the role ----

    /// Takes the role if the poller sleeps or the role is on a lease.
    pub fn take(&self) -> bool {
        let takes = |state: u32| matches!(state & STATE, ASLEEP | LEASED);
        let before = self.update(|state| match takes(state) {
            true => (state & !(STATE | MARK) | FOLLOWER).wrapping_add(TERM),
            false => state,
        });
        takes(before)
    }

    /// Clears the mark. To be called before sleep is announced on the poller's behalf.
    pub fn begin_hand_back(&self) {
        self.update(|state| state & !MARK);
    }

    /// Hands the role back; sleep has been announced on the poller's behalf, and the second
    /// look has found nothing. Returns whether the poller has to be woken all the same.
    pub fn hand_back(&self) -> bool {
        let before = self.update(|state| state & !(STATE | MARK) | ASLEEP);
        before & MARK != 0
    }

    /// Starts a new term of a role that is on a lease, so that the poller does not reclaim
    /// it yet. Returns whether it is on a lease.
    pub fn renew_lease(&self) -> bool {
        if !self.is_leased() {
            return false;
        }
        let before = self.update(|state| match state & STATE {
            LEASED => state.wrapping_add(TERM),
            _ => state,
        });
        before & STATE == LEASED
    }

    /// Whether the role is on a lease: its follower is not polling at the moment.
    pub fn is_leased(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == LEASED
    }

    /// Keeps the role on a lease while the follower does something else.
    pub fn lease(&self) {
        self.update(|state| state & !(STATE | MARK) | LEASED);
    }

    /// Whether the poller is awake and holds the role.
    pub fn is_with_poller(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == AWAKE
    }

    /// Changes the word atomically; returns the word before.
    fn update(&self, next: impl Fn(u32) -> u32) -> u32 {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            // AcqRel: the thread that gets the role continues from where the last holder
            // left it.
            let swapped = self.0.compare_exchange_weak(
                state,
                next(state),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(before) => return before,
                Err(now) => state = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_holds_the_role() {
        let role = PollerRole::new();
        assert!(!role.take(), "the poller is awake");
        role.poller_sleeps();
        assert!(role.take() && !role.take(), "one follower at a time");
        assert_eq!(role.poller_woke(), RoleHolder::Follower);
        role.begin_hand_back();
        assert!(!role.hand_back(), "the poller was up before");
        assert_eq!(role.poller_woke(), RoleHolder::Poller);
        assert!(!role.take());
        role.poller_sleeps();
        assert!(role.take());
        role.begin_hand_back();
        assert_eq!(role.poller_woke(), RoleHolder::Follower);
        assert!(role.hand_back(), "the poller is up");
    }

    #[test]
    fn a_lease_is_reclaimed_only_in_the_term_in_which_it_was_found() {
        let role = PollerRole::new();
        role.poller_sleeps();
        assert!(role.take());
        role.lease();
        let RoleHolder::Leased(first) = role.poller_woke() else {
            panic!("leased");
        };
        assert!(role.take());
        assert!(!role.poller_reclaims(first), "its follower polls");
        role.lease();
        assert!(!role.poller_reclaims(first), "its follower has polled");
        let RoleHolder::Leased(second) = role.poller_woke() else {
            panic!("leased");
        };
        assert!(role.poller_reclaims(second));
        assert!(!role.take() && role.is_with_poller());
    }

    #[test]
    fn a_renewed_lease_is_not_reclaimed() {
        let role = PollerRole::new();
        assert!(!role.renew_lease(), "the poller is awake");
        role.poller_sleeps();
        assert!(!role.renew_lease(), "the poller holds the role");
        assert!(role.take());
        assert!(!role.renew_lease(), "a follower polls");
        role.lease();
        let RoleHolder::Leased(first) = role.poller_woke() else {
            panic!("leased");
        };
        assert!(role.renew_lease());
        assert!(!role.poller_reclaims(first), "renewed");
        let RoleHolder::Leased(second) = role.poller_woke() else {
            panic!("leased");
        };
        assert!(role.poller_reclaims(second));
        assert!(!role.renew_lease(), "the poller holds the role");
    }

    #[test]
    fn terms_wrap_around() {
        let role = PollerRole(AtomicU32::new(!(STATE | MARK) | ASLEEP));
        assert!(role.take());
        role.lease();
        assert_eq!(role.poller_woke(), RoleHolder::Leased(0));
    }
}
