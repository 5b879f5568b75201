//! Failure detection by heartbeats, for failures that neither the kernel nor the fabric report.

use spindle_dds_transport::Rank;

/// Times of failure detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// Heartbeat timeout: a member whose heartbeat has not changed for longer is suspected.
    pub timeout_ns: u64,
    /// Time that a member may take to prepare a view that is agreed. Its heartbeat begins with the view, so
    /// its first heartbeat may be late by this much more.
    pub preparation_ns: u64,
}

impl Detection {
    /// Time between two heartbeats of a member.
    pub const fn interval_ns(self) -> u64 {
        self.timeout_ns / 3
    }
}

/// Heartbeats of the other members, as this member has seen them.
#[derive(Debug)]
pub(super) struct Detector {
    detection: Detection,
    /// By rank: the last value seen, and the time in ns at which it was new.
    last_heartbeats: Vec<(u64, u64)>,
    /// Time of this member's last heartbeat.
    heartbeat_sent_at_ns: Option<u64>,
    /// Time of the last [`poll`](Self::poll).
    polled_at_ns: Option<u64>,
    /// Whether this member was not stepped for long before that.
    was_paused: bool,
}

impl Detector {
    pub(super) fn new(detection: Detection, members: usize) -> Self {
        Self {
            detection,
            last_heartbeats: vec![(0, 0); members],
            heartbeat_sent_at_ns: None,
            polled_at_ns: None,
            was_paused: false,
        }
    }

    /// To be called at every step. True if this member's own heartbeat is due.
    ///
    /// A member that was itself not stepped for long cannot tell whether others sent
    /// heartbeats meanwhile: it grants all of them the whole timeout again.
    pub(super) fn poll(&mut self, now: u64) -> bool {
        let was_paused = self
            .polled_at_ns
            .is_none_or(|polled| now.saturating_sub(polled) > self.detection.timeout_ns / 2);
        self.polled_at_ns = Some(now);
        self.was_paused = was_paused;
        if was_paused {
            self.last_heartbeats
                .iter_mut()
                .for_each(|(_, new_at)| *new_at = now);
        }
        let is_due = self
            .heartbeat_sent_at_ns
            .is_none_or(|sent| now.saturating_sub(sent) >= self.detection.interval_ns());
        if is_due {
            self.heartbeat_sent_at_ns = Some(now);
        }
        is_due
    }

    /// Whether this member was not stepped for long before the last poll.
    pub(super) fn was_paused(&self) -> bool {
        self.was_paused
    }

    /// Records a member's heartbeat. True if it has not changed for too long.
    ///
    /// A member without a first heartbeat may still be preparing the view, and wait there for
    /// another member that never comes. Members that hear earlier of that member's failure
    /// begin the view earlier, by up to the whole preparation time.
    pub(super) fn is_late(&mut self, rank: Rank, heartbeat: u64, now: u64) -> bool {
        let (last, new_at) = &mut self.last_heartbeats[rank.index()];
        if heartbeat != *last {
            (*last, *new_at) = (heartbeat, now);
        }
        let Detection {
            timeout_ns,
            preparation_ns,
        } = self.detection;
        let allowed = match *last {
            0 => timeout_ns.saturating_add(preparation_ns),
            _ => timeout_ns,
        };
        now.saturating_sub(*new_at) > allowed
    }

    /// Time of the next heartbeat: the latest time for the next step.
    pub(super) fn next_heartbeat_at_ns(&self) -> u64 {
        self.heartbeat_sent_at_ns
            .map_or(0, |sent| sent + self.detection.interval_ns())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TIMEOUT_NS: u64 = 300;
    const OTHER: Rank = Rank(1);

    /// Polls ten times within the timeout; the time at which the other member is late first.
    fn late_at(preparation_ns: u64, heartbeat: impl Fn(u64) -> u64) -> Option<u64> {
        let detection = Detection {
            timeout_ns: TIMEOUT_NS,
            preparation_ns,
        };
        let mut detector = Detector::new(detection, 2);
        let mut polls = (0..10 * TIMEOUT_NS).step_by(30);
        polls.find(|&now| {
            detector.poll(now);
            detector.is_late(OTHER, heartbeat(now), now)
        })
    }

    #[test]
    fn a_member_that_prepares_a_view_is_not_late() {
        // It prepares for the whole time allowed, then is not stepped for most of the timeout.
        let slow = |now: u64| match now.checked_sub(2 * TIMEOUT_NS) {
            None => 0,
            Some(since) => 1 + since / 100,
        };
        assert_eq!(late_at(TIMEOUT_NS, slow), None);
        assert!(late_at(0, slow).is_some_and(|at| at < 2 * TIMEOUT_NS));
    }

    #[test]
    fn a_member_that_never_begins_the_view_is_late_after_both_times() {
        assert_eq!(late_at(TIMEOUT_NS, |_| 0), Some(2 * TIMEOUT_NS + 30));
        assert_eq!(late_at(0, |_| 0), Some(TIMEOUT_NS + 30));
    }

    #[test]
    fn a_member_whose_heartbeat_stops_is_late_after_the_timeout() {
        let stops = |now: u64| 1 + now.min(450) / 100;
        assert_eq!(late_at(TIMEOUT_NS, stops), Some(420 + TIMEOUT_NS + 30));
    }
}
