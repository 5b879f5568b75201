//! Failure detection by heartbeats, for failures that neither the kernel nor the fabric report.

use serde::{Deserialize, Serialize};
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

/// What a member knows of heartbeats, for tools that show which member is late.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorFigures {
    /// Time between two heartbeats of a member that is in time.
    pub interval_ns: u64,
    /// The heartbeat timeout of the configuration.
    pub timeout_ns: u64,
    /// The heartbeat timeout under the present load of the group; at least `timeout_ns`.
    pub allowed_ns: u64,
    /// Longest time of late between two steps of the reporting member itself.
    pub own_gap_ns: u64,
    /// Heartbeats of the other members, by rank.
    pub heartbeats: Vec<HeartbeatFigures>,
}

/// A member's heartbeat, as another member has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatFigures {
    /// The member's rank in the view.
    pub member: u16,
    /// Whether it has sent a heartbeat in this view.
    pub has_begun: bool,
    /// Time from its last heartbeat, or from the beginning of the view, to the last step of the
    /// reporting member.
    pub silent_ns: u64,
    /// Longest time of late between two of its heartbeats; 0 before the second.
    pub gap_ns: u64,
    /// Whether the reporting member suspects it.
    pub is_suspected: bool,
}

/// Heartbeats of the other members, as this member has seen them.
///
/// A group that shares few processors may be late as a whole: that is load, and no failure. So the
/// timeout is that of the configuration times the group's lateness: how much longer than the interval
/// the heartbeats of at least half of the group, this member included, have taken of late. And where
/// more than half of the others are late at once, they get some times as much.
#[derive(Debug)]
pub(super) struct Detector {
    detection: Detection,
    /// By rank.
    heartbeats: Vec<Heartbeat>,
    /// Time of this member's last heartbeat.
    heartbeat_sent_at_ns: Option<u64>,
    /// Time of the last [`poll`](Self::poll).
    polled_at_ns: Option<u64>,
    /// Whether this member was not stepped for long before that.
    was_paused: bool,
    /// Longest time between two polls of late.
    own_gap_ns: u64,
    /// Timeout under the present load; at least that of `detection`.
    allowed_ns: u64,
    /// Gaps, to find their median; kept, so that it allocates once.
    gaps: Vec<u64>,
}

/// A member's heartbeat, as it was seen last.
#[derive(Debug, Clone, Copy, Default)]
struct Heartbeat {
    value: u64,
    /// Time at which the value was new.
    new_at_ns: u64,
    /// Longest time between two values of late; 0 before the second.
    gap_ns: u64,
}

/// How late a member's heartbeat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lateness {
    /// Within the timeout.
    None,
    /// Beyond the timeout.
    Late,
    /// Beyond some times the timeout: late even if the group is, too.
    VeryLate,
}

/// Most times the timeout that a group under load is granted.
const LOAD_MAX: u64 = 8;
/// Times the timeout that members are granted of which more than half are late at once. A part of the
/// group that has lost more than half of the others has no majority: this only delays its stop.
const SUDDEN_LOAD_MAX: u64 = 4;
/// A long gap is forgotten after this many times its length.
const GAPS_KEPT: u64 = 8;

/// The longest gap of late: a new one, or the longest so far less what is forgotten of it.
fn longest(before_ns: u64, gap_ns: u64) -> u64 {
    gap_ns.max(before_ns.saturating_sub(gap_ns / GAPS_KEPT))
}

impl Detector {
    pub(super) fn new(detection: Detection, members: usize) -> Self {
        Self {
            detection,
            heartbeats: vec![Heartbeat::default(); members],
            heartbeat_sent_at_ns: None,
            polled_at_ns: None,
            was_paused: false,
            own_gap_ns: 0,
            allowed_ns: detection.timeout_ns,
            gaps: Vec::with_capacity(members),
        }
    }

    /// To be called at every step. True if this member's own heartbeat is due.
    ///
    /// A member that was itself not stepped for long cannot tell whether others sent
    /// heartbeats meanwhile: it grants all of them the whole timeout again.
    pub(super) fn poll(&mut self, now: u64) -> bool {
        let gap_ns = self.polled_at_ns.map(|polled| now.saturating_sub(polled));
        self.polled_at_ns = Some(now);
        self.was_paused = gap_ns.is_none_or(|gap_ns| gap_ns > self.detection.timeout_ns / 2);
        if self.was_paused {
            self.heartbeats.iter_mut().for_each(|it| it.new_at_ns = now);
        }
        self.own_gap_ns = longest(self.own_gap_ns, gap_ns.unwrap_or(0));
        let is_due = self
            .heartbeat_sent_at_ns
            .is_none_or(|sent| now.saturating_sub(sent) >= self.detection.interval_ns());
        if is_due {
            self.heartbeat_sent_at_ns = Some(now);
            self.adapt();
        }
        is_due
    }

    /// Whether this member was not stepped for long before the last poll.
    pub(super) fn was_paused(&self) -> bool {
        self.was_paused
    }

    /// The timeout under the present load.
    pub(super) fn timeout_ns(&self) -> u64 {
        self.allowed_ns
    }

    /// Adapts the timeout to the lateness of the group.
    fn adapt(&mut self) {
        self.gaps.clear();
        self.gaps.push(self.own_gap_ns);
        let known = self.heartbeats.iter().map(|it| it.gap_ns);
        self.gaps.extend(known.filter(|gap_ns| *gap_ns > 0));
        // Of two, the shorter: one member that is late is not the group.
        let middle = (self.gaps.len() - 1) / 2;
        let (_, median, _) = self.gaps.select_nth_unstable(middle);
        let timeout_ns = u128::from(self.detection.timeout_ns);
        let interval_ns = u128::from(self.detection.interval_ns().max(1));
        let allowed_ns = timeout_ns * u128::from(*median) / interval_ns;
        let most_ns = timeout_ns * u128::from(LOAD_MAX);
        // Between the timeout and some times as much: it fits.
        let allowed_ns = allowed_ns.clamp(timeout_ns, most_ns);
        self.allowed_ns = u64::try_from(allowed_ns).unwrap_or(u64::MAX);
    }

    /// Records a member's heartbeat, and tells how late it is.
    ///
    /// A member without a first heartbeat may still be preparing the view, and wait there for
    /// another member that never comes. Members that hear earlier of that member's failure
    /// begin the view earlier, by up to the whole preparation time.
    pub(super) fn lateness(&mut self, rank: Rank, value: u64, now: u64) -> Lateness {
        let heartbeat = &mut self.heartbeats[rank.index()];
        let since_ns = now.saturating_sub(heartbeat.new_at_ns);
        if value != heartbeat.value {
            if heartbeat.value != 0 {
                heartbeat.gap_ns = longest(heartbeat.gap_ns, since_ns);
            }
            (heartbeat.value, heartbeat.new_at_ns) = (value, now);
            return Lateness::None;
        }
        let preparation_ns = match value {
            0 => self.detection.preparation_ns,
            _ => 0,
        };
        let allowed_ns = self.allowed_ns.saturating_add(preparation_ns);
        match since_ns {
            _ if since_ns <= allowed_ns => Lateness::None,
            _ if since_ns <= allowed_ns.saturating_mul(SUDDEN_LOAD_MAX) => Lateness::Late,
            _ => Lateness::VeryLate,
        }
    }

    /// What is known of the heartbeats of the other members; of each rank, whether it is suspected.
    pub(super) fn figures(&self, me: Rank, is_suspected: impl Fn(Rank) -> bool) -> DetectorFigures {
        // Nothing is known of the time since then.
        let polled_at_ns = self.polled_at_ns.unwrap_or(0);
        let others = (0..).map(Rank).zip(&self.heartbeats);
        let others = others.filter(|(rank, _)| *rank != me);
        DetectorFigures {
            interval_ns: self.detection.interval_ns(),
            timeout_ns: self.detection.timeout_ns,
            allowed_ns: self.allowed_ns,
            own_gap_ns: self.own_gap_ns,
            heartbeats: others
                .map(|(rank, heartbeat)| HeartbeatFigures {
                    member: rank.0,
                    has_begun: heartbeat.value != 0,
                    silent_ns: polled_at_ns.saturating_sub(heartbeat.new_at_ns),
                    gap_ns: heartbeat.gap_ns,
                    is_suspected: is_suspected(rank),
                })
                .collect(),
        }
    }

    /// Time of the next heartbeat: the latest time for the next step.
    pub(super) fn next_heartbeat_at_ns(&self) -> u64 {
        self.heartbeat_sent_at_ns
            .map_or(0, |sent| sent + self.detection.interval_ns())
    }
}

/// Whether so many of the other members are late at once that it is load.
pub(super) fn is_load(late: usize, others: usize) -> bool {
    others >= 3 && late * 2 > others
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
            detector.lateness(OTHER, heartbeat(now), now) != Lateness::None
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

    /// A group of `members` whose heartbeats come ever later, up to `gap_ns` after each other. Then
    /// that of member 1 stops: after how long it is late.
    fn late_after(members: u16, gap_ns: u64) -> u64 {
        let detection = Detection {
            timeout_ns: TIMEOUT_NS,
            preparation_ns: 0,
        };
        let mut detector = Detector::new(detection, members.into());
        let (mut beats, mut gap, mut next) = (1, detection.interval_ns(), 0);
        let mut stopped = None;
        for now in (0..).step_by(10) {
            detector.poll(now);
            if now >= next && stopped.is_none() {
                (beats, next) = (beats + 1, now + gap);
                gap = gap_ns.min(gap + gap / 2);
                stopped = (beats > 40).then_some((now, beats));
            }
            for rank in (1..members).map(Rank) {
                // The others go on.
                let others = stopped.map_or(beats, |(at, beats)| beats + (now - at) / gap_ns);
                let value = if rank == OTHER { beats } else { others };
                let lateness = detector.lateness(rank, value, now);
                if let (Some((at, _)), true) = (stopped, lateness != Lateness::None) {
                    assert_eq!(rank, OTHER);
                    return now - at;
                }
                assert_eq!(lateness, Lateness::None, "at {now}");
            }
        }
        unreachable!("it is late at some time")
    }

    #[test]
    fn a_group_that_is_late_as_a_whole_gets_more_time() {
        let interval = TIMEOUT_NS / 3;
        assert_eq!(late_after(5, interval), TIMEOUT_NS + 10);
        // Each heartbeat takes as long as the timeout: three times the interval.
        assert_eq!(late_after(5, TIMEOUT_NS), 3 * TIMEOUT_NS + 10);
        assert_eq!(late_after(5, 7 * TIMEOUT_NS), LOAD_MAX * TIMEOUT_NS + 10);
    }

    #[test]
    fn figures_tell_how_late_each_other_member_is() {
        let detection = Detection {
            timeout_ns: TIMEOUT_NS,
            preparation_ns: 0,
        };
        let mut detector = Detector::new(detection, 4);
        // Member 1 beats in time, member 2 stops at 200, and member 3 never begins.
        for now in (0..=500).step_by(50) {
            detector.poll(now);
            detector.lateness(Rank(1), 1 + now / 100, now);
            detector.lateness(Rank(2), 1 + now.min(200) / 100, now);
            detector.lateness(Rank(3), 0, now);
        }
        let figures = detector.figures(Rank(0), |rank| rank == Rank(2));
        let told: Vec<_> = figures
            .heartbeats
            .iter()
            .map(|it| {
                (
                    it.member,
                    it.has_begun,
                    it.silent_ns,
                    it.gap_ns,
                    it.is_suspected,
                )
            })
            .collect();
        let right = [
            (1, true, 0, 100, false),
            (2, true, 300, 100, true),
            (3, false, 500, 0, false),
        ];
        assert_eq!(told, right);
        assert_eq!((figures.interval_ns, figures.timeout_ns), (100, TIMEOUT_NS));
        assert_eq!(figures.own_gap_ns, 50);
    }

    #[test]
    fn one_late_member_of_a_pair_gets_no_more_time() {
        assert_eq!(late_after(2, TIMEOUT_NS - 10), TIMEOUT_NS + 10);
    }

    #[test]
    fn more_than_half_of_the_others_at_once_is_load() {
        assert!(is_load(2, 3) && is_load(51, 100));
        assert!(!is_load(1, 3) && !is_load(50, 100));
        assert!(!is_load(1, 1) && !is_load(2, 2));
    }
}
