//! Threads that wait for data poll for themselves: the leader/followers pattern.
//!
//! The polling thread has the poller role by default. A thread in a WaitSet, or one that calls
//! listeners or wakes streams, is its follower: it takes the role over (see
//! [`poller_role`](spindle_dds_transport::poller_role)), steps the engine, sleeps in the fabric, is
//! woken by the doorbells of peers, and finds its condition true. If the polling thread woke it,
//! each sample would cost two wake-ups, and one wake-up costs more than all else.
//!
//! ```text
//!   waits:      steps beside the polling thread while that is awake
//!               takes the role | steps until there is nothing | sleeps, is woken, steps ...
//!   is raised:  had to sleep for it   it announces the polling thread's sleep in its place, steps
//!                                     once more, and hands the role back: a push wakes that thread
//!               it came meanwhile     it leases the role and leaves, expected back in a moment;
//!                                     the polling thread checks within two milliseconds
//! ```
//!
//! A follower that returns late is not trusted with a lease for some time, and for longer each
//! time: acknowledgements and heartbeats of a participant must not wait for what its application
//! computes. One thread at a time is the follower; the others wait until a thread that steps wakes
//! them.

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

/// Steps of a follower that hands the role back, before it wakes the polling thread for the rest.
const LAST_STEPS_MAX: u32 = 8;
/// How often a thread finds the polling thread awake before it waits until it is woken.
const POLLER_AWAKE_MAX: usize = 20;
/// [`BACK_WITHIN`] for a thread that polls, if no thread waits for data and there are more members
/// than processors. Another thread may have its processor for a time slice of the scheduler. If the
/// polling thread stepped in its place, that would take the processor of yet another thread, and
/// doorbells would wake the polling thread for all that comes meanwhile.
const BACK_WITHIN_CROWDED: Duration = Duration::from_millis(2);

/// How a follower's wait ended.
enum Followed {
    Raised,
    TimedOut,
    /// The thread cannot poll here: it waits until it is woken.
    Refused,
}

impl DataWaiter for Session {
    fn wait(&self, signal: &Signal, deadline: Option<Instant>) -> bool {
        signal.set_polls_itself(true);
        let followed = self.follow(signal, deadline);
        signal.set_polls_itself(false);
        match followed {
            Followed::Raised => true,
            Followed::TimedOut => false,
            Followed::Refused => self.wait_until_woken(signal, deadline),
        }
    }

    fn rouse(&self) {
        self.handle().fabric().nudge();
    }

    fn step_once(&self) -> bool {
        self.step_for_read()
    }
}

impl Session {
    /// Blocks a thread of the participant until the signal is raised, or until `deadline`: as a follower
    /// if it waits for data.
    pub(crate) fn wait_in_thread(
        &self,
        signal: &Signal,
        for_data: bool,
        deadline: Option<Instant>,
    ) {
        match for_data {
            true => self.wait(signal, deadline),
            false => self.wait_until_woken(signal, deadline),
        };
    }

    /// Blocks until another thread raises the signal, or until `deadline`: false then. Backs off
    /// for a while before it sleeps.
    fn wait_until_woken(&self, signal: &Signal, deadline: Option<Instant>) -> bool {
        let mut backoff = Backoff::default();
        let is_early = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        while !signal.is_raised() && is_early() && backoff.again(self.backoff_limits()) {}
        signal.wait(deadline)
    }

    /// Waits for the poller role, and steps meanwhile: the polling thread may be about to sleep. If
    /// there is much to do it does not sleep, and both threads step.
    fn follow(&self, signal: &Signal, deadline: Option<Instant>) -> Followed {
        self.followers().empty_reads.note_waiting_thread();
        let mut backoff = Backoff::default();
        let begun = loop {
            let followed = self.try_follow(signal, deadline);
            if followed.is_some() || !backoff.again(self.backoff_limits()) {
                break followed;
            }
        };
        if let Some(followed) = begun {
            return followed;
        }
        // The polling thread goes to sleep when it sees that a follower waits.
        let waiting = &self.followers().waiting;
        waiting.fetch_add(1, Ordering::Relaxed);
        let attempts = iter::repeat_with(|| {
            thread::yield_now();
            self.try_follow(signal, deadline)
        });
        let followed = attempts.take(POLLER_AWAKE_MAX).flatten().next();
        waiting.fetch_sub(1, Ordering::Relaxed);
        followed.unwrap_or(Followed::Refused)
    }

    /// Follows, if the role is free; else steps once beside the polling thread. `None`: try again.
    fn try_follow(&self, signal: &Signal, deadline: Option<Instant>) -> Option<Followed> {
        let role = &self.followers().role;
        if self.is_stopping() || self.pause().is_exclusive() {
            return Some(Followed::Refused);
        }
        if role.take() {
            self.followers().note_return(self.now());
            return Some(self.poll_as_follower(signal, deadline));
        }
        if !role.is_with_poller() {
            return Some(Followed::Refused);
        }
        self.step_briefly();
        signal.is_raised().then_some(Followed::Raised)
    }

    /// Polls with the poller role until the signal is raised.
    fn poll_as_follower(&self, signal: &Signal, deadline: Option<Instant>) -> Followed {
        let fabric = self.handle().fabric();
        fabric.announce_follower_awake();
        let (mut backoff, mut slept) = (Backoff::default(), false);
        // It has just slept; a doorbell has woken it.
        let (mut woke, mut woken) = (false, false);
        let mut want = WakeInterest::Room;
        let followed = loop {
            let outcome = self.step_repeatedly(mem::take(&mut woke));
            if mem::take(&mut woken) && !signal.is_raised() {
                self.note_work_after_wake(outcome);
            }
            want = outcome.map_or(want, |outcome| outcome.want);
            if signal.is_raised() {
                break Followed::Raised;
            }
            let over = self.is_stopping()
                || self.pause().is_exclusive()
                || outcome.is_some_and(|outcome| outcome.stopped);
            if over {
                break Followed::Refused;
            }
            match outcome {
                // Another thread steps, for a moment.
                None => thread::yield_now(),
                Some(outcome) if outcome.progress => backoff = Backoff::default(),
                Some(outcome) => {
                    self.note_due(outcome.due);
                    if backoff.again(self.backoff_limits()) {
                        continue;
                    }
                    backoff = Backoff::default();
                    (slept, woke) = (true, true);
                    woken = self.sleep_as_follower(signal, outcome, deadline);
                    let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    if over && !signal.is_raised() {
                        break Followed::TimedOut;
                    }
                }
            }
        };
        // Otherwise a writer or a message of this participant may wait for others.
        let leaves_nothing = !slept && want == WakeInterest::Data;
        match followed {
            Followed::Raised if leaves_nothing && self.followers().trusts() => {
                self.followers().note_lease(self.now());
                self.leave_on_lease(BACK_WITHIN);
            }
            _ => self.hand_back(want, matches!(followed, Followed::Refused)),
        }
        followed
    }

    /// Returns whether a doorbell has woken it.
    fn sleep_as_follower(
        &self,
        signal: &Signal,
        outcome: StepOutcome,
        deadline: Option<Instant>,
    ) -> bool {
        let fabric = self.handle().fabric();
        let mut woken = false;
        if self.upkeep() != Some(false) {
            return woken;
        }
        fabric.announce_follower(outcome.want);
        // The second step: for what was pushed or raised before peers saw the announcement.
        let asleep = self.step().is_some_and(|again| {
            self.note_due(again.due);
            !again.progress && !again.stopped && covers(outcome.want, again.want)
        });
        if asleep
            && !signal.is_raised()
            && !self.is_stopping()
            && let Some(selects) = self.selects_if_nearly_full()
        {
            let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
            let timeout = [left, selects.map(|_| NEGLECTED_AFTER)];
            woken = fabric.park_follower(timeout.into_iter().flatten().min());
            self.woke_up();
            self.copy_out_neglected(woken, selects);
        }
        fabric.announce_awake();
        woken
    }

    /// How soon a thread that polls with `take` or `read` is expected back.
    pub(crate) fn polls_within(&self) -> Duration {
        match self.is_crowded() && self.followers().empty_reads.no_thread_waits() {
            true => BACK_WITHIN_CROWDED,
            false => BACK_WITHIN,
        }
    }

    /// Whether there are more members than processors for this process.
    pub(crate) fn is_crowded(&self) -> bool {
        self.control_queue().members() > self.followers().processors
    }

    /// Leases the role: this thread is expected back within that time.
    pub(crate) fn leave_on_lease(&self, within: Duration) {
        let (followers, fabric) = (self.followers(), self.handle().fabric());
        fabric.announce_leased();
        // A commit found the engine locked, and no thread asleep.
        if self.handle().has_left_commits() {
            self.step();
        }
        followers.leases.fetch_add(1, Ordering::Relaxed);
        let nanos = within.as_nanos() as u64;
        followers.back_within.store(nanos, Ordering::Relaxed);
        followers.role.lease();
        self.limit_poller_sleep(within);
    }

    /// Gives the role back to the polling thread: doorbells wake that thread from now on.
    fn hand_back(&self, mut want: WakeInterest, mut wakes: bool) {
        let (followers, fabric) = (self.followers(), self.handle().fabric());
        followers.role.begin_hand_back();
        for steps in 1.. {
            if !fabric.announce_poller(want) {
                wakes = true;
                break;
            }
            // The second step, in the polling thread's place.
            let again = self.step();
            let asleep = again.is_some_and(|again| {
                self.note_due(again.due);
                !again.progress && covers(want, again.want)
            });
            if asleep || wakes {
                break;
            }
            wakes = steps == LAST_STEPS_MAX;
            want = again.map_or(want, |again| again.want);
        }
        if followers.role.hand_back() || wakes {
            fabric.wake_poller();
        } else {
            self.limit_poller_sleep(UPKEEP_WITHIN);
        }
    }

    /// The polling thread does what is due, but may sleep beyond that: wakes it then.
    fn note_due(&self, due: u64) {
        if due != 0 && due < self.followers().poller_wakes_at.load(Ordering::Relaxed) {
            self.followers().set_poller_wakes_at(due);
            self.handle().fabric().wake_poller();
        }
    }

    /// Makes sure that the polling thread wakes within twice that time.
    fn limit_poller_sleep(&self, within: Duration) {
        let within = within.as_nanos() as u64;
        let soon = self.now() + within;
        if self.followers().poller_wakes_at.load(Ordering::Relaxed) > soon + within {
            self.followers().set_poller_wakes_at(soon);
            self.handle().fabric().wake_poller();
        }
    }
}
