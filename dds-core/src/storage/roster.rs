//! Which logs a topic has: agreed by all members, as it follows from the views alone.
//!
//! A *log* keeps the delivered messages of a topic on the disk of a participant. The logs of a topic in
//! a group are its *loggers*; the last list of loggers that all of them have recorded is the *roster*. A
//! roster holds a strict majority of the one before. So does each set of logs that a topic opens with
//! after a total restart: at least one of them knows the newest roster, and one of that roster's
//! majority holds all that a majority had when it was acknowledged. The others cannot open the topic
//! without it, however many they are.
//!
//! ```text
//!   no logger goes on        candidates are a majority of the newest roster     opening: generation + 1
//!   loggers go on            they are a majority of the roster                  open, roster = loggers
//!                            they are not                                       shut, the roster stays
//!   a log has caught up      it is added to the loggers
//! ```

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

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

/// What a member announces of its log of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The log.
    pub log: LogId,
    /// What its records descend from: the log that a first roster began with. 0: it has none yet.
    pub lineage: u128,
    /// Generation of its newest roster, 0 without one.
    pub generation: u64,
    /// View in which that roster began.
    pub epoch: u64,
    /// Position below which it has all records on its disk.
    pub end: u64,
    /// Its newest roster, ascending.
    pub roster: Vec<LogId>,
    /// It has caught up with the loggers of this generation.
    pub follows: Option<u64>,
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
}

/// The loggers of a topic in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGroup {
    /// What their records descend from.
    pub lineage: u128,
    /// Number of openings of the topic so far; 0 before the first.
    pub generation: u64,
    /// View in which the loggers, the roster or the generation changed last.
    pub since: u64,
    /// The last roster.
    pub roster: Vec<LogId>,
    /// Those that are there. While the topic is shut after an opening, they are fewer than the roster asks
    /// for; before it, none.
    pub loggers: Vec<Logger>,
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
        let is_there = |logger: &&Logger| {
            let mut ends = ends.iter();
            ends.any(|(member, end)| *member == logger.member && end.log == logger.log)
        };
        let before = before.filter(|before| before.loggers.iter().any(|it| is_there(&it)));
        Some(match before {
            Some(before) => {
                let going_on = before.loggers.iter().filter(is_there).copied().collect();
                before.go_on(view, going_on, &ends)
            }
            None => Self::open(view, &ends),
        })
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

    fn go_on(&self, view: u64, going_on: Vec<Logger>, ends: &[&(MemberId, &LogEnd)]) -> Self {
        let mut next = Self {
            loggers: going_on,
            ..self.clone()
        };
        for (member, end) in ends {
            let follows = end.follows == Some(self.generation) && end.lineage == self.lineage;
            if follows && next.log_of(*member).is_none() {
                next.loggers.push(Logger {
                    member: *member,
                    log: end.log,
                });
            }
        }
        let logs: Vec<LogId> = next.loggers.iter().map(|it| it.log).collect();
        next.state = majority(&logs, &self.roster);
        if next.is_open() {
            next.roster = sorted(logs);
        }
        if next.roster != self.roster || next.loggers != self.loggers {
            next.since = view;
        }
        next
    }

    fn open(view: u64, ends: &[&(MemberId, &LogEnd)]) -> Self {
        let shut = |state, newest: Option<&LogEnd>| Self {
            lineage: newest.map_or(0, |it| it.lineage),
            generation: newest.map_or(0, |it| it.generation),
            since: view,
            roster: newest.map(|it| it.roster.clone()).unwrap_or_default(),
            loggers: Vec::new(),
            source: None,
            state,
        };
        let with_roster = ends.iter().filter(|(_, end)| end.lineage != 0);
        let newest = with_roster.max_by_key(|(_, end)| (end.generation, end.epoch));
        let newest = newest.map(|(_, end)| *end);
        if let Some(newest) = newest {
            let strangers = ends.iter().filter(|(_, it)| it.lineage != 0);
            let stranger = strangers
                .map(|(_, it)| it)
                .find(|it| it.lineage != newest.lineage);
            if let Some(stranger) = stranger {
                let (a, b) = (newest.log.min(stranger.log), newest.log.max(stranger.log));
                return shut(LogGroupState::Lineages(a, b), None);
            }
        }
        let candidates: Vec<_> = ends
            .iter()
            .filter(|(_, end)| newest.is_none_or(|it| it.roster.contains(&end.log)))
            .collect();
        let logs: Vec<LogId> = candidates.iter().map(|(_, end)| end.log).collect();
        if let Some(newest) = newest {
            let state = majority(&logs, &newest.roster);
            if state != LogGroupState::Open {
                return shut(state, Some(newest));
            }
        }
        // The first of equal ones: the oldest member.
        let best = candidates.iter().rev();
        let best = best.max_by_key(|(_, end)| (end.generation, end.epoch, end.end));
        let source = best.map(|(member, end)| LogSource {
            logger: Logger {
                member: *member,
                log: end.log,
            },
            end: end.end,
        });
        let first = source.map_or(0, |it| it.logger.log.0);
        Self {
            lineage: newest.map_or(first, |it| it.lineage),
            generation: newest.map_or(0, |it| it.generation) + 1,
            since: view,
            roster: sorted(logs),
            loggers: candidates
                .iter()
                .map(|(member, end)| Logger {
                    member: *member,
                    log: end.log,
                })
                .collect(),
            source,
            state: LogGroupState::Open,
        }
    }
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
