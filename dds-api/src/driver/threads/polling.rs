//! The polling thread: steps the engine, looks again a few times, yielding, then sleeps.
//!
//! It is the keeper of the participant's sleep: while a thread that waits for data is its
//! guest and has the duty, it sleeps on, and looks now and then (see [`crate::driver::waiting::followers`]).

use std::mem;
use std::thread;
use std::time::Duration;

use spindle_dds_core::StepOutcome;
use spindle_dds_transport::poller_role::RoleHolder;
use spindle_dds_transport::{Fabric, Park, ParkSlots};

use crate::driver::session::Session;
use crate::driver::waiting::backoff::{Backoff, BackoffLimits};
use crate::driver::waiting::followers::{NEGLECTED_AFTER, UPKEEP_WITHIN, covers};

/// How long the keeper looks often after a guest's visit.
const VISITS_EXPECTED: Duration = Duration::from_secs(1);

/// Steps until the participant leaves or the group stops.
pub(crate) fn run(session: &Session, limits: BackoffLimits) {
    let (mut looks, mut slept) = (Backoff::default(), false);
    let mut watch = SleepingPoller::new(session);
    while !session.is_stopping() {
        session.hold().pass();
        let Some(outcome) = session.step_on(mem::take(&mut slept)) else {
            thread::yield_now();
            continue;
        };
        if outcome.stopped {
            break;
        }
        if outcome.progress {
            looks = Backoff::default();
            session.linger_if_roomy();
            continue;
        }
        // Who waits for data, or polls, looks for itself.
        let seat = session.followers();
        let is_taken = seat.has_visitors() || seat.empty_reads.want_seat();
        if is_taken || !looks.again(limits) {
            sleep(session, &mut watch, outcome);
            (looks, slept) = (Backoff::default(), true);
        }
    }
}

fn sleep(session: &Session, watch: &mut SleepingPoller<'_>, outcome: StepOutcome) {
    if session.upkeep() != Some(false) {
        return;
    }
    let fabric = session.handle().fabric();
    fabric.announce_sleep(outcome.want);
    // The second look: what was pushed before the announcement was seen.
    let asleep = session
        .step()
        .filter(|again| !again.progress && !again.stopped && covers(outcome.want, again.want));
    if let Some(again) = asleep
        && !session.is_stopping()
        && let Some(tight) = session.tight()
    {
        watch.due = again.due;
        session.followers().duty.poller_sleeps();
        let rung = watch.sleep(tight.map(|_| NEGLECTED_AFTER));
        watch.wait_for_duty();
        session.neglect(rung, tight);
    }
    fabric.announce_awake();
}

/// The keeper while it sleeps.
struct SleepingPoller<'a> {
    session: &'a Session,
    /// When the engine is due, in its time.
    due: u64,
    /// Visits of guests when it looked last.
    visits: u32,
    /// When there was one, in the engine's time, if there was.
    visited_at: Option<u64>,
    /// How often guests had gone away when it looked last.
    aways: u32,
    /// The visit after which a guest was away then.
    away: Option<u32>,
    /// When it looked last whether there is upkeep while it had not the duty, in the
    /// engine's time, and how often samples had been asked for that fill a ring.
    tended: (u64, Option<u64>),
}

impl<'a> SleepingPoller<'a> {
    fn new(session: &'a Session) -> Self {
        Self {
            session,
            due: 0,
            visits: 0,
            visited_at: None,
            aways: 0,
            away: None,
            tended: (0, None),
        }
    }

    /// It is awake. As long as a guest has the duty, it only does what is due.
    fn wait_for_duty(&mut self) {
        let session = self.session;
        let (seat, fabric) = (session.followers(), session.handle().fabric());
        while !session.is_stopping() {
            // Before the question: see `duty`.
            fabric.note_doorbells();
            let is_away = match seat.duty.poller_woke() {
                RoleHolder::Poller => {
                    self.away = None;
                    return;
                }
                RoleHolder::Leased(visit) if self.away == Some(visit) => {
                    if seat.duty.poller_reclaims(visit) {
                        self.away = None;
                        seat.distrust();
                        return;
                    }
                    false
                }
                RoleHolder::Leased(visit) => {
                    self.away = Some(visit);
                    true
                }
                RoleHolder::Follower => {
                    self.away = None;
                    false
                }
            };
            // Who is away has looked of late, and is left alone: two that look for the same are
            // in each other's way.
            if !is_away || self.is_due() {
                match session.step() {
                    Some(outcome) if outcome.stopped => return,
                    Some(outcome) if outcome.progress && !is_away => continue,
                    Some(outcome) => self.due = outcome.due,
                    // The guest is at it.
                    None => {}
                }
            }
            self.tend();
            self.sleep(None);
        }
    }

    /// Whether the engine is due.
    fn is_due(&self) -> bool {
        self.due != 0 && self.session.now() >= self.due
    }

    /// Now and then, what is done before one sleeps: who has the duty may never do so.
    fn tend(&mut self) {
        let now = self.session.now();
        let (before, tight) = self.tended;
        if u128::from(now.saturating_sub(before)) < NEGLECTED_AFTER.as_nanos() {
            return;
        }
        self.session.neglect(false, tight);
        if self.session.upkeep().is_some()
            && let Some(tight) = self.session.tight()
        {
            self.tended = (now, tight);
        }
    }

    /// Sleeps until it is rung, the engine is due, or it is time to look whether guests
    /// have left something to do. Whether it was rung.
    fn sleep(&mut self, at_most: Option<Duration>) -> bool {
        let now = self.session.now();
        // Its heartbeat is due some time, whatever happens.
        let left = self.due.saturating_sub(now);
        let due = (self.due != 0).then(|| Duration::from_nanos(left));
        let timeouts = [due, at_most, self.expects_guests(now)];
        let timeout = timeouts.into_iter().flatten().min();
        let until = timeout.map_or(u64::MAX, |timeout| now + timeout.as_nanos() as u64);
        self.session.followers().looks_at(until);
        let rung = self.session.handle().fabric().park(timeout);
        self.session.woke_up();
        rung
    }

    /// How soon to look, if there were guests of late.
    fn expects_guests(&mut self, now: u64) -> Option<Duration> {
        let seat = self.session.followers();
        let visits = seat.duty.terms();
        if mem::replace(&mut self.visits, visits) != visits {
            self.visited_at = Some(now);
        }
        let aways = seat.aways();
        if mem::replace(&mut self.aways, aways) != aways || self.away.is_some() {
            return Some(seat.back_within());
        }
        let since = Duration::from_nanos(now.saturating_sub(self.visited_at?));
        (since < VISITS_EXPECTED).then_some(UPKEEP_WITHIN)
    }
}
