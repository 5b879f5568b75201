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
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use spindle_dds_transport::Fabric;

use crate::driver::session::Session;

/// EmptyReads that follow each other within that part of the time for which the keeper trusts a
/// thread that polls make it one.
const CLOSE_PART: u32 = 4;

thread_local! {
    /// This thread runs what applications have registered.
    static CALLS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread calls listeners or wakers: it never steps on their behalf. They are
/// called because of what has come, one after the other, and others wait for their turn.
pub(crate) fn this_thread_calls_back() {
    CALLS_BACK.set(true);
}

impl Session {
    /// One step for who has found nothing; whether there was something to do.
    pub(crate) fn glance_once(&self) -> bool {
        if CALLS_BACK.get() || self.hold().is_alone() || self.is_stopping() {
            return false;
        }
        let (seat, now) = (self.followers(), self.now());
        let close = self.polls_within() / CLOSE_PART;
        let polls = seat.empty_reads.count(now, close);
        // Who does not ask again is to see all that has come.
        if !polls {
            return self.step_at(now).is_some_and(|outcome| outcome.progress);
        }
        // It is trusted for some time more, and nobody is rung meanwhile.
        if !self.is_near(now, close) {
            if seat.duty.is_with_poller() {
                seat.empty_reads.seat_wanted.store(true, Ordering::Relaxed);
            } else if (seat.empty_reads.nobody_waits() || seat.trusts()) && seat.duty.take() {
                return self.glance_in_seat(now);
            }
        }
        let is_crowded = self.is_crowded();
        if seat.empty_reads.lingers(is_crowded) {
            self.linger();
        }
        let outcome = self.step_briefly_at(now);
        let progress = outcome.is_some_and(|outcome| outcome.progress);
        if seat.empty_reads.leaves(outcome, is_crowded) {
            thread::yield_now();
        }
        progress
    }

    /// Says that it is, if a guest is away: now and then is enough.
    fn is_near(&self, now: u64, close: Duration) -> bool {
        let seat = self.followers();
        if seat.empty_reads.has_said(now, close) && seat.duty.is_leased() {
            return true;
        }
        let is_near = seat.duty.renew_lease();
        if is_near {
            seat.empty_reads.says(now);
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
