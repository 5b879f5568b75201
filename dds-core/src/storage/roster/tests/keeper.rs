//! A log and its keeper, as far as rosters are concerned: no bytes, no packets.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::*;
use super::rules::{Guard, Rules};

/// A record. Equal ones are one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rec {
    pub(super) position: u64,
    pub(super) generation: u64,
    pub(super) epoch: u64,
    pub(super) value: u64,
}

/// What outlasts a crash, but for records that are not synced.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) id: LogId,
    pub(super) lineage: u128,
    pub(super) confirmed: Option<Roster>,
    pub(super) proposed: Vec<Roster>,
    pub(super) records: Vec<Rec>,
    pub(super) synced: usize,
}

impl Log {
    pub(super) fn end(&self) -> u64 {
        self.records.last().map_or(0, |it| it.position + 1)
    }

    fn last(&self) -> (u64, u64) {
        let last = self.records.last();
        last.map_or((0, 0), |it| (it.generation, it.epoch))
    }

    /// Whether it has this record on its disk.
    pub(super) fn has(&self, record: &Rec) -> bool {
        self.records[..self.synced].contains(record)
    }

    /// Its rosters. One that its last record was written under was confirmed.
    pub(super) fn known(&self) -> (Option<Roster>, Vec<Roster>) {
        let (generation, epoch) = self.last();
        let was_used = |it: &Roster| it.generation.number == generation && it.epoch <= epoch;
        match self.proposed.iter().rposition(was_used) {
            Some(at) => {
                let rest = self.proposed[at + 1..].to_vec();
                (Some(self.proposed[at].clone()), rest)
            }
            None => (self.confirmed.clone(), self.proposed.clone()),
        }
    }

    pub(super) fn end_of(&self, follows: Option<u64>) -> LogEnd {
        let (confirmed, proposed) = self.known();
        LogEnd {
            log: self.id,
            lineage: self.lineage,
            generation: self.last().0,
            end: self.end(),
            confirmed,
            proposed,
            follows,
        }
    }
}

/// A view, as all members of it begin it.
#[derive(Debug)]
pub(super) struct ViewOf {
    pub(super) view: u64,
    pub(super) base: u64,
    pub(super) members: Vec<(MemberId, usize)>,
    pub(super) ends: BTreeMap<MemberId, LogEnd>,
    pub(super) logs: Option<LogGroup>,
}

/// What keeps a log.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) member: MemberId,
    pub(super) marker: Option<Rc<ViewOf>>,
    pub(super) whole: Option<Generation>,
    pub(super) ready: Option<u64>,
    pub(super) live: Vec<Rec>,
    near: Option<u64>,
    pub(super) delivered_to: u64,
    pub(super) announced: LogEnd,
}

impl Keeper {
    pub(super) fn new(member: MemberId, log: &Log) -> Self {
        Self {
            member,
            marker: None,
            whole: None,
            ready: None,
            live: Vec::new(),
            near: None,
            delivered_to: 0,
            announced: log.end_of(None),
        }
    }

    pub(super) fn group(&self) -> Option<&LogGroup> {
        self.marker.as_ref()?.logs.as_ref()
    }

    fn is_source(&self, log: &Log) -> bool {
        let me = Logger { member: self.member, log: log.id };
        let source = self.group().and_then(|it| it.source);
        source.is_some_and(|it| it.logger == me)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_some() && self.whole == self.group().map(|it| it.generation)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some() && self.ready == self.marker.as_ref().map(|it| it.view)
    }

    /// Its word in the view.
    pub(super) fn word(&self, log: &Log) -> u64 {
        if !self.is_ready() {
            return 0;
        }
        let unsynced = log.records.get(log.synced).or(self.live.first());
        let base = self.marker.as_ref().map_or(0, |it| it.base);
        unsynced.map_or(self.delivered_to, |it| it.position).max(base)
    }

    pub(super) fn view(&mut self, view: &Rc<ViewOf>, log: &mut Log) {
        self.append(log, usize::MAX);
        let is_first = self.marker.is_none();
        let generation = view.logs.as_ref().map(|it| it.generation);
        let goes_on = !is_first && self.group().map(|it| it.generation) == generation;
        if !goes_on {
            (self.whole, self.near) = (None, None);
            self.live.clear();
        }
        self.delivered_to = self.delivered_to.max(view.base);
        self.ready = None;
        self.marker = Some(Rc::clone(view));
        if !goes_on && self.is_source(log) {
            let source = self.group().and_then(|it| it.source);
            if source.is_some_and(|it| it.end == log.end()) {
                self.whole = generation;
            }
        }
    }

    pub(super) fn deliver(&mut self, log: &Log, position: u64, value: u64) {
        self.delivered_to = self.delivered_to.max(position + 1);
        let is_pulled = self.is_whole() && position < log.end();
        if self.whole.is_none() && self.near.is_none() || is_pulled {
            return;
        }
        let Some(marker) = &self.marker else {
            return;
        };
        self.live.push(Rec {
            position,
            generation: marker.logs.as_ref().map_or(0, |it| it.generation.number),
            epoch: marker.view,
            value,
        });
    }

    pub(super) fn append(&mut self, log: &mut Log, count: usize) {
        if self.is_whole() {
            let count = count.min(self.live.len());
            log.records.extend(self.live.drain(..count));
        }
    }

    /// What it announces anew.
    pub(super) fn announcement(&mut self, log: &Log) -> Option<LogEnd> {
        let group = self.group();
        let follows = group.filter(|_| self.is_whole() && !self.is_source(log));
        let now = log.end_of(follows.map(|it| it.generation.number));
        let all_synced = log.synced == log.records.len() && self.live.is_empty();
        let is_due = match group {
            Some(group) if !group.loggers.is_empty() => {
                let is_source = self.is_source(log);
                let caught_up = self.is_whole() && !is_source && all_synced;
                caught_up && now.follows != self.announced.follows
                    || is_source && !self.is_whole() && now != self.announced
            }
            Some(_) => now != self.announced,
            None => false,
        };
        is_due.then(|| {
            self.announced = now.clone();
            now
        })
    }

    /// Records the roster, and raises its word.
    pub(super) fn make_ready(&mut self, log: &mut Log, rules: &Rules) -> bool {
        let Some(marker) = self.marker.clone() else {
            return false;
        };
        let Some(group) = marker.logs.as_ref() else {
            return false;
        };
        let me = Logger { member: self.member, log: log.id };
        let is_one = group.is_open() && group.loggers.contains(&me);
        if self.is_ready() || !self.is_whole() || !self.live.is_empty() || !is_one {
            return false;
        }
        let end = &marker.ends[&self.member];
        if rules.whole_in_view && !group.is_whole(&me, end) {
            return false;
        }
        if !self.guard(log, group, rules) {
            return false;
        }
        log.synced = log.records.len();
        let roster = Roster {
            generation: group.generation,
            epoch: group.since,
            logs: group.roster.clone(),
        };
        log.lineage = group.lineage;
        if log.proposed.last().or(log.confirmed.as_ref()) != Some(&roster) {
            log.proposed
                .retain(|it| it.generation != roster.generation || it.logs != roster.logs);
            log.proposed.push(roster);
        }
        self.ready = Some(marker.view);
        true
    }

    fn guard(&self, log: &Log, group: &LogGroup, rules: &Rules) -> bool {
        let (confirmed, proposed) = log.known();
        let is_of = |it: &&Roster| it.generation == group.generation;
        let may_follow = |it: &&Roster| confirmed.as_ref().is_none_or(|c| it.may_follow(c));
        let proposed = proposed.iter().filter(may_follow);
        let mut known = confirmed.iter().chain(proposed);
        match rules.guard {
            Guard::None => true,
            Guard::Generation => known.filter(is_of).all(|it| it.is_majority(&group.roster)),
            Guard::All => known.all(|it| it.is_majority(&group.roster)),
        }
    }

    /// All loggers of the view have raised their words.
    pub(super) fn confirm(&mut self, log: &mut Log) {
        if self.is_ready()
            && let Some(confirmed) = log.proposed.pop()
        {
            log.confirmed = Some(confirmed);
            log.proposed.clear();
        }
    }

    /// Whether it takes records of the group's loggers.
    pub(super) fn learns(&self, log: &Log, rules: &Rules) -> bool {
        let Some(group) = self.group() else {
            return false;
        };
        let own = log.end_of(None);
        let is_stranger = !own.is_blank() && own.lineage != group.lineage;
        let is_newer = rules.refuses_older && own.generation > group.generation.number;
        !self.is_whole() && !group.loggers.is_empty() && !is_stranger && !is_newer
    }

    /// Takes up to `count` records of a logger that is whole.
    pub(super) fn pull(
        &mut self,
        log: &mut Log,
        donor: (&Self, &Log),
        count: usize,
        rules: &Rules,
    ) {
        let Some(group) = self.group().cloned() else {
            return;
        };
        let same = donor.0.is_whole() && donor.0.whole == Some(group.generation);
        if !same {
            return;
        }
        if log.lineage != group.lineage {
            (log.lineage, log.confirmed) = (group.lineage, None);
            log.proposed.clear();
        }
        let theirs = &donor.1.records[..donor.1.synced];
        let both = log.records.iter().zip(theirs);
        let common = both.take_while(|(own, their)| own == their).count();
        log.records.truncate(common);
        log.synced = log.synced.min(common);
        let new = theirs[common..].iter().take(count);
        log.records.extend(new);
        if log.records.len() < theirs.len() {
            return;
        }
        let near = *self.near.get_or_insert(self.delivered_to);
        let unsynced = donor.1.records.get(donor.1.synced).or(donor.0.live.first());
        let complete = unsynced.map_or(donor.0.delivered_to, |it| it.position);
        if complete < near {
            return;
        }
        let end = log.end();
        self.live.retain(|it| it.position >= end);
        self.near = None;
        self.whole = Some(group.generation);
        self.append(log, usize::MAX);
        log.synced = log.records.len();
        let me = Logger { member: self.member, log: log.id };
        if rules.learner_records && !group.loggers.contains(&me) {
            let roster = Roster {
                generation: group.generation,
                epoch: group.since,
                logs: group.roster.clone(),
            };
            if !log.proposed.contains(&roster) && log.confirmed.as_ref() != Some(&roster) {
                log.proposed.push(roster);
            }
        }
    }
}
