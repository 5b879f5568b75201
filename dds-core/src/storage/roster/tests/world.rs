//! Groups of members with logs, from a seed. Messages and views come in one order to the members of a group;
//! each is somewhere in it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use spindle_dds_transport::sim::Rng;

use super::super::*;
use super::keeper::{Keeper, Log, Rec, ViewOf};
use super::rules::Rules;

#[derive(Debug)]
pub(super) enum Item {
    View(Rc<ViewOf>),
    Message { position: u64, value: u64 },
}

/// A value whose writer waits.
#[derive(Debug, Clone)]
struct Waits {
    record: Rec,
    lineage: u128,
    generation: Generation,
}

/// A participant.
#[derive(Debug)]
struct Node {
    group: usize,
    /// Items that it has come to.
    at: usize,
    keeper: Option<Keeper>,
    view: Option<Rc<ViewOf>>,
    waits: Vec<Waits>,
    member: MemberId,
}

#[derive(Debug, Default)]
struct Host {
    log: Option<Log>,
    node: Option<Node>,
}

#[derive(Debug, Default)]
struct Group {
    items: Vec<Item>,
    last: Option<Rc<ViewOf>>,
    next: u64,
    joining: Vec<(MemberId, usize)>,
    ends: BTreeMap<MemberId, LogEnd>,
    words: BTreeMap<(MemberId, u64), u64>,
    /// The view in which all words were found to be there.
    took: Option<u64>,
}

#[derive(Debug)]
pub(super) struct World {
    rng: Rng,
    rules: Rules,
    hosts: Vec<Host>,
    groups: Vec<Group>,
    members: u128,
    values: u64,
    acked: BTreeMap<u128, Vec<Rec>>,
    pub(super) trace: Option<Vec<String>>,
    pub(super) acknowledged: usize,
    pub(super) openings: usize,
    apart: bool,
    step: usize,
}

impl World {
    pub(super) fn new(seed: u64, rules: Rules, trace: bool) -> Self {
        let mut rng = Rng::new(seed);
        let logs = 2 + rng.below(4);
        let mut hosts: Vec<Host> = Vec::new();
        for at in 0..logs {
            let log = Log {
                id: LogId(at as u128 + 1),
                ..Log::default()
            };
            hosts.push(Host { log: Some(log), node: None });
        }
        if rng.chance(0.5) {
            hosts.push(Host::default());
        }
        let apart = rng.chance(0.7);
        Self {
            rng,
            rules,
            hosts,
            groups: vec![Group::default(), Group::default()],
            members: 0,
            values: 0,
            acked: BTreeMap::new(),
            trace: trace.then(Vec::new),
            acknowledged: 0,
            openings: 0,
            apart,
            step: 0,
        }
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:4} {}", self.step, what()));
        }
    }

    pub(super) fn live(&mut self) -> Result<(), String> {
        let steps = 20 + self.rng.below(600);
        for step in 0..steps {
            self.step = step;
            self.act()?;
        }
        self.prefixes()?;
        self.heal()
    }

    fn is_up(&self, at: usize) -> bool {
        self.hosts[at].node.is_some()
    }

    fn act(&mut self) -> Result<(), String> {
        let at = self.rng.below(self.hosts.len());
        match self.rng.below(100) {
            0..6 => {
                let group = if self.apart { self.rng.below(2) } else { 0 };
                self.start(at, group);
            }
            6..8 => self.crash(at),
            8 => {
                if self.rng.chance(0.3) {
                    let group = self.rng.below(2);
                    self.crash_group(group);
                }
            }
            9..20 => {
                let group = self.rng.below(2);
                self.change_view(group);
            }
            20..45 => self.come_on(at),
            45..58 => self.keep(at)?,
            58..72 => self.pull(at)?,
            72..84 => self.write(at),
            _ => self.acknowledge(at)?,
        }
        self.taking()
    }

    fn start(&mut self, at: usize, group: usize) {
        if self.hosts[at].node.is_some() {
            return;
        }
        let host = &self.hosts[at];
        if let Some(log) = &host.log {
            // Two that begin apart are two lineages: that is not what is tried here.
            let others = self.hosts.iter().filter_map(|it| it.log.as_ref());
            let has_begun = others.clone().any(|it| it.lineage == log.id.0);
            let is_new = log.lineage == 0 && !has_begun;
            let founded = self.openings > 0;
            let has_loggers = self.groups[group]
                .last
                .as_ref()
                .and_then(|it| it.logs.as_ref())
                .is_some_and(|it| !it.loggers.is_empty());
            if is_new && (founded && !has_loggers || !founded && group == 1) {
                return;
            }
        }
        self.members += 1;
        let member = MemberId(self.members);
        let host = &mut self.hosts[at];
        let keeper = host.log.as_ref().map(|log| Keeper::new(member, log));
        let end = keeper.as_ref().map(|it| it.announced.clone());
        let it = &mut self.groups[group];
        it.joining.push((member, at));
        if let Some(end) = end.clone() {
            it.ends.insert(member, end);
        }
        let host = &mut self.hosts[at];
        host.node = Some(Node {
            group,
            at: it.items.len(),
            keeper,
            view: None,
            waits: Vec::new(),
            member,
        });
        self.say(|| format!("host {at} starts in group {group} as member {}: {}", member.0, show_end(end.as_ref())));
        if self.groups[group].last.is_none() {
            self.change_view(group);
        }
    }

    fn crash(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.node.take().is_none() {
            return;
        }
        if let Some(log) = &mut host.log {
            let lost = log.records.len() - log.synced;
            let stays = log.synced + self.rng.below(lost + 1);
            log.records.truncate(stays);
            log.synced = stays;
        }
        self.say(|| format!("host {at} crashes"));
        for group in 0..2 {
            self.close(group);
        }
    }

    fn crash_group(&mut self, group: usize) {
        for at in 0..self.hosts.len() {
            if self.hosts[at].node.as_ref().is_some_and(|it| it.group == group) {
                self.crash(at);
            }
        }
    }

    /// A group without members is over.
    fn close(&mut self, group: usize) {
        let mut nodes = self.hosts.iter().filter_map(|it| it.node.as_ref());
        if !nodes.any(|it| it.group == group) {
            self.groups[group] = Group::default();
        }
    }

    fn is_alive(&self, (member, at): (MemberId, usize)) -> bool {
        let node = self.hosts[at].node.as_ref();
        node.is_some_and(|it| it.member == member)
    }

    /// A view is agreed: those that have crashed are out, and newcomers in, or not yet.
    fn change_view(&mut self, group: usize) {
        let last = self.groups[group].last.clone();
        let mut members: Vec<(MemberId, usize)> = Vec::new();
        for one in last.iter().flat_map(|it| &it.members) {
            if self.is_alive(*one) || self.rng.chance(0.1) {
                members.push(*one);
            }
        }
        for one in std::mem::take(&mut self.groups[group].joining) {
            if !self.is_alive(one) {
                continue;
            }
            if members.is_empty() || self.rng.chance(0.8) {
                members.push(one);
            } else {
                self.groups[group].joining.push(one);
            }
        }
        let it = &self.groups[group];
        if !members.iter().any(|one| self.is_alive(*one)) {
            return;
        }
        let mut ends = BTreeMap::new();
        for (member, _) in &members {
            let old = last.as_ref().and_then(|it| it.ends.get(member));
            let new = it.ends.get(member);
            // An announcement may come a view later.
            let end = match (old, new) {
                (Some(old), Some(_)) if self.rng.chance(0.3) => Some(old),
                (_, new) => new,
            };
            if let Some(end) = end {
                ends.insert(*member, end.clone());
            }
        }
        let by_rank: Vec<(MemberId, &LogEnd)> = members
            .iter()
            .filter_map(|(member, _)| Some((*member, ends.get(member)?)))
            .collect();
        let view = last.as_ref().map_or(0, |it| it.view) + 1;
        let before = last.as_ref().and_then(|it| it.logs.as_ref());
        let logs = LogGroup::next(before, view, &by_rank);
        let base = ends.values().map(|it| it.end).chain([it.next]).max().unwrap_or(0).max(1);
        let new = Rc::new(ViewOf { view, base, members, ends, logs });
        if last.as_ref().is_some_and(|it| it.members == new.members && it.ends == new.ends) {
            return;
        }
        self.say(|| {
            let members: Vec<_> = new.members.iter().map(|it| format!("{}@{}", it.0.0, it.1)).collect();
            format!("group {group} view {view} base {base} members {members:?}: {}", show_group(new.logs.as_ref()))
        });
        let it = &mut self.groups[group];
        it.next = base;
        it.last = Some(Rc::clone(&new));
        it.items.push(Item::View(new));
    }

    /// A participant takes the next item.
    fn come_on(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        let count = 1 + self.rng.below(4);
        for _ in 0..count {
            let Some(item) = self.groups[node.group].items.get(node.at) else { return };
            let waits_for_join = match item {
                Item::View(view) => !view.members.iter().any(|it| it.0 == node.member),
                Item::Message { .. } => node.view.is_none(),
            };
            node.at += 1;
            if waits_for_join {
                continue;
            }
            match item {
                Item::View(view) => {
                    node.view = Some(Rc::clone(view));
                    if let (Some(keeper), Some(log)) = (&mut node.keeper, &mut host.log) {
                        keeper.view(view, log);
                    }
                }
                Item::Message { position, value } => {
                    if let (Some(keeper), Some(log)) = (&mut node.keeper, &host.log) {
                        keeper.deliver(log, *position, *value);
                    }
                }
            }
        }
    }

    fn word(&mut self, at: usize) {
        let host = &self.hosts[at];
        let (Some(node), Some(log)) = (&host.node, &host.log) else { return };
        let Some(keeper) = &node.keeper else { return };
        let Some(marker) = &keeper.marker else { return };
        let word = keeper.word(log);
        let known = self.groups[node.group].words.entry((node.member, marker.view)).or_default();
        *known = (*known).max(word);
    }

    /// A keeper does one thing.
    fn keep(&mut self, at: usize) -> Result<(), String> {
        let what = self.rng.below(5);
        let some = 1 + self.rng.below(3);
        let host = &mut self.hosts[at];
        let (Some(node), Some(log)) = (&mut host.node, &mut host.log) else { return Ok(()) };
        let group = node.group;
        let Some(keeper) = &mut node.keeper else { return Ok(()) };
        match what {
            0 => keeper.append(log, some),
            1 => log.synced = log.records.len(),
            2 => {
                if keeper.make_ready(log, &self.rules) {
                    let view = keeper.marker.as_ref().map_or(0, |it| it.view);
                    self.word(at);
                    self.say(|| format!("host {at} is ready in view {view}"));
                }
            }
            3 => {
                if let Some(view) = keeper.marker.clone()
                    && takes(&self.groups[group], &view)
                {
                    keeper.confirm(log);
                }
            }
            _ => {
                if let Some(end) = keeper.announcement(log) {
                    let member = node.member;
                    self.say(|| format!("host {at} announces {}", show_end(Some(&end))));
                    self.groups[group].ends.insert(member, end);
                }
            }
        }
        self.word(at);
        Ok(())
    }

    fn pull(&mut self, at: usize) -> Result<(), String> {
        let count = self.rng.below(4);
        let Some(mut host) = Some(std::mem::take(&mut self.hosts[at])) else { return Ok(()) };
        let rules = self.rules;
        let mut said = None;
        if let (Some(node), Some(log)) = (&mut host.node, &mut host.log)
            && let Some(keeper) = &mut node.keeper
            && keeper.learns(log, &rules)
            && let Some(group) = keeper.group()
        {
            let donors: Vec<MemberId> = group.loggers.iter().map(|it| it.member).collect();
            let donor = self.rng.pick(&donors).copied();
            let donor = donor.and_then(|donor| {
                let mut hosts = self.hosts.iter();
                hosts.find_map(|it| {
                    let node = it.node.as_ref().filter(|it| it.member == donor)?;
                    Some((node.keeper.as_ref()?, it.log.as_ref()?))
                })
            });
            if let Some(donor) = donor {
                let before = log.clone();
                keeper.pull(log, donor, count, &rules);
                if before.records.len() != log.records.len() || keeper.is_whole() {
                    said = Some(format!("host {at} pulls of {}: had end {}, has {}, whole: {}", donor.0.member.0, before.end(), log.end(), keeper.is_whole()));
                }
            }
        }
        self.hosts[at] = host;
        if let Some(said) = said {
            self.say(|| said);
        }
        Ok(())
    }

    fn write(&mut self, at: usize) {
        let Some(node) = &mut self.hosts[at].node else { return };
        let group = &mut self.groups[node.group];
        let Some(view) = node.view.clone() else { return };
        let is_last = group.last.as_ref().is_some_and(|it| it.view == view.view);
        if !is_last || !takes(group, &view) {
            return;
        }
        let Some(logs) = &view.logs else { return };
        let position = group.next + self.rng.below(2) as u64;
        group.next = position + 1;
        self.values += 1;
        let value = self.values;
        let record = Rec { position, generation: logs.generation.number, epoch: view.view, value };
        group.items.push(Item::Message { position, value });
        node.waits.push(Waits { record, lineage: logs.lineage, generation: logs.generation });
        let group = node.group;
        self.say(|| format!("host {at} writes value {value} at {position} in group {group}"));
    }

    /// A writer looks at the words.
    fn acknowledge(&mut self, at: usize) -> Result<(), String> {
        let Some(node) = &mut self.hosts[at].node else { return Ok(()) };
        let group = &self.groups[node.group];
        let Some(view) = node.view.clone() else { return Ok(()) };
        let Some(logs) = view.logs.as_ref().filter(|it| it.is_open()) else { return Ok(()) };
        let rules = self.rules;
        let is_acked = |waits: &Waits| {
            if rules.acknowledges_in_generation && waits.generation != logs.generation {
                return false;
            }
            let needed = match waits.record.epoch == view.view {
                true => waits.record.position + 1,
                false => view.base,
            };
            let words = logs.loggers.iter();
            let there = words.filter(|it| {
                let word = group.words.get(&(it.member, view.view));
                word.is_some_and(|word| *word >= needed)
            });
            there.count() * 2 > logs.loggers.len()
        };
        let (acked, waits): (Vec<_>, Vec<_>) = node.waits.drain(..).partition(is_acked);
        node.waits = waits;
        let own = node.group;
        for waits in acked {
            let (value, position) = (waits.record.value, waits.record.position);
            self.say(|| format!("value {value} at {position} is acknowledged in group {own}"));
            self.acknowledged += 1;
            self.acked.entry(waits.lineage).or_default().push(waits.record);
            // No other opening goes on without it.
            for group in 0..2 {
                let Some(view) = self.groups[group].last.clone() else { continue };
                let Some(logs) = &view.logs else { continue };
                if takes(&self.groups[group], &view) && logs.generation != waits.generation {
                    self.contain(&view)?;
                }
            }
        }
        Ok(())
    }

    /// All that was acknowledged is in each log of a group that begins to take samples.
    fn taking(&mut self) -> Result<(), String> {
        for group in 0..2 {
            let Some(view) = self.groups[group].last.clone() else { continue };
            if self.groups[group].took == Some(view.view) || !takes(&self.groups[group], &view) {
                continue;
            }
            self.groups[group].took = Some(view.view);
            self.openings += 1;
            self.say(|| format!("group {group} takes samples in view {}", view.view));
            self.contain(&view)?;
            self.prefixes()?;
        }
        Ok(())
    }

    fn contain(&self, view: &ViewOf) -> Result<(), String> {
        let Some(logs) = &view.logs else { return Ok(()) };
        let acked = self.acked.get(&logs.lineage);
        for logger in &logs.loggers {
            let log = self.hosts[logger.log.0 as usize - 1].log.as_ref();
            let Some(log) = log else { continue };
            for record in acked.into_iter().flatten() {
                if record.position < view.base && !log.has(record) {
                    return Err(format!("log {} in {} lacks {record:?}", logger.log.0, show_group(Some(logs))));
                }
                if record.position >= view.base && record.generation != logs.generation.number {
                    return Err(format!("acknowledged above the base: {record:?}"));
                }
            }
        }
        Ok(())
    }

    /// Logs with one record in common have all before it in common.
    fn prefixes(&self) -> Result<(), String> {
        let logs: Vec<&Log> = self.hosts.iter().filter_map(|it| it.log.as_ref()).collect();
        for (i, a) in logs.iter().enumerate() {
            for b in &logs[..i] {
                if a.lineage != b.lineage || a.lineage == 0 {
                    continue;
                }
                let both = a.records.iter().zip(&b.records);
                let common = both.take_while(|(a, b)| a == b).count();
                let of = |it: &Rec| (it.generation, it.position);
                let rest: Vec<_> = b.records[common..].iter().map(of).collect();
                if let Some(record) = a.records[common..].iter().find(|it| rest.contains(&of(it))) {
                    return Err(format!("logs {} and {} differ before {record:?}: {:?} {:?}", a.id.0, b.id.0, a.records, b.records));
                }
            }
        }
        Ok(())
    }

    /// Faults end. In one way or the other all logs come together, and the topic takes samples.
    fn heal(&mut self) -> Result<(), String> {
        if self.openings == 0 {
            return Ok(());
        }
        let stays = (self.rng.below(3) > 0).then(|| self.rng.below(2));
        for group in 0..2 {
            if stays != Some(group) {
                self.crash_group(group);
            }
        }
        let group = stays.unwrap_or(0);
        for round in 0..400 {
            self.step = 1000 + round;
            for at in 0..self.hosts.len() {
                if !self.is_up(at) {
                    self.start(at, group);
                }
            }
            self.change_view(group);
            for at in 0..self.hosts.len() {
                self.come_on(at);
                self.keep(at)?;
                self.pull(at)?;
                self.acknowledge(at)?;
                self.taking()?;
            }
            let it = &self.groups[group];
            let Some(view) = &it.last else { continue };
            let logs = self.hosts.iter().filter(|it| it.log.is_some()).count();
            let loggers = view.logs.as_ref().map_or(0, |it| it.loggers.len());
            let up = self.hosts.iter().filter(|it| it.log.is_some() && it.node.is_some()).count();
            let _ = logs;
            if takes(it, view) && loggers == up && self.rng.chance(0.2) {
                return self.prefixes();
            }
        }
        let logs = self.hosts.iter().filter_map(|it| it.log.as_ref());
        let lineages: BTreeSet<u128> = logs.map(|it| it.lineage).filter(|it| *it != 0).collect();
        if lineages.len() > 1 {
            // Such logs stay apart.
            return Ok(());
        }
        let last = self.groups[group].last.as_ref();
        Err(format!("it does not open: {}", show_group(last.and_then(|it| it.logs.as_ref()))))
    }
}

/// Whether samples are sent in a view: all words are there.
fn takes(group: &Group, view: &ViewOf) -> bool {
    let open = view.logs.as_ref().filter(|it| it.is_open());
    open.is_some_and(|logs| {
        logs.loggers.iter().all(|it| {
            let word = group.words.get(&(it.member, view.view));
            word.is_some_and(|word| *word >= view.base)
        })
    })
}

fn show_roster(it: &Roster) -> String {
    let logs: Vec<_> = it.logs.iter().map(|it| it.0).collect();
    format!("{}.{}/{}{logs:?}", it.generation.number, it.generation.view, it.epoch)
}

fn show_end(end: Option<&LogEnd>) -> String {
    end.map_or_else(String::new, |it| {
        let confirmed = it.confirmed.iter().map(show_roster).collect::<String>();
        let proposed: Vec<_> = it.proposed.iter().map(show_roster).collect();
        format!("log {} lineage {} ({}, {}) confirmed {confirmed} proposed {proposed:?} follows {:?}", it.log.0, it.lineage, it.generation, it.end, it.follows)
    })
}

fn show_group(group: Option<&LogGroup>) -> String {
    group.map_or_else(String::new, |it| {
        let loggers: Vec<_> = it.loggers.iter().map(|it| format!("{}@{}", it.log.0, it.member.0)).collect();
        let roster: Vec<_> = it.roster.iter().map(|it| it.0).collect();
        let source = it.source.map(|it| (it.logger.log.0, it.end));
        format!("generation {}.{} roster {roster:?} loggers {loggers:?} source {source:?} {:?}", it.generation.number, it.generation.view, it.state)
    })
}
