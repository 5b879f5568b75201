//! What the logs of a topic have on disk, as far as a participant knows: positions, by how many logs.
//!
//! Positions never fall, and a log has all records of its topic below the position that it says. So how much
//! one log, a majority of them or all have is one position each, which goes on from epoch to epoch. What was
//! delivered in an epoch and not recorded by the log that an opening begins with is *lost*: no log will have
//! it.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

use spindle_dds_transport::Fabric;

use super::roster::{Generation, LogGroup};
use crate::ids::DeliveryClass;
use crate::subgroup::claim::Committed;
use crate::subgroup::handle::SubgroupHandle;

/// How many logs have to have a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degree {
    /// That of the participant itself; any one where it does not log.
    Local,
    /// A strict majority.
    Quorum,
    /// All.
    All,
}

/// How a sample stands to the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged {
    /// So many logs as are asked for have it.
    Yes,
    /// They do not have it yet.
    NotYet,
    /// It is not known that any log will have it.
    Lost,
}

/// An epoch of the topic's subgroup: how often the participant had lost its group, and the view that
/// began it.
pub type EpochKey = (u32, u64);

/// Where the messages of this participant stand in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochPlace {
    /// The epoch.
    pub key: EpochKey,
    /// Position at which the epoch begins.
    pub base: u64,
    /// Position of this participant's first message, and the distance from one to the next. `None`
    /// where it does not send.
    pub sends: Option<(u64, u64)>,
}

impl EpochPlace {
    /// That of an epoch's handle; `outages`: how often the participant had lost its group.
    pub fn of<F: Fabric>(handle: &SubgroupHandle<F>, outages: u32) -> Self {
        let position = |index| {
            handle.position_of(&Committed {
                subgroup: handle.id(),
                epoch: handle.epoch(),
                class: DeliveryClass::Ordered,
                index,
            })
        };
        let sends = position(0).zip(position(1));
        Self {
            key: (outages, handle.epoch()),
            base: handle.base(),
            sends: sends.map(|(first, second)| (first, second - first)),
        }
    }
}

/// Delivered, and in no log of a later opening.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lost {
    positions: Range<u64>,
    /// The first epoch after it.
    until: EpochKey,
}

/// The last opening that was seen.
#[derive(Debug)]
struct Opening {
    generation: Generation,
    /// Position at which the first epoch began that was seen of it.
    base: u64,
    /// It is known to have taken samples.
    is_used: bool,
}

impl Opening {
    /// The end of what the log that a later opening begins with has of what was delivered up to now. Other
    /// openings, of which nothing was seen here, may have come in between.
    fn end_in(&self, group: &LogGroup) -> u64 {
        let Some(source) = group.source else {
            return 0;
        };
        // Of two openings with one number, one at most has taken samples.
        let mut rosters = group.rosters.iter();
        let is_known = self.is_used || rosters.any(|it| it.generation == self.generation);
        match source.generation.cmp(&self.generation.number) {
            Ordering::Less => source.end.min(self.base),
            Ordering::Equal if is_known => source.end,
            // Its last records are of an opening that was not seen.
            Ordering::Equal | Ordering::Greater => 0,
        }
    }
}

/// What is known of the logs of a topic.
#[derive(Debug, Default)]
pub struct LogLevels {
    /// By degree: so many logs have the records below.
    levels: [u64; 3],
    opening: Option<Opening>,
    /// The last epochs, oldest first; one after the other.
    places: VecDeque<EpochPlace>,
    lost: VecDeque<Lost>,
}

/// Epochs in which a message is found by its index.
const PLACES_MAX: usize = 64;
/// Most ranges that are remembered; of the older ones all before the newest is taken for lost.
const LOST_MAX: usize = 64;

impl LogLevels {
    /// An epoch begins, with these logs.
    pub fn enter(&mut self, place: EpochPlace, group: Option<&LogGroup>) {
        if self.places.back().is_none_or(|last| last.key != place.key) {
            self.places.push_back(place);
            if self.places.len() > PLACES_MAX {
                self.places.pop_front();
            }
        }
        if let Some(group) = group.filter(|it| it.is_open()) {
            self.opened(place, group);
        }
    }

    fn opened(&mut self, place: EpochPlace, group: &LogGroup) {
        let generation = group.generation;
        let known = self.opening.as_ref();
        if known.is_some_and(|it| it.generation == generation) {
            return;
        }
        let new = Opening {
            generation,
            base: place.base,
            is_used: false,
        };
        let Some(before) = self.opening.replace(new) else {
            return;
        };
        let end = before.end_in(group).min(place.base);
        for level in &mut self.levels {
            *level = end.min(*level);
        }
        if end < place.base {
            self.lost.push_back(Lost {
                positions: end..place.base,
                until: place.key,
            });
            if self.lost.len() > LOST_MAX
                && let (Some(first), Some(next)) = (self.lost.pop_front(), self.lost.front_mut())
            {
                next.positions.start = first.positions.start.min(next.positions.start);
            }
        }
    }

    /// The logs of the present epoch have these positions, one each; `own` is the index of this
    /// participant's. Returns whether any level has risen.
    pub fn note(&mut self, words: &[u64], own: Option<usize>) -> bool {
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
            return false;
        };
        let local = own.and_then(|own| words.get(own)).unwrap_or(most);
        // A strict majority has this one, or more. It speaks for an earlier epoch only if all do: the
        // roster of this one may never be confirmed, and a majority of the one before has less.
        let base = self.places.back().map_or(0, |place| place.base);
        let quorum = match *least >= base {
            true => sorted[(sorted.len() - 1) / 2],
            false => 0,
        };
        if *least > 0
            && *least >= base
            && let Some(opening) = &mut self.opening
        {
            opening.is_used = true;
        }
        let mut has_risen = false;
        for (level, now) in self.levels.iter_mut().zip([*local, quorum, *least]) {
            has_risen |= *level < now;
            *level = now.max(*level);
        }
        has_risen
    }

    /// How a position stands.
    pub fn at(&self, degree: Degree, position: u64) -> Logged {
        let mut lost = self.lost.iter();
        if lost.any(|it| it.positions.contains(&position)) {
            return Logged::Lost;
        }
        match self.level(degree) > position {
            true => Logged::Yes,
            false => Logged::NotYet,
        }
    }

    /// How a message of this participant stands that was sent in an epoch, with this index.
    pub fn of_message(&self, degree: Degree, key: EpochKey, index: u64) -> Logged {
        let mut places = self.places.iter();
        let place = places.find(|it| it.key >= key);
        match place {
            // No view has begun it yet.
            None => Logged::NotYet,
            Some(place) if place.key == key => {
                let Some((first, distance)) = place.sends else {
                    return Logged::NotYet;
                };
                self.at(degree, first.saturating_add(index.saturating_mul(distance)))
            }
            // It is somewhere before that epoch.
            Some(after) => {
                if self.lost.iter().any(|it| it.until > key) {
                    return Logged::Lost;
                }
                match self.level(degree) >= after.base {
                    true => Logged::Yes,
                    false => Logged::NotYet,
                }
            }
        }
    }

    fn level(&self, degree: Degree) -> u64 {
        self.levels[degree as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::membership::MemberId;
    use crate::storage::{LogGroupState, LogId, LogSource, Logger};

    use super::*;

    const DEGREES: [Degree; 3] = [Degree::Local, Degree::Quorum, Degree::All];

    fn group(number: u64, end: u64) -> LogGroup {
        let logger = Logger {
            member: MemberId(1),
            log: LogId(1),
        };
        LogGroup {
            lineage: 1,
            generation: Generation {
                number,
                view: number,
                source: MemberId(1),
            },
            since: number,
            rosters: Vec::new(),
            whole: vec![LogId(1)],
            loggers: vec![logger],
            source: Some(LogSource {
                logger,
                end,
                generation: number - 1,
            }),
            state: LogGroupState::Open,
        }
    }

    /// An epoch in which this participant is the second of two senders.
    fn place(view: u64, base: u64) -> EpochPlace {
        EpochPlace {
            key: (0, view),
            base,
            sends: Some((base + 1, 2)),
        }
    }

    fn levels(levels: &LogLevels, position: u64) -> [Logged; 3] {
        DEGREES.map(|degree| levels.at(degree, position))
    }

    use Logged::{Lost, NotYet, Yes};

    #[test]
    fn one_log_a_majority_and_all_are_told_apart() {
        for (words, own, expected) in [
            (&[][..], None, [NotYet, NotYet, NotYet]),
            (&[0, 0, 0], None, [NotYet, NotYet, NotYet]),
            (&[11, 0, 0], None, [Yes, NotYet, NotYet]),
            (&[11, 0, 0], Some(1), [NotYet, NotYet, NotYet]),
            (&[10, 11, 11], Some(0), [NotYet, Yes, NotYet]),
            (&[11, 11, 11], Some(2), [Yes, Yes, Yes]),
            (&[11, 0], None, [Yes, NotYet, NotYet]),
            (&[11, 11, 0, 0], None, [Yes, NotYet, NotYet]),
            (&[11, 11, 11, 0], None, [Yes, Yes, NotYet]),
            (&[11], Some(0), [Yes, Yes, Yes]),
        ] {
            let mut known = LogLevels::default();
            known.enter(place(1, 0), Some(&group(1, 0)));
            known.note(words, own);
            assert_eq!(levels(&known, 10), expected, "{words:?}");
        }
    }

    #[test]
    fn messages_of_an_earlier_epoch_are_logged_when_the_present_one_has_begun() {
        let mut known = LogLevels::default();
        known.enter(place(1, 100), Some(&group(1, 0)));
        assert!(known.note(&[104], None));
        let fate = |known: &LogLevels, view, index| known.of_message(Degree::All, (0, view), index);
        // At 101, 103 and 105.
        assert_eq!([0, 1, 2].map(|it| fate(&known, 1, it)), [Yes, Yes, NotYet]);
        known.enter(place(2, 110), Some(&group(1, 0)));
        assert!(!known.note(&[0], None), "nothing is recorded in it yet");
        assert_eq!(fate(&known, 1, 1), Yes);
        assert_eq!(fate(&known, 1, 2), NotYet);
        assert!(known.note(&[110], None));
        assert_eq!(fate(&known, 1, 2), Yes);
        assert_eq!(fate(&known, 0, 7), Yes, "an epoch that is not remembered");
        assert_eq!(fate(&known, 2, 0), NotYet);
        assert_eq!(fate(&known, 3, 0), NotYet, "one that has not begun");
    }

    #[test]
    fn a_majority_speaks_for_an_earlier_epoch_only_if_all_do() {
        let mut known = LogLevels::default();
        known.enter(place(1, 100), Some(&group(1, 0)));
        known.note(&[100, 104, 102], None);
        let fate = |known: &LogLevels, index| known.of_message(Degree::Quorum, (0, 1), index);
        // At 101, 103 and 105.
        assert_eq!([0, 1, 2].map(|it| fate(&known, it)), [Yes, NotYet, NotYet]);
        known.enter(place(2, 110), Some(&group(1, 0)));
        // The roster of this epoch may never be confirmed.
        known.note(&[110, 110, 0], None);
        assert_eq!(fate(&known, 2), NotYet);
        known.note(&[110, 110, 110], None);
        assert_eq!(fate(&known, 2), Yes);
    }

    #[test]
    fn what_an_opening_does_not_have_is_lost() {
        let mut known = LogLevels::default();
        known.enter(place(1, 100), Some(&group(1, 0)));
        known.note(&[104], None);
        // Its only logger is gone, and back without what it had not brought to its disk.
        known.enter(place(2, 110), None);
        assert_eq!(known.of_message(Degree::All, (0, 1), 2), NotYet);
        known.enter(place(3, 120), Some(&group(2, 104)));
        let fate = |known: &LogLevels, view, index| known.of_message(Degree::All, (0, view), index);
        assert_eq!([1, 2, 3].map(|it| fate(&known, 1, it)), [Yes, Lost, Lost]);
        assert_eq!(fate(&known, 0, 0), Lost, "it is not known where it was");
        known.note(&[121], None);
        assert_eq!(fate(&known, 1, 2), Lost);
        assert_eq!(levels(&known, 119), [Lost; 3]);
        assert_eq!(levels(&known, 120), [Yes; 3]);
        // An opening that has all.
        known.enter(place(4, 130), Some(&group(3, 130)));
        assert_eq!(levels(&known, 125), [NotYet; 3]);
        known.note(&[130], None);
        assert_eq!(levels(&known, 125), [Yes; 3]);
    }

    #[test]
    fn openings_that_were_not_seen_may_have_lost_anything() {
        let mut known = LogLevels::default();
        known.enter(place(1, 0), Some(&group(1, 0)));
        known.note(&[50], None);
        let back = |view, base| EpochPlace {
            key: (1, view),
            ..place(view, base)
        };
        known.enter(back(7, 100), Some(&group(2, 40)));
        assert_eq!(levels(&known, 39), [Yes; 3]);
        assert_eq!(levels(&known, 45), [Lost; 3]);
        let mut known = LogLevels::default();
        known.enter(place(1, 0), Some(&group(1, 0)));
        known.note(&[50], None);
        known.enter(back(7, 100), Some(&group(3, 90)));
        assert_eq!(levels(&known, 39), [Lost; 3]);
    }

    /// Another group, of which nothing is seen here, has opened the logs in between, and has logged other
    /// samples at the same positions.
    #[test]
    fn what_another_group_has_logged_is_not_what_was_delivered_here() {
        let mut known = LogLevels::default();
        known.enter(place(1, 27), Some(&group(2, 27)));
        known.note(&[27], None);
        known.enter(place(2, 33), None);
        known.enter(place(3, 39), Some(&group(4, 39)));
        known.note(&[39], None);
        assert_eq!(levels(&known, 30), [Lost; 3]);
        assert_eq!(levels(&known, 39), [NotYet; 3]);
    }

    /// None of the logs had brought any of the last opening to its disk.
    #[test]
    fn records_of_an_earlier_opening_are_not_those_of_the_last_one() {
        let mut known = LogLevels::default();
        known.enter(place(1, 40), Some(&group(3, 40)));
        known.note(&[40], None);
        known.enter(place(2, 46), None);
        let mut next = group(4, 50);
        next.source = next.source.map(|it| LogSource {
            generation: 2,
            ..it
        });
        known.enter(place(3, 50), Some(&next));
        known.note(&[50], None);
        assert_eq!(levels(&known, 42), [Lost; 3]);
        assert_eq!(levels(&known, 39), [Yes; 3]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = LogLevels::default();
        for number in 1..1000 {
            known.enter(
                place(number, 10 * number),
                Some(&group(number, 10 * number - 5)),
            );
        }
        assert_eq!(
            (known.places.len(), known.lost.len()),
            (PLACES_MAX, LOST_MAX)
        );
        // In doubt it is lost.
        assert_eq!(known.at(Degree::All, 17), Lost);
        assert_eq!(known.at(Degree::All, 22), Lost);
        assert_eq!(known.of_message(Degree::Local, (0, 3), 0), Lost);
    }
}
