//! When each phase is, and which topics there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// What the misbehaving participant does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Nothing wrong.
    Baseline,
    /// It holds samples taken from A, and builder loans on B and E.
    Loans,
    /// Its listener on B does not return.
    Listener,
    /// It does not take from C, of which its reader keeps a few samples at most.
    KeepAll,
}

/// Each misbehaviour stands between two baselines.
pub(super) const PHASES: [Phase; 7] = [
    Phase::Baseline,
    Phase::Loans,
    Phase::Baseline,
    Phase::Listener,
    Phase::Baseline,
    Phase::KeepAll,
    Phase::Baseline,
];

/// Slices of a phase; its rate is the median of theirs.
pub(super) const SLICES: usize = 10;

/// The measured topics.
pub(super) const TOPICS: [&str; 4] = ["A", "B", "C", "D"];
/// The topic that only the culprit publishes: one sample.
pub(super) const EXTRA_TOPIC: &str = "E";

/// When the phases are. The start is the same for all participants, which learn it from the first
/// sample of A.
#[derive(Debug, Clone)]
pub(super) struct Timetable {
    /// CLOCK_MONOTONIC; 0 while it is not known.
    start_ns: Arc<AtomicU64>,
    phase_ns: u64,
}

impl Timetable {
    pub(super) fn new(phase_ns: u64) -> Self {
        Self {
            start_ns: Arc::new(AtomicU64::new(0)),
            phase_ns: phase_ns.max(SLICES as u64),
        }
    }

    pub(super) fn set_start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
    }

    pub(super) fn is_known(&self) -> bool {
        self.start_ns.load(Ordering::Acquire) != 0
    }

    /// Index of the phase; `None` before the first and after the last.
    pub(super) fn phase_at(&self, now_ns: u64) -> Option<usize> {
        self.slice_at(now_ns).map(|slice| slice / SLICES)
    }

    /// Index of the slice, counted over all phases.
    pub(super) fn slice_at(&self, now_ns: u64) -> Option<usize> {
        let start_ns = self.start_ns.load(Ordering::Acquire);
        if start_ns == 0 || now_ns < start_ns {
            return None;
        }
        let slice = (now_ns - start_ns) / self.slice_ns();
        usize::try_from(slice)
            .ok()
            .filter(|slice| *slice < PHASES.len() * SLICES)
    }

    pub(super) fn is_phase(&self, now_ns: u64, phase: Phase) -> bool {
        self.phase_at(now_ns).is_some_and(|at| PHASES[at] == phase)
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        let length_ns = self.slice_ns() * (PHASES.len() * SLICES) as u64;
        let start_ns = self.start_ns.load(Ordering::Acquire);
        start_ns != 0 && now_ns >= start_ns + length_ns
    }

    pub(super) fn slice_ns(&self) -> u64 {
        self.phase_ns / SLICES as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other() {
        let timetable = Timetable::new(100);
        assert!(!timetable.is_known() && !timetable.is_over(u64::MAX));
        assert_eq!(timetable.phase_at(5000), None);
        timetable.set_start(1000);
        assert_eq!(timetable.phase_at(999), None);
        assert_eq!(timetable.slice_at(1019), Some(1));
        assert!(timetable.is_phase(1100, Phase::Loans));
        assert_eq!(timetable.phase_at(1699), Some(6));
        assert!(!timetable.is_over(1699) && timetable.is_over(1700));
        assert_eq!(timetable.phase_at(1700), None);
    }
}
