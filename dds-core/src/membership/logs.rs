//! The logs of topics in a view: a pure function of the view before and the endpoints of this one.
//!
//! A group of a topic depends on its log endpoints and its group before, and changes only where these
//! endpoints do. They are all in one subgroup, and each change of them touches it: an update touches the
//! subgroups of what it puts and removes, a newcomer those of its endpoints, a member that leaves those that
//! it is in, and one that has failed touches all. Whether a subgroup has logs depends on its own
//! endpoints. So both stay as they are while an epoch lasts.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_transport::MEMBERS_MAX;

use super::view::{Endpoint, Member, MemberId, ViewError};
use crate::ids::{SubgroupId, TopicKey};
use crate::limits::{LOG_ROSTERS_MAX, POSITION_MAX};
use crate::storage::{LogEnd, LogGroup, LogId, Roster};

/// The groups of all topics that have logs.
pub(super) type LogGroups = BTreeMap<TopicKey, LogGroup>;

/// The log endpoints of a view, by rank of their members.
#[derive(Debug)]
pub(super) struct LogEnds<'a>(Vec<(MemberId, &'a Endpoint, &'a LogEnd)>);

impl<'a> LogEnds<'a> {
    pub(super) fn of(members: &'a [Member]) -> Self {
        let ends = members.iter().flat_map(|member| {
            let endpoints = member.endpoints.values();
            endpoints.filter_map(|it| Some((member.id, it, it.log.as_ref()?)))
        });
        Self(ends.collect())
    }

    /// Checks what members announce of their logs.
    pub(super) fn check(&self) -> Result<(), ViewError> {
        let mut subgroups = BTreeMap::new();
        let mut known = BTreeSet::new();
        for (member, endpoint, end) in &self.0 {
            let (topic, subgroup) = (endpoint.topic, endpoint.subgroup);
            let is_split = *subgroups.entry(topic).or_insert(subgroup) != subgroup;
            if is_split || !known.insert((topic, *member)) {
                return Err(ViewError::Logs(subgroup));
            }
            if end.end > POSITION_MAX
                || end.proposed.len() > LOG_ROSTERS_MAX
                || !end.rosters().all(is_sound)
            {
                return Err(ViewError::LogEnd(end.log));
            }
        }
        Ok(())
    }

    /// The groups of the view with this number, by the view before. Of a topic whose ends are the same the
    /// group is the same.
    pub(super) fn next(&self, before: &LogGroups, ends_before: &Self, view: u64) -> LogGroups {
        let ends_before = ends_before.by_topic();
        let next = |(topic, ends): (TopicKey, Vec<_>)| {
            let group = before.get(&topic);
            let group = match ends_before.get(&topic) == Some(&ends) {
                true => group.cloned(),
                false => LogGroup::next(group, view, &ends),
            };
            Some((topic, group?))
        };
        self.by_topic().into_iter().filter_map(next).collect()
    }

    /// The first position of an epoch of each subgroup that begins: after all that any of its logs has, and
    /// not 0, so that a log's position of 0 says that it is not ready.
    pub(super) fn floors(&self) -> BTreeMap<SubgroupId, u64> {
        let mut floors = BTreeMap::new();
        for (_, endpoint, end) in &self.0 {
            let floor: &mut u64 = floors.entry(endpoint.subgroup).or_default();
            *floor = end.end.max(*floor).max(1);
        }
        floors
    }

    /// Reads the groups that a newcomer was told: of the topics of all log endpoints, and of no other.
    pub(super) fn read(&self, told: Vec<(TopicKey, LogGroup)>, view: u64) -> Option<LogGroups> {
        let by_topic = self.by_topic();
        let topics = told.iter().map(|(topic, _)| topic);
        if !topics.eq(by_topic.keys()) {
            return None;
        }
        let mut groups = told.iter().zip(by_topic.values());
        let is_possible = groups.all(|((_, group), ends)| is_possible(group, view, ends));
        is_possible.then(|| told.into_iter().collect())
    }

    fn by_topic(&self) -> BTreeMap<TopicKey, Vec<(MemberId, &'a LogEnd)>> {
        let mut by_topic: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (member, endpoint, end) in &self.0 {
            by_topic
                .entry(endpoint.topic)
                .or_default()
                .push((*member, *end));
        }
        by_topic
    }
}

/// Whether a group can be one of these logs.
fn is_possible(group: &LogGroup, view: u64, ends: &[(MemberId, &LogEnd)]) -> bool {
    let mut members = BTreeSet::new();
    let mut logs = BTreeSet::new();
    let is_there = |member, log| ends.iter().any(|(id, end)| (*id, end.log) == (member, log));
    let mut loggers = group.loggers.iter();
    (1..=view).contains(&group.since)
        && group.rosters.iter().all(is_sound)
        && loggers.all(|it| {
            is_there(it.member, it.log) && members.insert(it.member) && logs.insert(it.log)
        })
}

fn is_sound(roster: &Roster) -> bool {
    is_list(&roster.logs)
}

fn is_list(logs: &[LogId]) -> bool {
    logs.len() <= MEMBERS_MAX && logs.is_sorted_by(|a, b| a < b)
}

#[cfg(all(test, not(loom)))]
mod tests;
