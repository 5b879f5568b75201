//! A thread that polls looks for itself.
//!
//! `take` and `read` that find nothing have the engine step once, and look again: who asks
//! again and again is not to wait for the polling thread, which would have to be woken for
//! each sample, or would spin beside it.
//!
//! Any thread may step at any time. What came after the keeper's last look has rung it if it
//! sleeps, so nothing is lost by that, but each sample wakes the keeper in vain. So who asks
//! often takes the duty (see [`duty`](spindle_dds_transport::poller_role)) as a thread that waits
//! does, and goes away on trust at once: nobody is rung, the keeper sleeps on, and looks each
//! millisecond whether there has been another glance meanwhile (or two, where there are
//! more members than processors, and who polls is often without one). If there was none, it
//! takes the duty itself; it does not look before. A keeper that is awake goes to sleep for it,
//! whatever its strategy.
//!
//! Where what has come waits for other readers, the calling thread leaves them the processor. So
//! it does after each look in vain where there are more members than processors.
//!
//! Who keeps finding something lingers for a moment before it looks again, if each member may
//! have a processor: it finds more at a time then. Between each two looks of a reader that is
//! close behind it, a sender fetches the lines of its guard and of its next messages back from
//! the processor that looked; fewer looks make both sides faster. Who has found nothing looks at
//! once, so that what comes by itself is not found later for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spindle_dds_core::Outcome;
use spindle_dds_transport::{Fabric, WakeInterest};

use super::session::Session;

/// Glances that follow each other within that part of the time for which the keeper trusts a
/// thread that polls make it one.
const CLOSE_PART: u32 = 4;
/// How many it takes.
const CLOSE_GLANCES: u32 = 16;

/// How many of them find messages that wait for other readers before the processor is left
/// to these: where each has one, that takes less.
const HELD_UP_MAX: u32 = 8;

thread_local! {
    /// This thread runs what applications have registered.
    static CALLS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread calls listeners or wakers: it never steps on their behalf. They are
/// called because of what has come, one after the other, and others wait for their turn.
pub(super) fn this_thread_calls_back() {
    CALLS_BACK.set(true);
}

/// How often there were glances of late. Several threads that poll take each other's for
/// their own.
#[derive(Debug, Default)]
pub(super) struct Glances {
    /// When there was one, in nanoseconds of the engine's time.
    last: AtomicU64,
    /// Those before it that followed each other closely.
    close: AtomicU32,
    /// Those since a thread has waited for data.
    unbroken: AtomicU32,
    /// Those in a row that found messages waiting for other readers.
    held_up: AtomicU32,
    /// When who polls has said last that it is near.
    said: AtomicU64,
    /// The last one found something to do.
    flows: AtomicBool,
    /// The keeper is awake, and somebody else would rather look.
    seat_wanted: AtomicBool,
}

impl Glances {
    /// One more. Whether there are so many, within `close` of each other, that somebody polls.
    fn count(&self, now: u64, close: Duration) -> bool {
        let since = now.saturating_sub(self.last.load(Ordering::Relaxed));
        self.last.store(now, Ordering::Relaxed);
        let unbroken = self.unbroken.load(Ordering::Relaxed).saturating_add(1);
        self.unbroken.store(unbroken, Ordering::Relaxed);
        let before = self.close.load(Ordering::Relaxed);
        let is_close = u128::from(since) < close.as_nanos();
        let close = if is_close {
            before.saturating_add(1)
        } else {
            0
        };
        self.close.store(close, Ordering::Relaxed);
        close >= CLOSE_GLANCES
    }

    /// Somebody waits for data, and is told when to look.
    pub(super) fn somebody_waits(&self) {
        self.unbroken.store(0, Ordering::Relaxed);
    }

    /// Whether nobody has waited for data since so many glances.
    pub(super) fn nobody_waits(&self) -> bool {
        self.unbroken.load(Ordering::Relaxed) >= CLOSE_GLANCES
    }

    /// Whether who polls has found for a while that what has come waits for other readers, who
    /// may have no processor.
    fn is_held_up(&self, found: Option<Outcome>) -> bool {
        let waits = |it: Outcome| !it.progress && it.want == WakeInterest::DataAndAcks;
        let held_up = match found.is_some_and(waits) {
            true => self.held_up.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.held_up.store(held_up, Ordering::Relaxed);
        held_up > HELD_UP_MAX
    }

    /// Whether who polls waits a moment for more, before it looks.
    fn lingers(&self, is_crowded: bool) -> bool {
        !is_crowded && self.flows.load(Ordering::Relaxed)
    }

    /// Whether it leaves its processor to others, after what it has found.
    fn leaves(&self, found: Option<Outcome>, is_crowded: bool) -> bool {
        let progress = found.is_some_and(|it| it.progress);
        self.flows.store(progress, Ordering::Relaxed);
        self.is_held_up(found) || is_crowded && !progress
    }

    /// Whether who polls has said of late that it is near: as often is enough.
    fn has_said(&self, now: u64, close: Duration) -> bool {
        let since = now.saturating_sub(self.said.load(Ordering::Relaxed));
        u128::from(since) < close.as_nanos()
    }

    fn says(&self, now: u64) {
        self.said.store(now, Ordering::Relaxed);
    }

    /// Whether somebody would rather look than the keeper, since it asked last.
    pub(super) fn want_seat(&self) -> bool {
        self.seat_wanted.load(Ordering::Relaxed) && self.seat_wanted.swap(false, Ordering::Relaxed)
    }
}

impl Session {
    /// One step for who has found nothing; whether there was something to do.
    pub(super) fn glance_once(&self) -> bool {
        if CALLS_BACK.get() || self.hold().is_alone() || self.is_stopping() {
            return false;
        }
        let (seat, now) = (self.seat(), self.now());
        let close = self.polls_within() / CLOSE_PART;
        let polls = seat.glances.count(now, close);
        // Who does not ask again is to see all that has come.
        if !polls {
            return self.step_at(now).is_some_and(|outcome| outcome.progress);
        }
        // It is trusted for some time more, and nobody is rung meanwhile.
        if !self.is_near(now, close) {
            if seat.duty.is_with_poller() {
                seat.glances.seat_wanted.store(true, Ordering::Relaxed);
            } else if (seat.glances.nobody_waits() || seat.trusts()) && seat.duty.take() {
                return self.glance_in_seat(now);
            }
        }
        let is_crowded = self.is_crowded();
        if seat.glances.lingers(is_crowded) {
            self.linger();
        }
        let outcome = self.step_briefly_at(now);
        let progress = outcome.is_some_and(|outcome| outcome.progress);
        if seat.glances.leaves(outcome, is_crowded) {
            thread::yield_now();
        }
        progress
    }

    /// Says that it is, if a guest is away: now and then is enough.
    fn is_near(&self, now: u64, close: Duration) -> bool {
        let seat = self.seat();
        if seat.glances.has_said(now, close) && seat.duty.is_leased() {
            return true;
        }
        let is_near = seat.duty.renew_lease();
        if is_near {
            seat.glances.says(now);
        }
        is_near
    }

    /// With the duty, which the keeper had, asleep.
    fn glance_in_seat(&self, now: u64) -> bool {
        self.handle().fabric().announce_awake();
        let outcome = self.step_briefly_at(now);
        self.go_away(self.polls_within());
        outcome.is_some_and(|outcome| outcome.progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_polls_is_who_looks_again_and_again() {
        let glances = Glances::default();
        let limit = Duration::from_micros(250);
        let close = limit.as_nanos() as u64 - 1;
        let mut now = 7 * close;
        let mut check = |after: u64, expected: bool| {
            now += after;
            assert_eq!(glances.count(now, limit), expected);
        };
        check(0, false);
        (1..CLOSE_GLANCES).for_each(|_| check(close, false));
        check(close, true);
        check(close, true);
        check(close + 1, false);
        (1..CLOSE_GLANCES).for_each(|_| check(close, false));
        check(1, true);
    }

    #[test]
    fn who_waits_now_and_then_does_not_only_poll() {
        let glances = Glances::default();
        let glance = || assert!(!glances.count(0, Duration::ZERO));
        (1..CLOSE_GLANCES).for_each(|_| glance());
        assert!(!glances.nobody_waits());
        glance();
        assert!(glances.nobody_waits());
        glances.somebody_waits();
        assert!(!glances.nobody_waits());
    }

    fn found(progress: bool, want: WakeInterest) -> Outcome {
        Outcome {
            progress,
            room: false,
            stable: false,
            stopped: false,
            want,
            due: 0,
        }
    }

    #[test]
    fn who_finds_something_lingers_and_who_does_not_leaves_where_it_is_crowded() {
        let glances = Glances::default();
        let check = |progress, is_crowded, [leaves, lingers]: [bool; 2]| {
            let outcome = Some(found(progress, WakeInterest::Data));
            assert_eq!(glances.leaves(outcome, is_crowded), leaves);
            assert_eq!(glances.lingers(is_crowded), lingers);
        };
        check(true, false, [false, true]);
        check(false, false, [false, false]);
        check(true, true, [false, false]);
        check(false, true, [true, false]);
        assert!(glances.leaves(None, true), "somebody else steps");
    }

    #[test]
    fn who_waits_for_other_readers_is_held_up_after_some_looks() {
        let glances = Glances::default();
        let waiting = Some(found(false, WakeInterest::DataAndAcks));
        for news in [
            Some(found(true, WakeInterest::DataAndAcks)),
            Some(found(false, WakeInterest::Data)),
            None,
        ] {
            assert!(!glances.is_held_up(news));
            (0..HELD_UP_MAX).for_each(|_| assert!(!glances.is_held_up(waiting)));
            assert!(glances.is_held_up(waiting));
            assert!(glances.is_held_up(waiting), "until there is news");
        }
    }

    #[test]
    fn a_seat_is_given_up_once() {
        let glances = Glances::default();
        assert!(!glances.want_seat());
        glances.seat_wanted.store(true, Ordering::Relaxed);
        assert!(glances.want_seat());
        assert!(!glances.want_seat());
    }
}
