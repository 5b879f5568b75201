//! The logs of topics in a view: a pure function of the view before and the endpoints of this one.
//!
//! A group of a topic depends on its log endpoints and its group before, and so does whether a subgroup
//! has logs at all. A change of any of these endpoints touches their subgroup, as does a member that
//! goes. So both stay as they are while an epoch lasts.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_transport::MEMBERS_MAX;

use super::view::{Endpoint, Member, MemberId, ViewError};
use crate::ids::{SubgroupId, TopicKey};
use crate::limits::{LOG_ROSTERS_MAX, POSITION_MAX};
use crate::storage::{LogEnd, LogGroup, LogId, Roster};

/// The groups of all topics that have logs.
pub(super) type LogGroups = BTreeMap<TopicKey, LogGroup>;

/// Those of a view, by those of the view before.
pub(super) fn next(before: &LogGroups, view: u64, members: &[Member]) -> LogGroups {
    let ends = announced(members).into_iter();
    let next = |(topic, ends): (TopicKey, Vec<_>)| {
        let group = LogGroup::next(before.get(&topic), view, &ends)?;
        Some((topic, group))
    };
    ends.filter_map(next).collect()
}

/// The first position of epochs that begin: after all that any of their logs has, and not 0, so that a
/// log's position of 0 says that it is not ready.
pub(super) fn floors(members: &[Member]) -> BTreeMap<SubgroupId, u64> {
    let mut floors = BTreeMap::new();
    for (_, endpoint, end) in ends(members) {
        let floor: &mut u64 = floors.entry(endpoint.subgroup).or_default();
        *floor = end.end.max(*floor).max(1);
    }
    floors
}

/// Checks what members announce of their logs.
pub(super) fn check_ends(members: &[Member]) -> Result<(), ViewError> {
    let mut subgroups = BTreeMap::new();
    let mut known = BTreeSet::new();
    for (member, endpoint, end) in ends(members) {
        let (topic, subgroup) = (endpoint.topic, endpoint.subgroup);
        let is_split = *subgroups.entry(topic).or_insert(subgroup) != subgroup;
        if is_split || !known.insert((topic, member)) {
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

/// Reads the groups that a newcomer was told: of the topics of all log endpoints, and of no other.
pub(super) fn read(
    told: Vec<(TopicKey, LogGroup)>,
    view: u64,
    members: &[Member],
) -> Option<LogGroups> {
    let announced = announced(members);
    let topics = told.iter().map(|(topic, _)| topic);
    if !topics.eq(announced.keys()) {
        return None;
    }
    let mut groups = told.iter().zip(announced.values());
    let is_possible = groups.all(|((_, group), ends)| is_possible(group, view, ends));
    is_possible.then(|| told.into_iter().collect())
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

/// The log endpoints by topic, by rank of their members.
fn announced(members: &[Member]) -> BTreeMap<TopicKey, Vec<(MemberId, &LogEnd)>> {
    let mut by_topic: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (member, endpoint, end) in ends(members) {
        let ends = by_topic.entry(endpoint.topic).or_default();
        ends.push((member, end));
    }
    by_topic
}

fn ends(members: &[Member]) -> impl Iterator<Item = (MemberId, &Endpoint, &LogEnd)> {
    members.iter().flat_map(|member| {
        let endpoints = member.endpoints.values();
        endpoints.filter_map(|it| Some((member.id, it, it.log.as_ref()?)))
    })
}
