//! Threads that wait for data look for it themselves.
//!
//! The polling thread is the keeper of the participant's sleep, and a thread in a WaitSet, or
//! one that calls listeners or wakes streams, is its guest (see
//! [`duty`](spindle_dds_transport::poller_role)): it steps the engine, sleeps in the fabric, is rung by
//! peers, and finds its condition true. Were it woken by the polling thread, each sample would
//! cost two wake-ups, of which one alone costs more than all else.
//!
//! ```text
//!   waits:      steps beside the keeper while that is awake
//!               takes the duty | steps until there is nothing | sleeps, is rung, steps ...
//!   is raised:  had to sleep for it   the keeper's sleep is announced in its place, one
//!                                     more look, and it goes: a peer's push wakes the keeper
//!               came while it looked  it goes away on trust, and is back in a moment; the
//!                                     keeper looks within two milliseconds whether it is
//! ```
//!
//! Who comes back late once is not trusted for some time, and who does so again for longer:
//! acknowledgements and heartbeats of a participant must not wait for what its application
//! computes. One thread at a time is the guest; the others wait to be told, by whoever steps.

use std::iter;
use std::mem;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::StepOutcome;
use spindle_dds_transport::{Fabric, ParkSlots, WakeInterest};

use super::backoff::Backoff;
use super::followers::{BACK_WITHIN, NEGLECTED_AFTER, UPKEEP_WITHIN, covers};
use crate::condition::{DataWaiter, Signal};
use crate::driver::session::Session;

/// How often a guest that leaves looks for more, before it leaves that to the keeper.
const LOOKS_MAX: u32 = 8;
/// How often a thread finds the keeper awake before it waits to be told.
const KEEPER_AWAKE_MAX: usize = 20;
/// The same for one that polls, where nobody waits for data and there are more members than
/// processors: somebody else may have its processor, for as long as the scheduler lets threads
/// run in one go. A keeper that looked in its place would take another's, and be rung for all
/// that comes meanwhile.
const BACK_WITHIN_CROWDED: Duration = Duration::from_millis(2);

/// How a visit ended.
enum Visit {
    Raised,
    TimedOut,
    /// It cannot look for itself here: it waits to be told.
    Refused,
}

impl DataWaiter for Session {
    fn wait(&self, signal: &Signal, deadline: Option<Instant>) -> bool {
        signal.set_polls_itself(true);
        let visit = self.visit(signal, deadline);
        signal.set_polls_itself(false);
        match visit {
            Visit::Raised => true,
            Visit::TimedOut => false,
            Visit::Refused => self.wait_to_be_told(signal, deadline),
        }
    }

    fn rouse(&self) {
        self.handle().fabric().nudge();
    }

    fn glance(&self) -> bool {
        self.glance_once()
    }
}

impl Session {
    /// Blocks until the signal is raised, of a thread of the participant's own: as one that
    /// waits for data, or not.
    pub(crate) fn wait_as(&self, signal: &Signal, for_data: bool) {
        match for_data {
            true => self.wait(signal, None),
            false => self.wait_to_be_told(signal, None),
        };
    }

    /// Blocks until somebody else raises the signal, or until `deadline`; says which. Backoff
    /// for a while before it sleeps.
    fn wait_to_be_told(&self, signal: &Signal, deadline: Option<Instant>) -> bool {
        let mut looks = Backoff::default();
        let is_early = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        while !signal.is_raised() && is_early() && looks.again(self.followers().backoff_limits()) {}
        signal.wait(deadline)
    }

    /// Waits for the duty, and steps meanwhile: the keeper may be about to sleep. Where there is
    /// much to do, it is not: both do it.
    fn visit(&self, signal: &Signal, deadline: Option<Instant>) -> Visit {
        if !self.handle().fabric().has_follower_slot() {
            return Visit::Refused;
        }
        self.followers().empty_reads.somebody_waits();
        let mut looks = Backoff::default();
        let begun = loop {
            let visit = self.knock(signal, deadline);
            if visit.is_some() || !looks.again(self.followers().backoff_limits()) {
                break visit;
            }
        };
        if let Some(visit) = begun {
            return visit;
        }
        // The keeper goes to sleep for who has nothing to do.
        let visitors = &self.followers().visitors;
        visitors.fetch_add(1, Ordering::Relaxed);
        let visits = iter::repeat_with(|| {
            thread::yield_now();
            self.knock(signal, deadline)
        });
        let visit = visits.take(KEEPER_AWAKE_MAX).flatten().next();
        visitors.fetch_sub(1, Ordering::Relaxed);
        visit.unwrap_or(Visit::Refused)
    }

    /// The visit, if that begins, or is over before; else a step, beside the keeper.
    fn knock(&self, signal: &Signal, deadline: Option<Instant>) -> Option<Visit> {
        let duty = &self.followers().duty;
        if self.is_stopping() || self.hold().is_alone() {
            return Some(Visit::Refused);
        }
        if duty.take() {
            self.followers().comes(self.now());
            return Some(self.sit(signal, deadline));
        }
        if !duty.is_with_poller() {
            return Some(Visit::Refused);
        }
        self.step_briefly();
        signal.is_raised().then_some(Visit::Raised)
    }

    /// With the duty.
    fn sit(&self, signal: &Signal, deadline: Option<Instant>) -> Visit {
        let fabric = self.handle().fabric();
        fabric.announce_awake();
        let (mut looks, mut slept, mut woke) = (Backoff::default(), false, false);
        let mut want = WakeInterest::DataAndAcks;
        let visit = loop {
            let outcome = self.step_on(mem::take(&mut woke));
            want = outcome.map_or(want, |outcome| outcome.want);
            if signal.is_raised() {
                break Visit::Raised;
            }
            let over = self.is_stopping()
                || self.hold().is_alone()
                || outcome.is_some_and(|outcome| outcome.stopped);
            if over {
                break Visit::Refused;
            }
            match outcome {
                // Somebody else steps, for a moment.
                None => thread::yield_now(),
                Some(outcome) if outcome.progress => looks = Backoff::default(),
                Some(outcome) => {
                    self.keeps_time(outcome.due);
                    if looks.again(self.followers().backoff_limits()) {
                        continue;
                    }
                    looks = Backoff::default();
                    (slept, woke) = (true, true);
                    if !self.sleep_as_guest(signal, outcome, deadline) {
                        break Visit::Refused;
                    }
                    let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if over && !signal.is_raised() {
                        break Visit::TimedOut;
                    }
                }
            }
        };
        // Somebody may wait for acknowledgements, who has not gone anywhere.
        let leaves_nothing = !slept && want == WakeInterest::Data;
        match visit {
            Visit::Raised if leaves_nothing && self.followers().trusts() => {
                self.followers().goes(self.now());
                self.go_away(BACK_WITHIN);
            }
            _ => self.hand_back(want, matches!(visit, Visit::Refused)),
        }
        visit
    }

    /// False where it cannot be woken.
    fn sleep_as_guest(
        &self,
        signal: &Signal,
        outcome: StepOutcome,
        deadline: Option<Instant>,
    ) -> bool {
        let fabric = self.handle().fabric();
        if self.upkeep() != Some(false) {
            return true;
        }
        if !fabric.announce_follower(outcome.want) {
            return false;
        }
        // The second look: what was pushed, or raised, before the announcement was seen.
        let asleep = self.step().is_some_and(|again| {
            self.keeps_time(again.due);
            !again.progress && !again.stopped && covers(outcome.want, again.want)
        });
        if asleep
            && !signal.is_raised()
            && !self.is_stopping()
            && let Some(tight) = self.tight()
        {
            let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
            let timeout = [left, tight.map(|_| NEGLECTED_AFTER)];
            let rung = fabric.park_follower(timeout.into_iter().flatten().min());
            self.woke_up();
            self.neglect(rung, tight);
        }
        fabric.announce_awake();
        true
    }

    /// How soon a thread that polls is expected back.
    pub(crate) fn polls_within(&self) -> Duration {
        match self.is_crowded() && self.followers().empty_reads.nobody_waits() {
            true => BACK_WITHIN_CROWDED,
            false => BACK_WITHIN,
        }
    }

    /// There are more members than processors that this one may run on.
    pub(crate) fn is_crowded(&self) -> bool {
        self.control_queue().members() > self.followers().processors
    }

    /// It will be back in a moment, within that time.
    pub(crate) fn go_away(&self, within: Duration) {
        let (seat, fabric) = (self.followers(), self.handle().fabric());
        fabric.announce_leased();
        // A commit that found the engine being stepped, and nobody asleep.
        if self.handle().has_left_commits() {
            self.step();
        }
        seat.aways.fetch_add(1, Ordering::Relaxed);
        let nanos = within.as_nanos() as u64;
        seat.back_within.store(nanos, Ordering::Relaxed);
        seat.duty.lease();
        self.has_keeper_look(within);
    }

    /// It may be long: the keeper is rung from now on.
    fn hand_back(&self, mut want: WakeInterest, mut wakes: bool) {
        let (seat, fabric) = (self.followers(), self.handle().fabric());
        seat.duty.begin_hand_back();
        for look in 1.. {
            if !fabric.announce_poller(want) {
                wakes = true;
                break;
            }
            // The second look, in the keeper's place.
            let again = self.step();
            let asleep = again.is_some_and(|again| {
                self.keeps_time(again.due);
                !again.progress && covers(want, again.want)
            });
            if asleep || wakes {
                break;
            }
            wakes = look == LOOKS_MAX;
            want = again.map_or(want, |again| again.want);
        }
        if seat.duty.hand_back() || wakes {
            fabric.wake_poller();
        } else {
            self.has_keeper_look(UPKEEP_WITHIN);
        }
    }

    /// The keeper does what is due, but sleeps until it knew of.
    fn keeps_time(&self, due: u64) {
        if due != 0 && due < self.followers().looks_at.load(Ordering::Relaxed) {
            self.followers().looks_at(due);
            self.handle().fabric().wake_poller();
        }
    }

    /// The keeper looks within twice that time.
    fn has_keeper_look(&self, within: Duration) {
        let within = within.as_nanos() as u64;
        let soon = self.now() + within;
        if self.followers().looks_at.load(Ordering::Relaxed) > soon + within {
            self.followers().looks_at(soon);
            self.handle().fabric().wake_poller();
        }
    }
}
