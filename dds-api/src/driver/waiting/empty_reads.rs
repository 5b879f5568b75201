//! How often threads have read of late without finding anything.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use spindle_dds_core::StepOutcome;
use spindle_dds_transport::WakeInterest;

/// Reads in a row, each soon after the other, that make a thread one that polls.
const CLOSE_READS: u32 = 16;

/// Reads in a row that find messages waiting for other readers, before the thread yields its
/// processor to them: where each reader has one, they need less time.
const HELD_UP_MAX: u32 = 8;

/// Reads that found nothing. Threads that poll at once are counted as one.
#[derive(Debug, Default)]
pub(crate) struct EmptyReads {
    /// When the last one was, in ns of the engine's time.
    last: AtomicU64,
    /// How many before it followed each other closely.
    close: AtomicU32,
    /// How many since a thread has waited for data.
    unbroken: AtomicU32,
    /// How many of the next reads follow upon a wait for data.
    after_wait: AtomicU32,
    /// How many in a row found messages waiting for other readers.
    held_up: AtomicU32,
    /// When the lease was renewed last, in ns of the engine's time.
    renewed_at: AtomicU64,
    /// The step for the last one found something to do.
    flows: AtomicBool,
    /// The polling thread is awake, and a thread that polls wants the role.
    pub(crate) role_wanted: AtomicBool,
}

impl EmptyReads {
    /// One more. Whether there are so many, within `close` of each other, that a thread polls.
    pub(crate) fn count(&self, now: u64, close: Duration) -> bool {
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
        close >= CLOSE_READS
    }

    /// A thread waits for data, and is woken for it.
    pub(crate) fn note_waiting_thread(&self) {
        self.unbroken.store(0, Ordering::Relaxed);
        self.after_wait.store(CLOSE_READS, Ordering::Relaxed);
    }

    /// One more. Whether it is one of the first `CLOSE_READS` after a thread has waited for data:
    /// that thread has stepped until there was nothing left to do.
    pub(crate) fn follows_wait(&self) -> bool {
        let left = self.after_wait.load(Ordering::Relaxed);
        if left > 0 {
            self.after_wait.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }

    /// Whether no thread has waited for data since `CLOSE_READS` reads.
    pub(crate) fn no_thread_waits(&self) -> bool {
        self.unbroken.load(Ordering::Relaxed) >= CLOSE_READS
    }

    /// True if the last reads found only messages that are not stable yet: other readers may have
    /// no processor.
    fn is_held_up(&self, found: Option<StepOutcome>) -> bool {
        let waits = |it: StepOutcome| !it.progress && it.want != WakeInterest::Data;
        let held_up = match found.is_some_and(waits) {
            true => self.held_up.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.held_up.store(held_up, Ordering::Relaxed);
        held_up > HELD_UP_MAX
    }

    /// Whether the thread spins for a moment before it steps, to receive more at a time.
    pub(crate) fn lingers(&self, is_crowded: bool) -> bool {
        !is_crowded && self.flows.load(Ordering::Relaxed)
    }

    /// Whether the thread yields its processor after this outcome.
    pub(crate) fn leaves(&self, found: Option<StepOutcome>, is_crowded: bool) -> bool {
        let progress = found.is_some_and(|it| it.progress);
        self.flows.store(progress, Ordering::Relaxed);
        self.is_held_up(found) || is_crowded && !progress
    }

    /// Whether the lease was renewed within `close`.
    pub(crate) fn was_renewed(&self, now: u64, close: Duration) -> bool {
        let since = now.saturating_sub(self.renewed_at.load(Ordering::Relaxed));
        u128::from(since) < close.as_nanos()
    }

    pub(crate) fn note_renewal(&self, now: u64) {
        self.renewed_at.store(now, Ordering::Relaxed);
    }

    /// Whether a thread has wanted the poller role since the last call.
    pub(crate) fn take_role_request(&self) -> bool {
        self.role_wanted.load(Ordering::Relaxed) && self.role_wanted.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_close_succession_make_a_thread_one_that_polls() {
        let empty_reads = EmptyReads::default();
        let limit = Duration::from_micros(250);
        let close = limit.as_nanos() as u64 - 1;
        let mut now = 7 * close;
        let mut check = |after: u64, expected: bool| {
            now += after;
            assert_eq!(empty_reads.count(now, limit), expected);
        };
        check(0, false);
        (1..CLOSE_READS).for_each(|_| check(close, false));
        check(close, true);
        check(close, true);
        check(close + 1, false);
        (1..CLOSE_READS).for_each(|_| check(close, false));
        check(1, true);
    }

    #[test]
    fn a_thread_that_waits_now_and_then_does_not_only_poll() {
        let empty_reads = EmptyReads::default();
        let empty_read = || assert!(!empty_reads.count(0, Duration::ZERO));
        (1..CLOSE_READS).for_each(|_| empty_read());
        assert!(!empty_reads.no_thread_waits());
        empty_read();
        assert!(empty_reads.no_thread_waits());
        empty_reads.note_waiting_thread();
        assert!(!empty_reads.no_thread_waits());
    }

    #[test]
    fn the_first_reads_after_a_wait_follow_upon_it() {
        let empty_reads = EmptyReads::default();
        assert!(!empty_reads.follows_wait(), "no thread has waited");
        for _ in 0..2 {
            empty_reads.note_waiting_thread();
            (0..CLOSE_READS).for_each(|_| assert!(empty_reads.follows_wait()));
            assert!(!empty_reads.follows_wait());
        }
    }

    fn found(progress: bool, want: WakeInterest) -> StepOutcome {
        StepOutcome {
            progress,
            room: false,
            stable: false,
            stopped: false,
            want,
            due: 0,
        }
    }

    #[test]
    fn a_thread_lingers_after_progress_and_yields_without_it_where_it_is_crowded() {
        let empty_reads = EmptyReads::default();
        let check = |progress, is_crowded, [leaves, lingers]: [bool; 2]| {
            let outcome = Some(found(progress, WakeInterest::Data));
            assert_eq!(empty_reads.leaves(outcome, is_crowded), leaves);
            assert_eq!(empty_reads.lingers(is_crowded), lingers);
        };
        check(true, false, [false, true]);
        check(false, false, [false, false]);
        check(true, true, [false, false]);
        check(false, true, [true, false]);
        assert!(empty_reads.leaves(None, true), "another thread steps");
    }

    #[test]
    fn a_thread_yields_after_some_reads_that_wait_for_other_readers() {
        let empty_reads = EmptyReads::default();
        let waiting = Some(found(false, WakeInterest::Stability));
        for other in [
            Some(found(true, WakeInterest::Stability)),
            Some(found(false, WakeInterest::Data)),
            None,
        ] {
            assert!(!empty_reads.is_held_up(other));
            (0..HELD_UP_MAX).for_each(|_| assert!(!empty_reads.is_held_up(waiting)));
            assert!(empty_reads.is_held_up(waiting));
            assert!(empty_reads.is_held_up(waiting), "until that changes");
        }
    }

    #[test]
    fn the_role_is_requested_once() {
        let empty_reads = EmptyReads::default();
        assert!(!empty_reads.take_role_request());
        empty_reads.role_wanted.store(true, Ordering::Relaxed);
        assert!(empty_reads.take_role_request());
        assert!(!empty_reads.take_role_request());
    }
}
