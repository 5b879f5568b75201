//! The polling thread: steps the engine, looks again a few times, yielding, then sleeps.
//!
//! It is the keeper of the participant's sleep: while a thread that waits for data is its
//! guest and has the duty, it sleeps on, and looks now and then (see [`super::seat`]).

use std::hint;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds_core::Outcome;
use spindle_dds_transport::poller_role::RoleHolder;
use spindle_dds_transport::{Fabric, Park, ParkSlots};

use super::seat::{UPKEEP_WITHIN, covers};
use super::session::Session;
use crate::properties::WaitPolicy;

/// How often a thread looks again before it sleeps: to wake it takes who does longer than much
/// of what it waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) spins: u32,
    pub(super) yields: u32,
}

impl Patience {
    /// More polling threads than cores is normal: `balanced` yields whenever it has found
    /// nothing, which where nobody else wants the processor is a look with a pause, and where
    /// somebody does leaves it to who has something to do. Even `spin` yields soon, and ends
    /// after some milliseconds.
    pub(super) const fn of(policy: WaitPolicy) -> Self {
        let (spins, yields) = match policy {
            WaitPolicy::Balanced => (0, 32),
            WaitPolicy::Spin => (500, 10_000),
            WaitPolicy::Block => (0, 0),
        };
        Self { spins, yields }
    }
}

/// A yield lasts for as long as others want the processor: however many there may be, they end
/// after this.
const YIELDS_FOR: Duration = Duration::from_millis(5);

/// Looks in vain, one after the other.
#[derive(Debug, Default)]
pub(super) struct Looks {
    vain: u32,
    yields_since: Option<Instant>,
}

impl Looks {
    /// One more. Whether to look again, rather than to sleep: spins, or yields, first.
    pub(super) fn again(&mut self, patience: Patience) -> bool {
        self.vain += 1;
        if self.vain <= patience.spins {
            hint::spin_loop();
            return true;
        }
        if self.vain > patience.spins + patience.yields {
            return false;
        }
        let since = self.yields_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= YIELDS_FOR {
            return false;
        }
        thread::yield_now();
        true
    }
}

/// Samples that are to stay in a ring are copied out when the ring is nearly
/// full of them and nobody has asked for one for so long.
pub(super) const NEGLECTED_AFTER: Duration = Duration::from_millis(20);

/// How long the keeper looks often after a guest's visit.
const VISITS_EXPECTED: Duration = Duration::from_secs(1);

/// Steps until the participant leaves or the group stops.
pub(super) fn run(session: &Session, patience: Patience) {
    let (mut looks, mut slept) = (Looks::default(), false);
    let mut watch = Watch::new(session);
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
            looks = Looks::default();
            session.linger_if_roomy();
            continue;
        }
        // Who waits for data, or polls, looks for itself.
        let seat = session.seat();
        let is_taken = seat.has_visitors() || seat.glances.want_seat();
        if is_taken || !looks.again(patience) {
            sleep(session, &mut watch, outcome);
            (looks, slept) = (Looks::default(), true);
        }
    }
}

fn sleep(session: &Session, watch: &mut Watch<'_>, outcome: Outcome) {
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
        session.seat().duty.poller_sleeps();
        let rung = watch.sleep(tight.map(|_| NEGLECTED_AFTER));
        watch.wait_for_duty();
        session.neglect(rung, tight);
    }
    fabric.announce_awake();
}

/// The keeper while it sleeps.
struct Watch<'a> {
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

impl<'a> Watch<'a> {
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
        let (seat, fabric) = (session.seat(), session.handle().fabric());
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
        self.session.seat().looks_at(until);
        let rung = self.session.handle().fabric().park(timeout);
        self.session.woke_up();
        rung
    }

    /// How soon to look, if there were guests of late.
    fn expects_guests(&mut self, now: u64) -> Option<Duration> {
        let seat = self.session.seat();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_so_many_or_end_in_time() {
        let few = Patience {
            spins: 3,
            yields: 2,
        };
        let mut looks = Looks::default();
        assert_eq!((0..9).take_while(|_| looks.again(few)).count(), 5);
        let endless = Patience {
            spins: 0,
            yields: u32::MAX,
        };
        let (mut looks, begun) = (Looks::default(), Instant::now());
        while looks.again(endless) {}
        assert!(begun.elapsed() >= YIELDS_FOR);
    }
}
