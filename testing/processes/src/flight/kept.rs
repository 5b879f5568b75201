//! What a display gets of the samples that it was not there for: what the profile keeps.
//!
//! ```text
//!   all samples of a topic, in order   a b c d e f g h i j k l
//!   the last of each aircraft          . . c . . f g|h i j k l     joined, or came back, at |
//! ```
//!
//! What is before the boundary is what was kept there; from the boundary on the display has all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_dds::qos::{DataWriterQos, DurabilityKind, HistoryKind};

use super::journal::Entry;

/// What is kept of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kept {
    /// VOLATILE.
    #[default]
    Nothing,
    /// The last samples of each aircraft.
    Last {
        depth: u32,
        /// Of each feed (TRANSIENT_LOCAL), or of all together (TRANSIENT).
        by_feed: bool,
    },
    /// KEEP_ALL.
    All,
}

impl Kept {
    /// By the QoS of the feeds' writers.
    pub(super) fn of(qos: &DataWriterQos) -> Self {
        let (history, by_feed) = match qos.durability.kind {
            DurabilityKind::Volatile => return Self::Nothing,
            DurabilityKind::TransientLocal => (qos.history, true),
            DurabilityKind::Transient | DurabilityKind::Persistent => {
                (qos.durability_service.history(), false)
            }
        };
        match history.kind {
            HistoryKind::KeepAll => Self::All,
            HistoryKind::KeepLast => Self::Last {
                depth: history.depth,
                by_feed,
            },
        }
    }

    /// Whether the sample of one feed replaces that of another one.
    pub(super) fn is_of_all_feeds(self) -> bool {
        matches!(self, Self::Last { by_feed: false, .. })
    }

    /// Checks the samples of one topic at a display that was not there all the time. Fails with the
    /// number of samples that are as they have to be.
    pub(super) fn check(
        self,
        whole: &[Entry],
        own: &[Entry],
        absence: Absence,
    ) -> Result<(), usize> {
        let (depth, by_feed, count) = match self {
            Self::Last { depth, by_feed } => (depth as usize, by_feed, absence.count),
            Self::Nothing | Self::All => (0, false, 0),
        };
        let is_covered = count == 0 || absence.from_max >= absence.boundary_min;
        let catch_up = CatchUp {
            whole,
            depth,
            by_feed,
            absence,
        };
        catch_up.check(0, own, count, is_covered)
    }
}

/// When a display was not there, in samples of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Absence {
    /// How often, at most.
    pub(super) count: usize,
    /// One absence began before this sample...
    pub(super) from_max: usize,
    /// ...and did not end before this one. There is nothing to be said if that is not later.
    pub(super) boundary_min: usize,
}

/// The last samples of each aircraft.
#[derive(Debug, Clone, Copy)]
struct CatchUp<'a> {
    whole: &'a [Entry],
    depth: usize,
    by_feed: bool,
    absence: Absence,
}

impl CatchUp<'_> {
    /// From `start` on, `own` has all samples, up to the next absence if there is one. One of them
    /// has to cover the known one.
    fn check(
        self,
        start: usize,
        own: &[Entry],
        absences: usize,
        is_covered: bool,
    ) -> Result<(), usize> {
        let whole = &self.whole[start..];
        let same = own.iter().zip(whole).take_while(|(a, b)| a.is_same_as(b));
        let same = same.count();
        if is_covered && same == own.len() && same == whole.len() {
            return Ok(());
        }
        if absences == 0 {
            return Err(same);
        }
        // The later it begins, the less is asked for.
        let known = (self.absence.from_max.max(start) - start).min(same);
        let mut right = same;
        for had in [same, known] {
            match self.check_absence(start + had, &own[had..], absences, is_covered) {
                Ok(()) => return Ok(()),
                Err(more) => right = right.max(had + more),
            }
        }
        Err(right)
    }

    /// The display has nothing live from `from` on until a boundary.
    fn check_absence(
        self,
        from: usize,
        own: &[Entry],
        absences: usize,
        is_covered: bool,
    ) -> Result<(), usize> {
        let mut counts: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        let (mut boundary, mut kept, mut right) = (from, 0, 0);
        // The last sample before the boundary is kept, so the boundary is after one of its own.
        for (at, entry) in own.iter().enumerate() {
            let mut left = self.whole[boundary..].iter();
            let Some(found) = left.position(|it| it.is_same_as(entry)) else {
                return Err(right.max(at));
            };
            for passed in &self.whole[boundary..=boundary + found] {
                let count = counts.entry(self.group(passed)).or_default();
                *count += 1;
                kept += usize::from(*count <= self.depth);
            }
            boundary += found + 1;
            if kept != at + 1 || !self.is_kept(&self.whole[from..boundary], &own[..=at]) {
                continue;
            }
            let covers = from <= self.absence.from_max && boundary >= self.absence.boundary_min;
            match self.check(boundary, &own[at + 1..], absences - 1, is_covered || covers) {
                Ok(()) => return Ok(()),
                Err(more) => right = right.max(at + 1 + more),
            }
        }
        Err(right)
    }

    /// What the last samples are kept of.
    fn group(self, entry: &Entry) -> (u32, u16) {
        (entry.aircraft, if self.by_feed { entry.feed } else { 0 })
    }

    /// Whether `own` is what is kept of `passed`: there are as many.
    fn is_kept(self, passed: &[Entry], own: &[Entry]) -> bool {
        let mut counts: BTreeMap<(u32, u16), usize> = BTreeMap::new();
        let is_kept = |it: &&Entry| {
            let count = counts.entry(self.group(it)).or_default();
            *count += 1;
            *count <= self.depth
        };
        let kept = passed.iter().rev().filter(is_kept);
        kept.zip(own.iter().rev()).all(|(a, b)| a.is_same_as(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::journal::Topic;

    /// Of these aircraft, one after the other, by two feeds in turn.
    fn entries(aircraft: &[u32]) -> Vec<Entry> {
        let entry = |(at, aircraft): (u64, &u32)| Entry {
            topic: Topic::States,
            feed: (at % 2) as u16,
            aircraft: *aircraft,
            number: at / 2 + 1,
            position: at + 10,
            digest: at * 31,
            sent_at_ns: at as i64,
            taken_at_ns: at,
        };
        (0..).zip(aircraft).map(entry).collect()
    }

    const LAST: Kept = Kept::Last {
        depth: 1,
        by_feed: false,
    };

    fn check(kept: Kept, own: &[usize], count: usize, expected: Result<(), usize>) {
        let absence = Absence {
            count,
            ..Absence::default()
        };
        check_absence(kept, own, absence, expected);
    }

    fn check_absence(kept: Kept, own: &[usize], absence: Absence, expected: Result<(), usize>) {
        let whole = entries(&[1, 2, 1, 3, 1, 2, 3, 1, 2, 1]);
        let own: Vec<Entry> = own.iter().map(|at| whole[*at]).collect();
        assert_eq!(kept.check(&whole, &own, absence), expected, "{own:?}");
    }

    #[test]
    fn a_display_that_joined_has_what_was_kept_and_all_that_followed() {
        let all: Vec<usize> = (0..10).collect();
        for kept in [LAST, Kept::All] {
            check(kept, &all, 0, Ok(()));
            check(kept, &all, 1, Ok(()));
            check(kept, &all[1..], 0, Err(0));
            check(kept, &[], 1, Err(0));
        }
        check(Kept::All, &all[1..], 1, Err(0));
        // The boundary is before 6, before 7, and at the end.
        check(LAST, &[3, 4, 5, 6, 7, 8, 9], 1, Ok(()));
        check(LAST, &[4, 5, 6, 7, 8, 9], 1, Ok(()));
        check(LAST, &[6, 8, 9], 1, Ok(()));
        // One too few, one too many, one that was replaced, and a gap at the boundary.
        check(LAST, &[7, 8, 9], 1, Err(0));
        check(LAST, &[2, 3, 4, 5, 6, 7, 8, 9], 1, Err(0));
        check(LAST, &[3, 2, 5, 6, 7, 8, 9], 1, Err(1));
        check(LAST, &[3, 4, 5, 7, 8, 9], 1, Err(3));
        check(LAST, &[6, 8], 1, Err(0));
    }

    #[test]
    fn a_display_that_came_back_has_what_was_kept_of_the_time_between() {
        check(LAST, &[0, 1, 4, 5, 6, 7, 8, 9], 1, Ok(()));
        check(LAST, &[0, 1, 4, 5, 6, 7, 8, 9], 0, Err(2));
        check(LAST, &[0, 3, 4, 5, 6, 8, 9], 1, Err(5));
        check(LAST, &[0, 3, 4, 5, 6, 8, 9], 2, Ok(()));
        check(LAST, &[0, 1, 7, 8, 9], 1, Err(2));
    }

    #[test]
    fn what_was_replaced_does_not_come() {
        let absence = |from_max, boundary_min| Absence {
            count: 1,
            from_max,
            boundary_min,
        };
        let all: Vec<usize> = (0..10).collect();
        // It joined with the first samples, or after them.
        check_absence(LAST, &all, absence(0, 2), Ok(()));
        check_absence(LAST, &all, absence(0, 3), Err(10));
        check_absence(Kept::All, &all, absence(0, 3), Ok(()));
        check_absence(LAST, &[1, 2, 3, 4, 5, 6, 7, 8, 9], absence(0, 3), Ok(()));
        check_absence(LAST, &[1, 2, 3, 4, 5, 6, 7, 8, 9], absence(0, 5), Err(9));
        check_absence(LAST, &[6, 8, 9], absence(0, 10), Ok(()));
        // It was away from 3 on at the latest, until 7 at least.
        check_absence(LAST, &all, absence(3, 7), Err(10));
        check_absence(LAST, &[0, 1, 2, 4, 5, 6, 7, 8, 9], absence(3, 7), Ok(()));
        check_absence(LAST, &[0, 1, 2, 3, 4, 5, 6, 8, 9], absence(3, 7), Err(9));
        check_absence(LAST, &all, absence(7, 7), Ok(()));
    }

    #[test]
    fn each_feed_has_a_history_of_its_own() {
        let by_feed = Kept::Last {
            depth: 1,
            by_feed: true,
        };
        check(by_feed, &[1, 3, 4, 5, 6, 7, 8, 9], 1, Ok(()));
        check(by_feed, &[4, 5, 6, 7, 8, 9], 1, Err(0));
    }
}
