//! Failure detection by heartbeats: for what the kernel and the fabric do not tell.

use spindle_dds_transport::Rank;

/// Times of failure detection, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// A member whose heartbeat stands still for so long is suspected.
    pub limit: u64,
}

impl Detection {
    /// How often a member's own heartbeat rises.
    pub const fn interval(self) -> u64 {
        self.limit / 3
    }
}

/// What a member knows of the heartbeats of the others.
#[derive(Debug)]
pub(super) struct Detector {
    detection: Detection,
    /// By rank: the last value, and when it was new.
    seen: Vec<(u64, u64)>,
    beaten: Option<u64>,
    looked: Option<u64>,
}

impl Detector {
    pub(super) fn new(detection: Detection, members: usize) -> Self {
        Self {
            detection,
            seen: vec![(0, 0); members],
            beaten: None,
            looked: None,
        }
    }

    /// To be asked at every step: whether this member's own heartbeat is due.
    /// Who has not been running for long knows nothing of the others, and gives
    /// all of them the whole limit again.
    pub(super) fn tick(&mut self, now: u64) -> bool {
        let paused = self
            .looked
            .is_none_or(|looked| now.saturating_sub(looked) > self.detection.limit / 2);
        self.looked = Some(now);
        if paused {
            self.seen.iter_mut().for_each(|(_, when)| *when = now);
        }
        let due = self
            .beaten
            .is_none_or(|beaten| now.saturating_sub(beaten) >= self.detection.interval());
        if due {
            self.beaten = Some(now);
        }
        due
    }

    /// Takes note of a member's heartbeat. True when it has stood still for too long.
    pub(super) fn is_late(&mut self, rank: Rank, beat: u64, now: u64) -> bool {
        let (last, when) = &mut self.seen[rank.index()];
        if beat != *last {
            (*last, *when) = (beat, now);
        }
        now.saturating_sub(*when) > self.detection.limit
    }

    /// When the next step is due at the latest.
    pub(super) fn due(&self) -> u64 {
        self.beaten
            .map_or(0, |beaten| beaten + self.detection.interval())
    }
}
