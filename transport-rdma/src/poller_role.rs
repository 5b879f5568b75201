//! Who of a process is woken: the part that needs a proof, beside [`sleep`](crate::sleep).
//!
//! A process has a *keeper*, the thread that is always there for its fabrics, and may have
//! a *guest*: a thread that waits for what they bring, and would rather look for itself
//! than be told by the keeper, which costs a wake-up more. Each has a place to sleep in and
//! bells of its own; the sleep word says whose are rung. Whoever has the *duty* writes it.
//!
//! ```text
//!            keeper sleeps                      guest takes
//!   AWAKE <----------------> ASLEEP <--------------------------> GUEST
//!     ^      keeper woke                gives back, keeper sleeps  ^ |
//!     |                                                      takes | | goes away
//!     |            keeper is tired of waiting                      | v
//!     +----------------------------------------------------------- AWAY
//!
//!   word:  AWAKE even | ASLEEP odd, keeper | GUEST even, or odd, guest | AWAY even
//! ```
//!
//! The keeper sleeps on while a guest has the duty; it is woken by the clock alone. What it
//! owes then (a heartbeat, say) it does without the duty. A guest gives the duty back
//! without waking the keeper: it announces the keeper's sleep for it, and looks once more.
//!
//! *What could be lost.* The keeper, woken by the clock, notes its bells, finds that
//! the guest has the duty, looks, and sleeps again. If the guest gave back and a peer rang
//! before the bells were noted, that ring has been used up, and the peer rings no more in
//! this epoch. So the keeper leaves a mark *after* it has noted its bells; and the guest
//! takes the mark away *before* it announces. A guest that finds a mark when it gives back
//! wakes the keeper; a mark left later finds the duty given back, and the keeper takes it.
//! (`tests/loom_duty.rs` runs this very code, with and without the mark.)
//!
//! A guest that goes *away* keeps the duty on trust: it is back in a moment, and nobody is
//! rung meanwhile. The keeper must have been told to look soon whether it is.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const GUEST: u32 = 2;
const AWAY: u32 = 3;
const STATE: u32 = 3;
/// The keeper has been up while the guest had the duty.
const MARK: u32 = 4;
/// One more visit of a guest, above.
const VISIT: u32 = 8;

/// The duty of a process: with its keeper, at first.
#[derive(Debug)]
pub struct PollerRole(AtomicU32);

impl Default for PollerRole {
    fn default() -> Self {
        Self::new()
    }
}

/// What the keeper finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleHolder {
    /// The duty is its own.
    Mine,
    /// A guest has it, and is there.
    Guest,
    /// A guest has it, and is away. Of its visits, which.
    Away(u32),
}

impl PollerRole {
    /// With the keeper, which is awake.
    pub fn new() -> Self {
        Self(AtomicU32::new(AWAKE))
    }

    // ---- the keeper ----

    /// It has announced its sleep, and looked once more. A guest may take the duty from now on.
    pub fn poller_sleeps(&self) {
        // Release: the guest goes on with the sleep word from where it is.
        self.step(|state| state & !(STATE | MARK) | ASLEEP);
    }

    /// It is awake, and has noted the state of its bells. Whether it has the duty: then it
    /// is awake for all others, too; otherwise it looks, and sleeps on.
    pub fn poller_woke(&self) -> RoleHolder {
        self.keeper_woke_with(MARK)
    }

    /// [`Self::poller_woke`] with or without the mark: loom's planted bug.
    #[doc(hidden)]
    pub fn keeper_woke_unmarked(&self) -> RoleHolder {
        self.keeper_woke_with(0)
    }

    fn keeper_woke_with(&self, mark: u32) -> RoleHolder {
        let before = self.step(|state| match state & STATE {
            ASLEEP => state & !(STATE | MARK),
            GUEST => state | mark,
            _ => state,
        });
        match before & STATE {
            GUEST => RoleHolder::Follower,
            AWAY => RoleHolder::Leased(before / VISIT),
            _ => RoleHolder::Poller,
        }
    }

    /// Takes the duty of a guest that has been away since that visit. Whether it had.
    pub fn poller_reclaims(&self, visit: u32) -> bool {
        let before = self.step(|state| {
            if state & STATE == AWAY && state / VISIT == visit {
                state & !(STATE | MARK)
            } else {
                state
            }
        });
        before & STATE == AWAY && before / VISIT == visit
    }

    /// How often guests have taken it, round.
    pub fn terms(&self) -> u32 {
        self.0.load(Ordering::Relaxed) / VISIT
    }

    // ---- guests, of which one at a time has it ----

    /// Takes the duty if the keeper sleeps, or a guest is away.
    pub fn take(&self) -> bool {
        let takes = |state: u32| matches!(state & STATE, ASLEEP | AWAY);
        let before = self.step(|state| match takes(state) {
            true => (state & !(STATE | MARK) | GUEST).wrapping_add(VISIT),
            false => state,
        });
        takes(before)
    }

    /// To be called before the keeper's sleep is announced for it.
    pub fn begin_hand_back(&self) {
        self.step(|state| state & !MARK);
    }

    /// The keeper's sleep has been announced, and nothing was found since. Whether the
    /// keeper has to be woken all the same.
    pub fn hand_back(&self) -> bool {
        let before = self.step(|state| state & !(STATE | MARK) | ASLEEP);
        before & MARK != 0
    }

    /// A guest that is away says that it is still near, without coming back: it is waited
    /// for as if it had been there. Whether one is away.
    pub fn renew_lease(&self) -> bool {
        if !self.is_leased() {
            return false;
        }
        let before = self.step(|state| match state & STATE {
            AWAY => state.wrapping_add(VISIT),
            _ => state,
        });
        before & STATE == AWAY
    }

    /// Whether a guest is away.
    pub fn is_leased(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == AWAY
    }

    /// Keeps it without being there.
    pub fn lease(&self) {
        self.step(|state| state & !(STATE | MARK) | AWAY);
    }

    /// Whether the keeper is awake and has it.
    pub fn is_with_poller(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == AWAKE
    }

    /// One step; what was before it.
    fn step(&self, next: impl Fn(u32) -> u32) -> u32 {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            // AcqRel: whoever gets the duty goes on from where the last one left.
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
    fn it_is_with_one_of_them() {
        let duty = PollerRole::new();
        assert!(!duty.take(), "the keeper is awake");
        duty.poller_sleeps();
        assert!(duty.take() && !duty.take(), "one guest at a time");
        assert_eq!(duty.poller_woke(), RoleHolder::Follower);
        duty.begin_hand_back();
        assert!(!duty.hand_back(), "the keeper was up before");
        assert_eq!(duty.poller_woke(), RoleHolder::Poller);
        assert!(!duty.take());
        duty.poller_sleeps();
        assert!(duty.take());
        duty.begin_hand_back();
        assert_eq!(duty.poller_woke(), RoleHolder::Follower);
        assert!(duty.hand_back(), "the keeper is up");
    }

    #[test]
    fn who_is_away_is_waited_for_until_it_does_not_come() {
        let duty = PollerRole::new();
        duty.poller_sleeps();
        assert!(duty.take());
        duty.lease();
        let RoleHolder::Leased(first) = duty.poller_woke() else {
            panic!("it is away");
        };
        assert!(duty.take());
        assert!(!duty.poller_reclaims(first), "it is there");
        duty.lease();
        assert!(!duty.poller_reclaims(first), "it has been there");
        let RoleHolder::Leased(second) = duty.poller_woke() else {
            panic!("it is away");
        };
        assert!(duty.poller_reclaims(second));
        assert!(!duty.take() && duty.is_with_poller());
    }

    #[test]
    fn who_looks_in_is_waited_for_anew() {
        let duty = PollerRole::new();
        assert!(!duty.renew_lease(), "the keeper is awake");
        duty.poller_sleeps();
        assert!(!duty.renew_lease(), "it is the keeper's");
        assert!(duty.take());
        assert!(!duty.renew_lease(), "it is there");
        duty.lease();
        let RoleHolder::Leased(first) = duty.poller_woke() else {
            panic!("it is away");
        };
        assert!(duty.renew_lease());
        assert!(!duty.poller_reclaims(first), "it has looked in");
        let RoleHolder::Leased(second) = duty.poller_woke() else {
            panic!("it is away");
        };
        assert!(duty.poller_reclaims(second));
        assert!(!duty.renew_lease(), "the keeper has it");
    }

    #[test]
    fn terms_are_counted_round() {
        let duty = PollerRole(AtomicU32::new(!(STATE | MARK) | ASLEEP));
        assert!(duty.take());
        duty.lease();
        assert_eq!(duty.poller_woke(), RoleHolder::Leased(0));
    }
}
