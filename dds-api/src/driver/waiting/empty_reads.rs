//! How often threads have read of late without finding anything.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use spindle_dds_core::StepOutcome;
use spindle_dds_transport::WakeInterest;

/// How many it takes.
const CLOSE_GLANCES: u32 = 16;

/// How many of them find messages that wait for other readers before the processor is left
/// to these: where each has one, that takes less.
const HELD_UP_MAX: u32 = 8;

/// How often there were empty_reads of late. Several threads that poll take each other's for
/// their own.
#[derive(Debug, Default)]
pub(crate) struct EmptyReads {
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
    pub(crate) seat_wanted: AtomicBool,
}

impl EmptyReads {
    /// One more. Whether there are so many, within `close` of each other, that somebody polls.
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
        close >= CLOSE_GLANCES
    }

    /// Somebody waits for data, and is told when to look.
    pub(crate) fn somebody_waits(&self) {
        self.unbroken.store(0, Ordering::Relaxed);
    }

    /// Whether nobody has waited for data since so many empty_reads.
    pub(crate) fn nobody_waits(&self) -> bool {
        self.unbroken.load(Ordering::Relaxed) >= CLOSE_GLANCES
    }

    /// Whether who polls has found for a while that what has come waits for other readers, who
    /// may have no processor.
    fn is_held_up(&self, found: Option<StepOutcome>) -> bool {
        let waits = |it: StepOutcome| !it.progress && it.want == WakeInterest::DataAndAcks;
        let held_up = match found.is_some_and(waits) {
            true => self.held_up.load(Ordering::Relaxed).saturating_add(1),
            false => 0,
        };
        self.held_up.store(held_up, Ordering::Relaxed);
        held_up > HELD_UP_MAX
    }

    /// Whether who polls waits a moment for more, before it looks.
    pub(crate) fn lingers(&self, is_crowded: bool) -> bool {
        !is_crowded && self.flows.load(Ordering::Relaxed)
    }

    /// Whether it leaves its processor to others, after what it has found.
    pub(crate) fn leaves(&self, found: Option<StepOutcome>, is_crowded: bool) -> bool {
        let progress = found.is_some_and(|it| it.progress);
        self.flows.store(progress, Ordering::Relaxed);
        self.is_held_up(found) || is_crowded && !progress
    }

    /// Whether who polls has said of late that it is near: as often is enough.
    pub(crate) fn has_said(&self, now: u64, close: Duration) -> bool {
        let since = now.saturating_sub(self.said.load(Ordering::Relaxed));
        u128::from(since) < close.as_nanos()
    }

    pub(crate) fn says(&self, now: u64) {
        self.said.store(now, Ordering::Relaxed);
    }

    /// Whether somebody would rather look than the keeper, since it asked last.
    pub(crate) fn want_seat(&self) -> bool {
        self.seat_wanted.load(Ordering::Relaxed) && self.seat_wanted.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_polls_is_who_looks_again_and_again() {
        let empty_reads = EmptyReads::default();
        let limit = Duration::from_micros(250);
        let close = limit.as_nanos() as u64 - 1;
        let mut now = 7 * close;
        let mut check = |after: u64, expected: bool| {
            now += after;
            assert_eq!(empty_reads.count(now, limit), expected);
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
        let empty_reads = EmptyReads::default();
        let glance = || assert!(!empty_reads.count(0, Duration::ZERO));
        (1..CLOSE_GLANCES).for_each(|_| glance());
        assert!(!empty_reads.nobody_waits());
        glance();
        assert!(empty_reads.nobody_waits());
        empty_reads.somebody_waits();
        assert!(!empty_reads.nobody_waits());
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
    fn who_finds_something_lingers_and_who_does_not_leaves_where_it_is_crowded() {
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
        assert!(empty_reads.leaves(None, true), "somebody else steps");
    }

    #[test]
    fn who_waits_for_other_readers_is_held_up_after_some_looks() {
        let empty_reads = EmptyReads::default();
        let waiting = Some(found(false, WakeInterest::DataAndAcks));
        for news in [
            Some(found(true, WakeInterest::DataAndAcks)),
            Some(found(false, WakeInterest::Data)),
            None,
        ] {
            assert!(!empty_reads.is_held_up(news));
            (0..HELD_UP_MAX).for_each(|_| assert!(!empty_reads.is_held_up(waiting)));
            assert!(empty_reads.is_held_up(waiting));
            assert!(empty_reads.is_held_up(waiting), "until there is news");
        }
    }

    #[test]
    fn a_seat_is_given_up_once() {
        let empty_reads = EmptyReads::default();
        assert!(!empty_reads.want_seat());
        empty_reads.seat_wanted.store(true, Ordering::Relaxed);
        assert!(empty_reads.want_seat());
        assert!(!empty_reads.want_seat());
    }
}
