//! The polling thread: steps the engine, steps again a few times, yielding, then sleeps.
//!
//! It has the poller role of the participant. While a follower has the role, it sleeps on and
//! checks on the follower from time to time (see [`waiting`](crate::driver::waiting)).

use std::mem;
use std::thread;
use std::time::Duration;

use spindle_dds_core::StepOutcome;
use spindle_dds_transport::poller_role::RoleHolder;
use spindle_dds_transport::{Fabric, Park, ParkSlots};

use crate::driver::session::Session;
use crate::driver::waiting::backoff::Backoff;
use crate::driver::waiting::followers::{NEGLECTED_AFTER, UPKEEP_WITHIN, covers};

/// How long the polling thread checks on followers often after one of them had the role.
const FOLLOWERS_EXPECTED: Duration = Duration::from_secs(1);

/// Steps until the participant leaves or the group stops.
pub(crate) fn run(session: &Session) {
    session.handle().fabric().set_polled(true);
    poll(session);
    session.handle().fabric().set_polled(false);
}

fn poll(session: &Session) {
    // It has just slept; a doorbell has woken it.
    let (mut slept, mut woken) = (false, false);
    // Its last sleep has ended because something was due, and nothing has come since.
    let mut is_quiet = false;
    let mut backoff = Backoff::default();
    let mut sleeping = SleepingPoller::new(session);
    while !session.is_stopping() {
        session.pause().pass();
        let outcome = session.step_repeatedly(mem::take(&mut slept));
        if mem::take(&mut woken) {
            session.note_work_after_wake(outcome);
        }
        let Some(outcome) = outcome else {
            thread::yield_now();
            continue;
        };
        if outcome.stopped {
            break;
        }
        if outcome.progress {
            (backoff, is_quiet) = (Backoff::default(), false);
            session.linger_if_roomy();
            continue;
        }
        // A thread that waits for data, or polls, steps by itself.
        let followers = session.followers();
        let is_taken = followers.has_waiting() || followers.empty_reads.take_role_request();
        // Where a heartbeat was all that was due, there is nothing to wait for.
        if is_taken || is_quiet || !backoff.again(session.backoff_limits()) {
            woken = sleep(session, &mut sleeping, outcome);
            is_quiet = sleeping.has_parked && !woken;
            (backoff, slept) = (Backoff::default(), true);
        }
    }
}

/// Returns whether a doorbell has woken it.
fn sleep(session: &Session, sleeping: &mut SleepingPoller<'_>, outcome: StepOutcome) -> bool {
    (sleeping.woken, sleeping.has_parked) = (false, false);
    if session.upkeep() != Some(false) {
        return false;
    }
    let fabric = session.handle().fabric();
    fabric.announce_sleep(outcome.want);
    // The second step: for what was pushed before peers saw the announcement.
    let asleep = session
        .step()
        .filter(|again| !again.progress && !again.stopped && covers(outcome.want, again.want));
    if let Some(again) = asleep
        && !session.is_stopping()
        && let Some(selects) = session.selects_if_nearly_full()
    {
        sleeping.due = again.due;
        session.followers().role.poller_sleeps();
        let woken = sleeping.sleep(selects.map(|_| NEGLECTED_AFTER));
        sleeping.wait_for_role();
        session.copy_out_neglected(woken, selects);
    }
    fabric.announce_awake();
    sleeping.woken
}

/// The polling thread while it sleeps.
struct SleepingPoller<'a> {
    session: &'a Session,
    /// When the engine is due, in ns of its time; 0: not by itself.
    due: u64,
    /// Terms of followers at the last check.
    terms: u32,
    /// When a follower had the role last, in ns of the engine's time.
    followed_at: Option<u64>,
    /// How often the role had been leased at the last check.
    leases: u32,
    /// The term whose lease it has seen.
    leased_term: Option<u32>,
    /// The last upkeep while a follower had the role: when, in ns of the engine's time, and what
    /// `Session::selects_if_nearly_full` returned.
    upkeep: (u64, Option<u64>),
    /// A doorbell ended its last sleep.
    woken: bool,
    /// It has slept since it was asked to.
    has_parked: bool,
}

impl<'a> SleepingPoller<'a> {
    fn new(session: &'a Session) -> Self {
        Self {
            session,
            due: 0,
            terms: 0,
            followed_at: None,
            leases: 0,
            leased_term: None,
            upkeep: (0, None),
            woken: false,
            has_parked: false,
        }
    }

    /// Called when it has woken. As long as a follower has the role, it does only what is due.
    fn wait_for_role(&mut self) {
        let session = self.session;
        let (followers, fabric) = (session.followers(), session.handle().fabric());
        while !session.is_stopping() {
            // Before the question: see `poller_role`.
            fabric.note_doorbells();
            let is_leased = match followers.role.poller_woke() {
                RoleHolder::Poller => {
                    self.leased_term = None;
                    return;
                }
                RoleHolder::Leased(term) if self.leased_term == Some(term) => {
                    if followers.role.poller_reclaims(term) {
                        self.leased_term = None;
                        followers.distrust();
                        return;
                    }
                    false
                }
                RoleHolder::Leased(term) => {
                    self.leased_term = Some(term);
                    true
                }
                RoleHolder::Follower => {
                    self.leased_term = None;
                    false
                }
            };
            // A follower with a lease has stepped of late: two threads that step at once would
            // contend for the same cache lines.
            if !is_leased || self.is_due() {
                match session.step() {
                    Some(outcome) if outcome.stopped => return,
                    Some(outcome) if outcome.progress && !is_leased => continue,
                    Some(outcome) => self.due = outcome.due,
                    // The follower steps.
                    None => {}
                }
            }
            self.do_upkeep();
            self.sleep(None);
        }
    }

    /// Whether the engine is due.
    fn is_due(&self) -> bool {
        self.due != 0 && self.session.now() >= self.due
    }

    /// Does now and then what a thread does before it sleeps: a follower may never sleep.
    fn do_upkeep(&mut self) {
        let now = self.session.now();
        let (before, selects) = self.upkeep;
        if u128::from(now.saturating_sub(before)) < NEGLECTED_AFTER.as_nanos() {
            return;
        }
        self.session.copy_out_neglected(false, selects);
        if self.session.upkeep().is_some()
            && let Some(selects) = self.session.selects_if_nearly_full()
        {
            self.upkeep = (now, selects);
        }
    }

    /// Sleeps until a doorbell wakes it, the engine is due, or it is time to check on followers.
    /// Returns whether a doorbell woke it.
    fn sleep(&mut self, at_most: Option<Duration>) -> bool {
        let now = self.session.now();
        // A heartbeat falls due in any case.
        let left = self.due.saturating_sub(now);
        let due = (self.due != 0).then(|| Duration::from_nanos(left));
        let timeouts = [due, at_most, self.follower_timeout(now)];
        let timeout = timeouts.into_iter().flatten().min();
        let until = timeout.map_or(u64::MAX, |timeout| now + timeout.as_nanos() as u64);
        self.session.followers().set_poller_wakes_at(until);
        self.woken = self.session.handle().fabric().park(timeout);
        self.has_parked = true;
        self.session.woke_up();
        self.woken
    }

    /// How soon to check on followers, if there were any of late.
    fn follower_timeout(&mut self, now: u64) -> Option<Duration> {
        let followers = self.session.followers();
        let terms = followers.role.terms();
        if mem::replace(&mut self.terms, terms) != terms {
            self.followed_at = Some(now);
        }
        let leases = followers.leases();
        if mem::replace(&mut self.leases, leases) != leases || self.leased_term.is_some() {
            return Some(followers.back_within());
        }
        let since = Duration::from_nanos(now.saturating_sub(self.followed_at?));
        (since < FOLLOWERS_EXPECTED).then_some(UPKEEP_WITHIN)
    }
}
