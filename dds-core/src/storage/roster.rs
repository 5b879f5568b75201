//! Which logs a topic has: agreed by all members, as it follows from the views alone.
//!
//! A *log* keeps the delivered messages of a topic on the disk of a participant. The logs of a topic in
//! a group are its *loggers*, their list is a *roster*. A log records a roster before the epoch in which
//! it begins takes samples of PERSISTENT writers: then it is *proposed*. When all its logs have recorded it, the
//! epoch takes samples, and the roster is *confirmed*.
//!
//! ```text
//!   loggers go on            they are a majority of the last confirmed roster,  open, roster = loggers
//!                            and of each one agreed since
//!                            they are not                                       shut
//!   a log has caught up      it is added to the loggers
//!   none of them is whole    the logs that are there are a majority of the      opening: generation + 1
//!                            newest confirmed roster, and of each proposed one
//! ```
//!
//! Why nothing is lost: a roster holds a strict majority of the one before. So those that open a topic after
//! a total restart have among them one that has recorded the newest roster, proposed at least, and
//! they are asked for its majority, in which one holds all that a majority had acknowledged. Rosters that
//! were only proposed may have equal generation numbers, and hold no records. Confirmed ones do not:
//! the later opening has a log of the earlier one, and takes a greater number. So logs are ranked
//! by the generation of their last record and their end, as in Raft (Ongaro and Ousterhout, 2014,
//! section 5.4), and not by their rosters.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::limits::LOG_ROSTERS_MAX;
use crate::membership::MemberId;

/// Identity of a log; never used again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct LogId(pub u128);

impl core::fmt::Display for LogId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An opening of a topic's logs. Of those that were confirmed, none has the number of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Generation {
    /// One more than the greatest that any of its logs knew.
    pub number: u64,
    /// The view in which it began.
    pub view: u64,
    /// The member whose log it began with.
    pub source: MemberId,
}

/// A list of logs that is recorded in each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The opening that it belongs to.
    pub generation: Generation,
    /// The view in which it begins.
    pub epoch: u64,
    /// The logs, ascending.
    pub logs: Vec<LogId>,
}

/// What a member announces of its log of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The log.
    pub log: LogId,
    /// What its records descend from: the log that a first roster began with. 0: it has no roster yet.
    pub lineage: u128,
    /// Number of the generation of its last record, 0 without one.
    pub generation: u64,
    /// Position after its last record.
    pub end: u64,
    /// Its newest confirmed roster.
    pub confirmed: Option<Roster>,
    /// The rosters that it has recorded after that one, in the order in which it has.
    pub proposed: Vec<Roster>,
    /// It has all records of the generation with this number, and appends those that are delivered.
    pub follows: Option<u64>,
    /// The view in which this was so, 0 before it was in any.
    pub as_of: u64,
}

/// A log that is written in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Logger {
    /// Its member.
    pub member: MemberId,
    /// The log.
    pub log: LogId,
}

/// The log from which the others of an opening take what they lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSource {
    /// The log and its member.
    pub logger: Logger,
    /// Its end.
    pub end: u64,
    /// Number of the generation of its last record, 0 without one.
    pub generation: u64,
}

/// The loggers of a topic in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGroup {
    /// What their records descend from; 0 before the first opening.
    pub lineage: u128,
    /// The opening.
    pub generation: Generation,
    /// View in which the loggers changed last.
    pub since: u64,
    /// The newest roster that is known to be confirmed, and those that were agreed after it: the next one
    /// holds a majority of each. The last one is in use. Empty before an opening.
    pub rosters: Vec<Roster>,
    /// Those that are there; before an opening, none.
    pub loggers: Vec<Logger>,
    /// Of these the logs that have all records of the generation.
    pub whole: Vec<LogId>,
    /// Where the generation began.
    pub source: Option<LogSource>,
    /// Whether the topic takes samples of PERSISTENT writers.
    pub state: LogGroupState,
}

/// Whether samples can be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogGroupState {
    /// They are.
    Open,
    /// Too few logs of the last roster are there.
    NoMajority {
        /// Logs of the roster that are there.
        present: usize,
        /// Number of logs of the roster.
        of: usize,
    },
    /// These two logs descend from different beginnings: one of them has to be put aside.
    Lineages(LogId, LogId),
}

impl LogGroup {
    /// The loggers of a topic in a view, by those in the view before and the logs that are announced
    /// now, by rank of their members. `None` where no log is there.
    pub fn next(before: Option<&Self>, view: u64, ends: &[(MemberId, &LogEnd)]) -> Option<Self> {
        // A log is announced once; a second announcement is a copy of its directory.
        let mut known = BTreeSet::new();
        let ends: Vec<_> = ends
            .iter()
            .filter(|(_, end)| known.insert(end.log))
            .collect();
        if ends.is_empty() {
            return None;
        }
        let lineage = before.map_or(0, |before| before.lineage);
        let next = before.and_then(|before| before.go_on(view, &ends));
        Some(next.unwrap_or_else(|| Self::open(lineage, view, &ends)))
    }

    /// Whether samples of PERSISTENT writers are logged.
    pub fn is_open(&self) -> bool {
        self.state == LogGroupState::Open
    }

    /// The log of a member, if it is a logger.
    pub fn log_of(&self, member: MemberId) -> Option<LogId> {
        let logger = self.loggers.iter().find(|it| it.member == member)?;
        Some(logger.log)
    }

    /// The roster in use.
    pub fn roster(&self) -> Option<&Roster> {
        self.rosters.last()
    }

    /// Whether a log holds all records of the generation: it began with this log, or the log has caught up
    /// since.
    fn is_whole(&self, logger: &Logger, end: &LogEnd) -> bool {
        let is_source =
            |it: LogSource| it.logger == *logger && it.end == end.end && end.follows.is_none();
        let follows = end.follows == Some(self.generation.number) && end.lineage == self.lineage;
        follows || self.source.is_some_and(is_source)
    }

    /// The group with the loggers that are still there. `None` if it is to be opened anew.
    fn go_on(&self, view: u64, ends: &[&(MemberId, &LogEnd)]) -> Option<Self> {
        let is_known = |logger: &Logger| self.loggers.contains(logger);
        let all = ends.iter().map(|(member, end)| {
            let logger = Logger {
                member: *member,
                log: end.log,
            };
            (logger, *end)
        });
        let all: Vec<(Logger, &LogEnd)> = all.collect();
        let there = all.iter().filter(|(logger, _)| is_known(logger));
        let mut loggers: Vec<(Logger, &LogEnd)> = there.copied().collect();
        if !loggers.iter().any(|(it, end)| self.is_whole(it, end)) {
            return None;
        }
        let is_newer = |end: &LogEnd| end.knows_other_than(&self.generation);
        if !self.is_open() && all.iter().any(|(_, end)| is_newer(end)) {
            // Another group may have opened it since. What was announced before this one was shut
            // does not tell all that its logs have recorded.
            let mut loggers = loggers.iter();
            if loggers.all(|(_, end)| end.as_of >= self.since) {
                return None;
            }
        }
        let new = all.iter().filter(|(logger, _)| !is_known(logger));
        loggers.extend(new.filter(|(it, end)| self.is_whole(it, end)));
        let whole = loggers.iter().filter(|(it, end)| self.is_whole(it, end));
        let whole = whole.map(|(logger, _)| logger.log).collect();
        let mut next = Self {
            loggers: loggers.iter().map(|(logger, _)| *logger).collect(),
            whole,
            ..self.clone()
        };
        let is_confirmed = |it: &Roster| {
            let mut ends = all.iter();
            ends.any(|(_, end)| end.confirmed.as_ref() == Some(it))
        };
        if let Some(at) = next.rosters.iter().rposition(is_confirmed) {
            next.rosters.drain(..at);
        }
        let logs: Vec<LogId> = next.loggers.iter().map(|it| it.log).collect();
        next.state = all_majorities(&logs, next.rosters.iter());
        let logs = sorted(logs);
        if next.is_open() && next.roster().is_none_or(|it| it.logs != logs) {
            if next.rosters.len() >= LOG_ROSTERS_MAX {
                next.state = LogGroupState::NoMajority { present: 0, of: 1 };
            } else {
                next.rosters.push(Roster {
                    generation: self.generation,
                    epoch: view,
                    logs,
                });
            }
        }
        if next.loggers != self.loggers {
            next.since = view;
        }
        Some(next)
    }

    fn shut(lineage: u128, view: u64, state: LogGroupState) -> Self {
        Self {
            lineage,
            generation: Generation::default(),
            since: view,
            rosters: Vec::new(),
            loggers: Vec::new(),
            whole: Vec::new(),
            source: None,
            state,
        }
    }

    /// The lineage that a log without records has begun, or has heard of: such a log begins no other one. 0:
    /// there is none.
    fn begun(ends: &[&(MemberId, &LogEnd)]) -> u128 {
        let lineages = ends.iter().map(|(_, end)| (end.log.0, end.lineage));
        let mut begun = lineages.clone().filter(|(log, lineage)| log == lineage);
        let mut heard = lineages.filter(|(_, lineage)| *lineage != 0);
        begun.next().or_else(|| heard.next()).map_or(0, |it| it.1)
    }

    /// `lineage`: what the records of the group before descended from; 0 without one.
    fn open(lineage: u128, view: u64, ends: &[&(MemberId, &LogEnd)]) -> Self {
        // Members of a group that has seen a lineage stay with it, unless the log that was to begin it has not.
        let has_begun =
            |(_, end): &&(MemberId, &LogEnd)| end.log.0 != lineage || end.lineage == lineage;
        let lineage = if ends.iter().copied().all(|it| has_begun(&it)) {
            lineage
        } else {
            0
        };
        let with_records = ends.iter().filter(|(_, end)| !end.is_blank());
        let mut with_records = with_records.filter(|(_, it)| lineage == 0 || it.lineage == lineage);
        let first = with_records.next();
        if let Some((_, first)) = first
            && let Some((_, other)) = with_records.find(|(_, it)| it.lineage != first.lineage)
        {
            let (a, b) = (first.log.min(other.log), first.log.max(other.log));
            return Self::shut(lineage, view, LogGroupState::Lineages(a, b));
        }
        let lineage = match first {
            Some((_, first)) => first.lineage,
            None if lineage == 0 => Self::begun(ends),
            None => lineage,
        };
        let related = ends
            .iter()
            .filter(|(_, it)| lineage != 0 && it.lineage == lineage);
        let related: Vec<&LogEnd> = related.map(|(_, end)| *end).collect();
        let rosters = LogEnd::rosters_in_use(&related);
        if rosters.is_empty() && lineage != 0 {
            // There are records, and no log here knows in which logs.
            return Self::shut(
                lineage,
                view,
                LogGroupState::NoMajority { present: 0, of: 1 },
            );
        }
        let present: Vec<LogId> = ends.iter().map(|(_, end)| end.log).collect();
        let state = all_majorities(&present, rosters.iter().copied());
        if state != LogGroupState::Open {
            return Self::shut(lineage, view, state);
        }
        let is_eligible = |end: &LogEnd| {
            rosters.is_empty() || rosters.iter().any(|it| it.logs.contains(&end.log))
        };
        let eligible: Vec<_> = ends.iter().filter(|(_, end)| is_eligible(end)).collect();
        // Of equal ones that of the oldest member: `max_by_key` takes the last.
        let best = eligible.iter().rev().max_by_key(|(_, end)| end.rank());
        let source = best.map(|(member, end)| LogSource {
            logger: Logger {
                member: *member,
                log: end.log,
            },
            end: end.end,
            generation: end.generation,
        });
        let numbers = ends.iter().map(|(_, end)| end.number_max());
        let logger = |(member, end): &&&(MemberId, &LogEnd)| Logger {
            member: *member,
            log: end.log,
        };
        let generation = Generation {
            number: numbers.max().unwrap_or(0).saturating_add(1),
            view,
            source: source.map_or(MemberId(0), |it| it.logger.member),
        };
        let mut rosters: Vec<Roster> = rosters.into_iter().cloned().collect();
        rosters.push(Roster {
            generation,
            epoch: view,
            logs: sorted(eligible.iter().map(|(_, end)| end.log).collect()),
        });
        Self {
            lineage: match lineage {
                0 => source.map_or(0, |it| it.logger.log.0),
                known => known,
            },
            generation,
            since: view,
            rosters,
            loggers: eligible.iter().map(logger).collect(),
            whole: source.map(|it| it.logger.log).into_iter().collect(),
            source,
            state: LogGroupState::Open,
        }
    }
}

impl LogEnd {
    /// The greater, the more it holds of what was acknowledged.
    pub fn rank(&self) -> (u64, u64) {
        (self.generation, self.end)
    }

    /// Its rosters, the confirmed one first.
    pub fn rosters(&self) -> impl Iterator<Item = &Roster> {
        self.confirmed.iter().chain(&self.proposed)
    }

    /// Whether nothing of it is needed: it has no record, and was in no roster with another log.
    pub(super) fn is_blank(&self) -> bool {
        let mut rosters = self.rosters();
        let is_alone = |it: &Roster| it.logs == [self.log] || !it.logs.contains(&self.log);
        self.lineage == 0 || self.end == 0 && rosters.all(is_alone)
    }

    /// Whether it knows of an opening that may be later than this one.
    pub(super) fn knows_other_than(&self, generation: &Generation) -> bool {
        let is_other =
            |it: &Roster| it.generation.number >= generation.number && it.generation != *generation;
        self.generation > generation.number || self.rosters().any(is_other)
    }

    fn number_max(&self) -> u64 {
        let numbers = self.rosters().map(|it| it.generation.number);
        numbers.chain([self.generation]).max().unwrap_or(0)
    }

    /// Of all rosters that logs know those that may be in use: the newest that is confirmed, and those that
    /// may have been agreed after it.
    fn rosters_in_use<'a>(ends: &[&'a Self]) -> Vec<&'a Roster> {
        let confirmed = ends.iter().filter_map(|it| it.confirmed.as_ref());
        let confirmed = confirmed.max_by_key(|it| (it.generation.number, it.epoch));
        let proposed = ends.iter().flat_map(|it| &it.proposed);
        let may_follow = |it: &&Roster| confirmed.is_none_or(|confirmed| it.may_follow(confirmed));
        let mut proposed: Vec<&Roster> = proposed.filter(may_follow).collect();
        proposed.sort_by_key(|it| (it.generation.number, it.epoch));
        let mut rosters: Vec<&Roster> = confirmed.into_iter().collect();
        for roster in proposed {
            // Several logs know one, and one list that was agreed twice asks for the same.
            rosters.retain(|it| it.logs != roster.logs);
            rosters.push(roster);
        }
        rosters
    }
}

impl Roster {
    /// Whether it may have been agreed after this one, which was confirmed. Another opening with the same
    /// number was not: that of the confirmed one was.
    pub(super) fn may_follow(&self, confirmed: &Self) -> bool {
        let (own, of) = (self.generation, confirmed.generation);
        own.number > of.number || own == of && self.epoch > confirmed.epoch
    }
}

/// Whether logs are a strict majority of each roster.
fn all_majorities<'a>(logs: &[LogId], rosters: impl Iterator<Item = &'a Roster>) -> LogGroupState {
    let mut states = rosters.map(|it| majority(logs, &it.logs));
    let first = states.find(|it| *it != LogGroupState::Open);
    first.unwrap_or(LogGroupState::Open)
}

/// Whether logs are a strict majority of a roster.
fn majority(logs: &[LogId], roster: &[LogId]) -> LogGroupState {
    let present = roster.iter().filter(|log| logs.contains(log)).count();
    match present * 2 > roster.len() {
        true => LogGroupState::Open,
        false => LogGroupState::NoMajority {
            present,
            of: roster.len(),
        },
    }
}

fn sorted(mut logs: Vec<LogId>) -> Vec<LogId> {
    logs.sort_unstable();
    logs
}
