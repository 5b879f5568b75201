//! Groups of participants with logs. Views and messages come in one order to all members of a group; each
//! is somewhere in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::SimDisk;
use spindle_dds_core::storage::{Generation, LogEnd, LogGroup, LogId, LogPacket, SyncMode};
use spindle_dds_transport::sim::Rng;

use super::participant::{Kept, LogView, Participant, at_rest};
use super::plan::LogPlan;
use super::show;
use crate::violation::Finding;

enum Item {
    View(Arc<LogView>),
    Message { position: u64, value: u64 },
}

/// A sample whose writer waits for its acknowledgement.
struct Waits {
    record: Kept,
    lineage: u128,
    generation: Generation,
}

/// A participant of a host.
struct Node {
    group: usize,
    member: MemberId,
    /// Items that it has come to.
    at: usize,
    view: Option<Arc<LogView>>,
    log: Option<Participant>,
    waits: Vec<Waits>,
}

/// A computer. Its disk outlasts crashes.
#[derive(Default)]
struct Host {
    disk: Option<SimDisk>,
    node: Option<Node>,
}

#[derive(Default)]
struct Group {
    items: Vec<Item>,
    last: Option<Arc<LogView>>,
    next: u64,
    joining: Vec<(MemberId, usize)>,
    /// What is announced and not in a view yet, too.
    ends: BTreeMap<MemberId, LogEnd>,
    /// Words by member and view: they stay readable when the member is gone.
    words: BTreeMap<(MemberId, u64), u64>,
    /// The view that was seen to take samples.
    took: Option<u64>,
}

const GROUPS: usize = 2;

pub(super) struct World {
    rng: Rng,
    plan: LogPlan,
    hosts: Vec<Host>,
    groups: Vec<Group>,
    packets: Vec<(MemberId, MemberId, LogPacket)>,
    members: u128,
    values: u64,
    acked: BTreeMap<u128, Vec<Kept>>,
    now_ns: u64,
    pub(super) step: usize,
    pub(super) trace: Option<Vec<String>>,
    pub(super) openings: usize,
    pub(super) written: usize,
    pub(super) acknowledged: usize,
    is_healing: bool,
}

impl World {
    pub(super) fn new(plan: LogPlan, is_traced: bool) -> Self {
        let logs = (0..plan.logs).map(|_| Host {
            disk: Some(SimDisk::default()),
            node: None,
        });
        let others = (0..plan.writers).map(|_| Host::default());
        Self {
            rng: Rng::new(plan.seed),
            hosts: logs.chain(others).collect(),
            plan,
            groups: (0..GROUPS).map(|_| Group::default()).collect(),
            packets: Vec::new(),
            members: 0,
            values: 0,
            acked: BTreeMap::new(),
            now_ns: 1,
            step: 0,
            trace: is_traced.then(Vec::new),
            openings: 0,
            written: 0,
            acknowledged: 0,
            is_healing: false,
        }
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:5}  {}", self.step, what()));
        }
    }

    pub(super) fn live(&mut self) -> Result<(), Finding> {
        for step in 0..self.plan.steps {
            self.step = step;
            self.turn()?;
        }
        self.equal_logs()?;
        self.heal()
    }

    fn turn(&mut self) -> Result<(), Finding> {
        let plan = self.plan.clone();
        self.now_ns += 1_000_000;
        if self.rng.chance(0.05) {
            self.now_ns += 1_500_000_000;
        }
        let at = self.rng.below(self.hosts.len());
        if self.rng.chance(plan.starts) {
            let group = usize::from(self.rng.chance(plan.apart));
            self.start(at, group);
        }
        if self.rng.chance(plan.crashes) {
            let all = self.rng.chance(plan.total);
            let group = self.hosts[at].node.as_ref().map(|it| it.group);
            match group {
                Some(group) if all => self.crash_group(group),
                _ => self.crash(at),
            }
        }
        if self.rng.chance(plan.views) {
            let group = self.rng.below(GROUPS);
            self.change_view(group);
        }
        if let Some(disk) = self.hosts[at].disk.clone() {
            if self.rng.chance(plan.full) {
                let room = self.rng.chance(0.5).then(|| disk.used() + 100);
                disk.set_capacity(room);
            }
            if self.rng.chance(plan.failing) {
                disk.fail_sync_after(self.rng.below(3) as u64);
            }
        }
        for at in 0..self.hosts.len() {
            if self.rng.chance(plan.works) {
                self.work(at)?;
            }
        }
        self.taking()
    }

    fn work(&mut self, at: usize) -> Result<(), Finding> {
        if self.rng.chance(0.5) {
            self.come_on(at);
        }
        if self.rng.chance(0.5) {
            self.keep(at);
        }
        if self.rng.chance(0.6) {
            self.deliver_packets(at);
        }
        if !self.is_healing && self.rng.chance(self.plan.writes) {
            self.write(at);
        }
        if self.rng.chance(0.3) {
            self.acknowledge(at)?;
        }
        Ok(())
    }

    /// Logs that begin apart from others are other lineages: that is not what is tried here.
    fn may_start(&mut self, at: usize, group: usize) -> bool {
        let Some(disk) = &self.hosts[at].disk else {
            return true;
        };
        let lineage = |disk: &SimDisk| at_rest(disk).map_or(0, |(state, _)| state.lineage);
        let id = at as u128 + 1;
        let known: BTreeSet<u128> = self
            .hosts
            .iter()
            .filter_map(|it| it.disk.as_ref().map(lineage))
            .filter(|it| *it != 0)
            .collect();
        let last = self.groups[group].last.as_ref();
        let logs = last.and_then(|it| it.logs.as_ref());
        let has_opened = logs.is_some_and(|it| it.lineage == id);
        let is_new = lineage(disk) == 0 && !known.contains(&id) && !has_opened;
        let has_loggers = logs.is_some_and(|it| !it.loggers.is_empty());
        let others_have = |it: &Group| {
            let logs = it.last.as_ref().and_then(|it| it.logs.as_ref());
            logs.is_some_and(|it| !it.loggers.is_empty())
        };
        let begun = !known.is_empty() || self.groups.iter().any(others_have);
        !is_new || !begun || has_loggers
    }

    fn start(&mut self, at: usize, group: usize) {
        if self.hosts[at].node.is_some() || !self.may_start(at, group) {
            return;
        }
        self.members += 1;
        let member = MemberId(self.members);
        let modes = [
            SyncMode::Each,
            SyncMode::Batch,
            SyncMode::Interval { ns: 3_000_000 },
        ];
        let mode = modes[self.rng.below(modes.len())];
        let mut log = None;
        if let Some(disk) = &self.hosts[at].disk {
            match Participant::start(member, disk, LogId(at as u128 + 1), mode) {
                Ok(participant) => log = Some(participant),
                Err(why) => {
                    disk.end_process();
                    return self.say(|| format!("host {at} does not start: {why}"));
                }
            }
        }
        let end = log.as_mut().map(|it| it.keeper.log_end());
        if log.as_ref().is_some_and(Participant::is_dead) {
            return;
        }
        self.say(|| {
            let end = end.as_ref().map_or_else(String::new, show::end);
            format!(
                "host {at} starts in group {group} as member {}: {end}",
                member.0
            )
        });
        let it = &mut self.groups[group];
        it.joining.push((member, at));
        it.ends.extend(end.map(|end| (member, end)));
        let node = Node {
            group,
            member,
            at: it.items.len(),
            view: None,
            log,
            waits: Vec::new(),
        };
        self.hosts[at].node = Some(node);
        if self.groups[group].last.is_none() {
            self.change_view(group);
        }
    }

    fn crash(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.node.take().is_none() {
            return;
        }
        let has_power = self.rng.chance(0.3);
        if let Some(disk) = &host.disk {
            match has_power {
                true => disk.end_process(),
                false => disk.crash(&mut self.rng),
            }
        }
        self.say(|| format!("host {at} crashes"));
        for group in 0..GROUPS {
            let mut nodes = self.hosts.iter().filter_map(|it| it.node.as_ref());
            if !nodes.any(|it| it.group == group) {
                self.groups[group] = Group::default();
            }
        }
    }

    fn crash_group(&mut self, group: usize) {
        for at in 0..self.hosts.len() {
            let node = self.hosts[at].node.as_ref();
            if node.is_some_and(|it| it.group == group) {
                self.crash(at);
            }
        }
    }

    fn is_alive(&self, (member, at): (MemberId, usize)) -> bool {
        let node = self.hosts[at].node.as_ref();
        node.is_some_and(|it| it.member == member)
    }

    /// A view is agreed. Who has crashed is out, and newcomers are in, or not yet.
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
            match members.is_empty() || self.rng.chance(0.8) {
                true => members.push(one),
                false => self.groups[group].joining.push(one),
            }
        }
        if !members.iter().any(|one| self.is_alive(*one)) {
            return;
        }
        let mut ends = Vec::new();
        for (member, _) in &members {
            let before = last.as_ref().map(|it| &it.ends);
            let old = before.and_then(|ends| ends.iter().find(|it| it.0 == *member));
            let new = self.groups[group].ends.get(member);
            // What is announced may be in the next view, or in a later one.
            let end = match (old, new) {
                (Some((_, old)), _) if self.rng.chance(0.3) => Some(old),
                (_, new) => new,
            };
            ends.extend(end.map(|end| (*member, end.clone())));
        }
        let by_rank: Vec<(MemberId, &LogEnd)> = ends.iter().map(|(id, end)| (*id, end)).collect();
        let view = last.as_ref().map_or(0, |it| it.view) + 1;
        let before = last.as_ref().and_then(|it| it.logs.as_ref());
        let logs = LogGroup::next(before, view, &by_rank);
        let floors = ends.iter().map(|(_, end)| end.end);
        let base = floors
            .chain([self.groups[group].next, 1])
            .max()
            .unwrap_or(1);
        let new = Arc::new(LogView {
            view,
            base,
            members,
            ends,
            logs,
        });
        if last.is_some_and(|it| it.members == new.members && it.ends == new.ends) {
            return;
        }
        self.say(|| format!("group {group}: {}", show::view(&new)));
        let it = &mut self.groups[group];
        it.next = base;
        it.last = Some(Arc::clone(&new));
        it.items.push(Item::View(new));
    }

    /// A participant comes to the next items.
    fn come_on(&mut self, at: usize) {
        let count = 1 + self.rng.below(4);
        let now = self.now_ns;
        for _ in 0..count {
            let Some(node) = &mut self.hosts[at].node else {
                return;
            };
            let Some(item) = self.groups[node.group].items.get(node.at) else {
                return;
            };
            node.at += 1;
            match item {
                Item::View(view) if view.members.iter().any(|it| it.0 == node.member) => {
                    node.view = Some(Arc::clone(view));
                    if let Some(log) = &mut node.log {
                        log.begin(view, now);
                    }
                }
                Item::Message { position, value } if node.view.is_some() => {
                    if let Some(log) = &mut node.log {
                        log.deliver(*position, *value);
                    }
                }
                _ => {}
            }
            self.take_from(at);
        }
    }

    /// Takes what the keeper says: its word, its packets.
    fn take_from(&mut self, at: usize) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(log) = &mut node.log else {
            return;
        };
        let (member, group) = (node.member, node.group);
        let packets = log.keeper.take_packets().into_iter();
        self.packets
            .extend(packets.map(|(to, packet)| (to, member, packet)));
        if log.is_dead() {
            let why = format!("{:?}", log.keeper.status());
            node.log = None;
            self.groups[group].ends.remove(&member);
            self.say(|| format!("host {at}'s log is dead: {why}"));
            return;
        }
        let Some(view) = &log.view else {
            return;
        };
        let (view, word) = (view.view, log.word());
        let known = self.groups[group].words.entry((member, view)).or_default();
        let is_first = *known == 0 && word > 0;
        *known = (*known).max(word);
        if is_first {
            self.say(|| format!("host {at} is ready in view {view}: {word}"));
        }
    }

    fn keep(&mut self, at: usize) {
        let what = self.rng.below(3);
        let now = self.now_ns;
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(log) = &mut node.log else {
            return;
        };
        match what {
            0 => log.keeper.flush(now),
            1 => {
                if let Some(view) = &log.view
                    && takes(&self.groups[node.group], view)
                {
                    log.keeper.loggers_ready(view.view, now);
                }
            }
            _ => {
                if let Some(end) = log.keeper.announcement() {
                    let (group, member) = (node.group, node.member);
                    self.say(|| format!("host {at} announces {}", show::end(&end)));
                    self.groups[group].ends.insert(member, end);
                }
            }
        }
        self.take_from(at);
    }

    fn deliver_packets(&mut self, at: usize) {
        let Some(member) = self.hosts[at].node.as_ref().map(|it| it.member) else {
            return;
        };
        let now = self.now_ns;
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.packets)
            .into_iter()
            .partition(|it| it.0 == member);
        self.packets = others;
        for (to, from, packet) in own {
            match self.rng.below(10) {
                0 => {}
                1 => self.packets.push((to, from, packet)),
                _ => {
                    let node = self.hosts[at].node.as_mut();
                    if let Some(log) = node.and_then(|it| it.log.as_mut()) {
                        log.keeper.handle(from, packet, now);
                    }
                }
            }
        }
        self.take_from(at);
    }

    fn write(&mut self, at: usize) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let group = &mut self.groups[node.group];
        let Some(view) = node.view.clone() else {
            return;
        };
        let is_last = group.last.as_ref().is_some_and(|it| it.view == view.view);
        if !is_last || !takes(group, &view) {
            return;
        }
        let Some(logs) = &view.logs else {
            return;
        };
        let position = group.next + self.rng.below(2) as u64;
        group.next = position + 1;
        self.values += 1;
        self.written += 1;
        let value = self.values;
        let record = Kept {
            position,
            generation: logs.generation.number,
            epoch: view.view,
            value,
        };
        group.items.push(Item::Message { position, value });
        node.waits.push(Waits {
            record,
            lineage: logs.lineage,
            generation: logs.generation,
        });
        let group = node.group;
        self.say(|| format!("host {at} writes {value} at {position} in group {group}"));
    }

    /// A writer looks at the words.
    fn acknowledge(&mut self, at: usize) -> Result<(), Finding> {
        let Some(node) = &mut self.hosts[at].node else {
            return Ok(());
        };
        let group = &self.groups[node.group];
        let Some(view) = node.view.clone() else {
            return Ok(());
        };
        let Some(logs) = view.logs.as_ref().filter(|it| it.is_open()) else {
            return Ok(());
        };
        let by_majority = self.plan.acknowledges_by_majority_of_proposed;
        let any_generation = self.plan.acknowledges_in_any_generation;
        let is_acked = |waits: &Waits| {
            if !any_generation && waits.generation != logs.generation {
                return false;
            }
            let is_present = waits.record.epoch == view.view;
            let needed = match is_present {
                true => waits.record.position + 1,
                false => view.base,
            };
            let there = logs.loggers.iter().filter(|it| {
                let word = group.words.get(&(it.member, view.view));
                word.is_some_and(|word| *word >= needed)
            });
            // A roster that not all of its logs have recorded may never be heard of again.
            match is_present || by_majority {
                true => there.count() * 2 > logs.loggers.len(),
                false => there.count() == logs.loggers.len(),
            }
        };
        let (acked, waits): (Vec<_>, Vec<_>) = node.waits.drain(..).partition(is_acked);
        node.waits = waits;
        let own = node.group;
        for waits in acked {
            let Kept {
                value, position, ..
            } = waits.record;
            self.say(|| format!("{value} at {position} is acknowledged in group {own}"));
            self.acknowledged += 1;
            self.acked
                .entry(waits.lineage)
                .or_default()
                .push(waits.record);
            // No other opening goes on without it.
            for group in 0..GROUPS {
                let Some(view) = self.groups[group].last.clone() else {
                    continue;
                };
                let other = view.logs.as_ref().map(|it| it.generation);
                let is_other = other != Some(waits.generation);
                if is_other && takes(&self.groups[group], &view) && self.may_acknowledge(&view) {
                    self.recovered(&view)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a majority of the loggers of a view live.
    fn may_acknowledge(&self, view: &LogView) -> bool {
        let loggers = view.logs.as_ref().map_or(&[][..], |it| &it.loggers);
        let nodes = self.hosts.iter().filter_map(|it| it.node.as_ref());
        let is_up = |id| nodes.clone().any(|it| it.member == id && it.log.is_some());
        let up = loggers.iter().filter(|it| is_up(it.member)).count();
        up * 2 > loggers.len()
    }

    /// All that was acknowledged is in each log of a group that begins to take samples.
    fn taking(&mut self) -> Result<(), Finding> {
        for group in 0..GROUPS {
            let Some(view) = self.groups[group].last.clone() else {
                continue;
            };
            let is_known = self.groups[group].took == Some(view.view);
            if is_known || !takes(&self.groups[group], &view) {
                continue;
            }
            self.groups[group].took = Some(view.view);
            self.openings += 1;
            self.say(|| format!("group {group} takes samples in view {}", view.view));
            self.recovered(&view)?;
            self.equal_logs()?;
        }
        Ok(())
    }

    fn recovered(&mut self, view: &LogView) -> Result<(), Finding> {
        let Some(logs) = &view.logs else {
            return Ok(());
        };
        let acked = self.acked.get(&logs.lineage).cloned().unwrap_or_default();
        let shown = show::group(logs);
        for record in &acked {
            if record.position >= view.base && record.generation != logs.generation.number {
                let what = format!("{record:?} is not below the base {} of {shown}", view.base);
                return Err(("D5", what));
            }
        }
        for logger in &logs.loggers {
            let mut hosts = self.hosts.iter_mut().filter_map(|it| it.node.as_mut());
            let Some(node) = hosts.find(|it| it.member == logger.member) else {
                continue;
            };
            let Some(log) = &mut node.log else {
                continue;
            };
            let kept = log.durable();
            let lacks = |it: &&Kept| it.position < view.base && !kept.contains(it);
            if let Some(record) = acked.iter().find(lacks) {
                let what = format!(
                    "log {} of {shown} lacks {record:?}, which was acknowledged",
                    logger.log.0
                );
                return Err(("D1", what));
            }
        }
        Ok(())
    }

    /// Logs with one record in common have all before it in common.
    fn equal_logs(&mut self) -> Result<(), Finding> {
        let mut all = Vec::new();
        for (at, host) in self.hosts.iter_mut().enumerate() {
            let log = host.node.as_mut().and_then(|it| it.log.as_mut());
            match (log, &host.disk) {
                (Some(log), _) => {
                    let lineage = log.keeper.log().state().lineage;
                    let kept = super::participant::records(log.keeper.log_mut());
                    all.push((at, lineage, kept));
                }
                (None, Some(disk)) => {
                    let rest = at_rest(disk);
                    all.extend(rest.map(|(state, kept)| (at, state.lineage, kept)));
                }
                _ => {}
            }
        }
        for (i, (at, lineage, a)) in all.iter().enumerate() {
            for (other, other_lineage, b) in &all[..i] {
                if lineage != other_lineage || *lineage == 0 {
                    continue;
                }
                let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                let of = |it: &Kept| (it.generation, it.position);
                let rest: Vec<_> = b[common..].iter().map(of).collect();
                if let Some(record) = a[common..].iter().find(|it| rest.contains(&of(it))) {
                    let what = format!(
                        "the logs of hosts {other} and {at} have {record:?}, and differ before: {:?} {:?}",
                        &b[common..],
                        &a[common..]
                    );
                    return Err(("D2", what));
                }
            }
        }
        Ok(())
    }

    /// Faults end. All logs come together, in a new group or in one that is there, and it takes samples.
    fn heal(&mut self) -> Result<(), Finding> {
        if self.openings == 0 {
            return Ok(());
        }
        self.is_healing = true;
        let stays = (self.rng.below(3) > 0).then(|| self.rng.below(GROUPS));
        for group in 0..GROUPS {
            if stays != Some(group) {
                self.crash_group(group);
            }
        }
        for at in 0..self.hosts.len() {
            if let Some(disk) = &self.hosts[at].disk {
                disk.set_capacity(None);
            }
            if let Some(disk) = &self.hosts[at].disk
                && self.hosts[at].node.is_none()
            {
                disk.end_process();
            }
        }
        let group = stays.unwrap_or(0);
        for round in 0..400 {
            self.step = self.plan.steps + round;
            for at in 0..self.hosts.len() {
                let host = &self.hosts[at];
                let is_dead = host.node.as_ref().is_some_and(|it| it.log.is_none());
                if host.disk.is_some() && is_dead {
                    self.crash(at);
                }
            }
            self.now_ns += 300_000_000;
            for at in 0..self.hosts.len() {
                self.start(at, group);
            }
            self.change_view(group);
            for at in 0..self.hosts.len() {
                self.work(at)?;
                self.taking()?;
            }
            let it = &self.groups[group];
            let Some(view) = &it.last else {
                continue;
            };
            let loggers = view.logs.as_ref().map_or(0, |it| it.loggers.len());
            let up = self.hosts.iter().filter(|it| it.node.is_some());
            let up = up.filter(|it| it.disk.is_some()).count();
            if takes(it, view) && loggers == up {
                return self.equal_logs();
            }
        }
        let disks = self.hosts.iter().filter_map(|it| it.disk.as_ref());
        let lineages = disks.filter_map(at_rest).map(|(state, _)| state.lineage);
        let lineages: BTreeSet<u128> = lineages.filter(|it| *it != 0).collect();
        if lineages.len() > 1 {
            // Such logs stay apart.
            return Ok(());
        }
        let last = self.groups[group].last.as_ref();
        let last = last.map_or_else(String::new, |it| show::view(it));
        Err((
            "D7",
            format!("with all logs there, it does not open: {last}"),
        ))
    }
}

/// Whether samples are sent in a view: the words of all loggers are there.
fn takes(group: &Group, view: &LogView) -> bool {
    let open = view.logs.as_ref().filter(|it| it.is_open());
    open.is_some_and(|logs| {
        logs.loggers.iter().all(|it| {
            let word = group.words.get(&(it.member, view.view));
            word.is_some_and(|word| *word >= view.base)
        })
    })
}
