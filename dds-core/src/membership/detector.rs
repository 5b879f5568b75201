//! Failure detection by heartbeats: for what the kernel and the fabric do not tell.

use spindle_dds_transport::Rank;

/// Times of failure detection, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// A member whose heartbeat stands still for so long is suspected.
    pub limit: u64,
    /// How long a member may take to prepare a view that it has heard of. Its heartbeat
    /// begins with the view: until it is seen for the first time, it may be late by so much.
    pub preparation: u64,
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
    ///
    /// Who has not begun the view may wait in its preparation for somebody who does not
    /// come, and of whose end others have heard before: these begin earlier by all of it.
    pub(super) fn is_late(&mut self, rank: Rank, beat: u64, now: u64) -> bool {
        let (last, when) = &mut self.seen[rank.index()];
        if beat != *last {
            (*last, *when) = (beat, now);
        }
        let Detection { limit, preparation } = self.detection;
        let patience = match *last {
            0 => limit.saturating_add(preparation),
            _ => limit,
        };
        now.saturating_sub(*when) > patience
    }

    /// When the next step is due at the latest.
    pub(super) fn due(&self) -> u64 {
        self.beaten
            .map_or(0, |beaten| beaten + self.detection.interval())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const LIMIT: u64 = 300;
    const OTHER: Rank = Rank(1);

    /// Looks at every tenth of the limit, as whoever polls; when it was late first.
    fn late_at(preparation: u64, beat: impl Fn(u64) -> u64) -> Option<u64> {
        let limit = LIMIT;
        let mut detector = Detector::new(Detection { limit, preparation }, 2);
        let mut looks = (0..10 * LIMIT).step_by(30);
        looks.find(|&now| {
            detector.tick(now);
            detector.is_late(OTHER, beat(now), now)
        })
    }

    #[test]
    fn who_prepares_a_view_is_not_late() {
        // Its preparation takes all of its time, and it is not stepped for most of the limit.
        let slow = |now: u64| match now.checked_sub(2 * LIMIT) {
            None => 0,
            Some(since) => 1 + since / 100,
        };
        assert_eq!(late_at(LIMIT, slow), None);
        assert!(late_at(0, slow).is_some_and(|at| at < 2 * LIMIT));
    }

    #[test]
    fn who_never_begins_a_view_is_late_after_both_times() {
        assert_eq!(late_at(LIMIT, |_| 0), Some(2 * LIMIT + 30));
        assert_eq!(late_at(0, |_| 0), Some(LIMIT + 30));
    }

    #[test]
    fn whose_heartbeat_stops_is_late_after_the_limit() {
        let stops = |now: u64| 1 + now.min(450) / 100;
        assert_eq!(late_at(LIMIT, stops), Some(420 + LIMIT + 30));
    }
}
