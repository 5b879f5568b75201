//! A thread that polls with `take` or `read` steps the engine itself.
//!
//! If `take` or `read` finds nothing, the engine steps once, and the reader is asked again. So a
//! thread that polls does not wait for the polling thread, which would have to be woken for each
//! sample, or would spin beside it.
//!
//! A thread that waits for data has stepped until there was nothing left to do, and mostly reads
//! several readers then, of which some have nothing. These reads do not step, as long as what comes
//! wakes the polling thread or a follower: each would cost a full step in vain. (With ten processes
//! and five topics, four of five steps were such.) A thread that goes on reading without finding
//! anything polls, and its reads step.
//!
//! Any thread may step at any time. A push after the polling thread's last step wakes that thread
//! if it sleeps: nothing is lost, but the wake-up is useless. So a thread that polls takes the
//! poller role (see [`poller_role`](spindle_dds_transport::poller_role)) as a thread that waits
//! does, and leases it at once: doorbells wake no thread, the polling thread sleeps on, and checks
//! each millisecond whether there was another read (each two milliseconds if there are more members
//! than processors). If there was none, it reclaims the role. A polling thread that is awake goes
//! to sleep for such a thread, whatever its wait policy.
//!
//! If the messages that have arrived wait for other readers, the calling thread yields its
//! processor to them. Where there are more members than processors, it also yields after each step
//! without progress.
//!
//! A thread whose steps make progress spins for a moment before its next step, if each member can
//! have a processor: then it receives more messages at a time. Between two steps of a reader that
//! is close behind it, a sender fetches the cache lines of its guard and of its next messages back;
//! fewer steps make both sides faster. A thread whose last step made no progress steps at once, so
//! that the latency of a single sample does not increase.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use spindle_dds_transport::ParkSlots;

use crate::driver::session::Session;

/// A thread polls if its empty reads follow each other within this part of the time in which it is
/// expected back.
const CLOSE_PART: u32 = 4;

thread_local! {
    /// This thread calls listeners or wakers.
    static CALLS_BACK: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread calls listeners or wakers: their reads do not step the engine. They are
/// called for what has arrived already, and other listeners wait for their turn.
pub(crate) fn this_thread_calls_back() {
    CALLS_BACK.set(true);
}

/// Whether the calling thread calls listeners or wakers.
pub(crate) fn calls_back() -> bool {
    CALLS_BACK.get()
}

impl Session {
    /// One step for a read that has found nothing. Returns whether there was something to do.
    pub(crate) fn step_for_read(&self) -> bool {
        if CALLS_BACK.get() || self.pause().is_exclusive() || self.is_stopping() {
            return false;
        }
        let (followers, now) = (self.followers(), self.now());
        let wakes_a_thread = !followers.role.is_with_poller() && !followers.role.is_leased();
        if wakes_a_thread && followers.empty_reads.follows_wait() {
            return false;
        }
        self.handle().fabric().receive();
        let close = self.polls_within() / CLOSE_PART;
        let polls = followers.empty_reads.count(now, close);
        // A full step: a thread that does not read again receives all that has arrived.
        if !polls {
            return self.step_at(now).is_some_and(|outcome| outcome.progress);
        }
        // The lease is renewed: doorbells wake no thread meanwhile.
        if !self.renew_lease(now, close) {
            if followers.role.is_with_poller() {
                followers
                    .empty_reads
                    .role_wanted
                    .store(true, Ordering::Relaxed);
            } else if (followers.empty_reads.no_thread_waits() || followers.trusts())
                && followers.role.take()
            {
                return self.step_in_role(now);
            }
        }
        let is_crowded = self.is_crowded();
        if followers.empty_reads.lingers(is_crowded) {
            self.linger();
        }
        let outcome = self.step_briefly_at(now);
        let progress = outcome.is_some_and(|outcome| outcome.progress);
        if followers.empty_reads.leaves(outcome, is_crowded) {
            thread::yield_now();
        }
        progress
    }

    /// Renews the lease if there is one, at most once in `close`. False if there is none.
    fn renew_lease(&self, now: u64, close: Duration) -> bool {
        let followers = self.followers();
        if followers.empty_reads.was_renewed(now, close) && followers.role.is_leased() {
            return true;
        }
        let is_leased = followers.role.renew_lease();
        if is_leased {
            followers.empty_reads.note_renewal(now);
        }
        is_leased
    }

    /// Steps with the poller role, which the sleeping polling thread had, and leases it.
    fn step_in_role(&self, now: u64) -> bool {
        self.handle().fabric().announce_follower_awake();
        let outcome = self.step_briefly_at(now);
        self.leave_on_lease(self.polls_within());
        outcome.is_some_and(|outcome| outcome.progress)
    }
}
