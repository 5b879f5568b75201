//! Participants start and crash.

use std::collections::BTreeSet;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::log::SimDisk;
use spindle_dds_core::storage::{LogId, SyncMode};

use super::super::participant::{Participant, at_rest};
use super::super::reader::Reader;
use super::super::show;
use super::{GROUPS, Group, Node, World};

impl World {
    /// Logs that begin apart from others are other lineages: that is not what is tried here.
    pub(super) fn may_start(&mut self, at: usize, group: usize) -> bool {
        let Some(disk) = self.hosts[at].at_rest() else {
            return true;
        };
        let lineage = |disk: &SimDisk| at_rest(disk).map_or(0, |(state, _)| state.lineage);
        let id = at as u128 + 1;
        let known: BTreeSet<u128> = self
            .hosts
            .iter()
            .filter_map(|it| it.at_rest().map(lineage))
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

    pub(super) fn start(&mut self, at: usize, group: usize) {
        let host = &self.hosts[at];
        if host.node.is_some() || host.damaged.is_some() || !self.may_start(at, group) {
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
            reader: Reader::default(),
        };
        self.hosts[at].node = Some(node);
        if self.groups[group].last.is_none() {
            self.change_view(group);
        }
    }

    pub(super) fn crash(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.node.take().is_none() {
            return;
        }
        let has_power = self.rng.chance(0.3);
        if let Some(disk) = &host.disk {
            match has_power {
                true => disk.end_process(),
                false => {
                    disk.crash(&mut self.rng);
                    host.has_lost_power = true;
                }
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

    pub(super) fn crash_group(&mut self, group: usize) {
        for at in 0..self.hosts.len() {
            let node = self.hosts[at].node.as_ref();
            if node.is_some_and(|it| it.group == group) {
                self.crash(at);
            }
        }
    }

    pub(super) fn is_alive(&self, (member, at): (MemberId, usize)) -> bool {
        let node = self.hosts[at].node.as_ref();
        node.is_some_and(|it| it.member == member)
    }
}
