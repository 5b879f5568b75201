//! What all participants compute alike of what all announced.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::{
    Layout, Ring, RingSpec, SenderSpec, SpecError, SubgroupId, SubgroupSpec, TopicKey, ViewSpec,
};
use spindle_dds_transport::Rank;

use super::announcement::Announcement;
use crate::error::{Error, Result};

/// The view.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) spec: ViewSpec,
}

impl Plan {
    pub(super) fn of(announcements: &[Announcement], pids: &[u32], group_id: u64) -> Result<Self> {
        let subgroups = agreed_subgroups(announcements, pids)?;
        agreed_topics(announcements, pids, subgroups)?;
        let subgroup = |at| subgroup_of(announcements, at);
        let spec = ViewSpec {
            view_id: group_id,
            members: announcements.len(),
            subgroups: (0..subgroups).map(subgroup).collect(),
        };
        Ok(Self { spec })
    }

    pub(super) fn layout(&self) -> Result<Layout> {
        Layout::new(&self.spec).map_err(impossible)
    }

    /// The largest ring of a sender in a subgroup, and all rings of some senders together.
    pub(super) fn messages(&self, subgroup: SubgroupId, rank: Rank, ring: Ring) -> usize {
        let senders = &self.spec.subgroups[subgroup.index()].senders;
        let sender = senders.iter().find(|sender| sender.rank == rank);
        let ring = sender.and_then(|sender| sender.rings[ring.index()]);
        ring.map_or(0, |ring| ring.messages as usize)
    }
}

pub(super) fn impossible(error: SpecError) -> Error {
    Error::Error(format!("the participants do not fit together: {error}"))
}

fn agreed_subgroups(announcements: &[Announcement], pids: &[u32]) -> Result<u32> {
    let mut counts = announcements
        .iter()
        .map(|announcement| announcement.subgroups);
    let first = counts.next().unwrap_or(2);
    match counts.position(|count| count != first) {
        None => Ok(first.max(2)),
        Some(at) => Err(Error::Error(format!(
            "process {} has spindle.subgroups {}, process {} has {first}: give all the same",
            pids[at + 1],
            announcements[at + 1].subgroups,
            pids[0]
        ))),
    }
}

/// A topic is in one subgroup, the same at all.
fn agreed_topics(announcements: &[Announcement], pids: &[u32], subgroups: u32) -> Result<()> {
    let mut known: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (announcement, &pid) in announcements.iter().zip(pids) {
        for endpoint in announcement.endpoints() {
            let (topic, subgroup) = (&endpoint.topic, endpoint.subgroup);
            if subgroup == 0 || subgroup >= subgroups {
                return Err(Error::Error(format!(
                    "process {pid} has topic {topic} in subgroup {subgroup}, which does not exist"
                )));
            }
            let (theirs, whose) = *known.entry(topic).or_insert((subgroup, pid));
            if theirs != subgroup {
                return Err(Error::Error(format!(
                    "topic {topic} is in subgroup {subgroup} at process {pid} and in {theirs} at \
                     process {whose}: pin it to the same with spindle.topic.{topic}.subgroup"
                )));
            }
        }
    }
    Ok(())
}

fn subgroup_of(announcements: &[Announcement], at: u32) -> SubgroupSpec {
    let mut spec = SubgroupSpec::default();
    let mut topics = BTreeSet::new();
    for (announcement, rank) in announcements
        .iter()
        .zip(0..)
        .map(|(a, rank)| (a, Rank(rank)))
    {
        let here = |endpoint: &&super::announcement::Endpoint| endpoint.subgroup == at;
        let mut names = announcement.endpoints().filter(here).peekable();
        if names.peek().is_none() {
            continue;
        }
        topics.extend(names.map(|endpoint| TopicKey::of_name(&endpoint.topic)));
        spec.members.push(rank);
        let rings = Ring::BOTH.map(|ring| ring_of(announcement, at, ring));
        if rings.iter().any(Option::is_some) {
            spec.senders.push(SenderSpec { rank, rings });
        }
    }
    spec.topics = topics.into_iter().collect();
    spec
}

/// As large as the participant's largest writer wants it.
fn ring_of(announcement: &Announcement, subgroup: u32, ring: Ring) -> Option<RingSpec> {
    let writers = announcement
        .writers
        .iter()
        .filter(|writer| writer.endpoint.subgroup == subgroup && writer.ring() == ring);
    let messages = writers.clone().map(|writer| writer.ring_messages).max()?;
    let bytes = writers.map(|writer| writer.ring_bytes).max()?;
    Some(RingSpec::at_least(messages, bytes))
}
