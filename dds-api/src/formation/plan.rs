//! What all participants compute alike of what all announced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spindle_dds_core::{
    CONTROL_ROW_LEN, LaneSpec, Layout, Ring, RingSpec, SenderSpec, SpecError, SubgroupId, TopicKey,
};
use spindle_dds_transport::shm::ShmFabric;
use spindle_dds_transport::{Fabric, Part, Rank, Window};

use super::announcement::Announcement;
use crate::error::{Error, Result};
use crate::wire::Wire;

/// The group: its lanes, by ascending subgroup, those without members left out.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) subgroups: u32,
    pub(super) lanes: Vec<LaneSpec>,
    members: usize,
}

/// Where everything stands in the one row that each member has.
#[derive(Debug)]
pub(super) struct Rows {
    /// By rank: bytes.
    pub(super) lens: Vec<usize>,
    pub(super) control: Vec<Window>,
    /// In the order of the lanes.
    pub(super) lanes: Vec<Vec<Window>>,
}

/// What a participant's engine works on.
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) control: Wire,
    pub(super) lanes: Vec<(LaneSpec, Wire)>,
}

impl Plan {
    pub(super) fn of(announcements: &[Announcement], pids: &[u32], group_id: u64) -> Result<Self> {
        let subgroups = agreed_subgroups(announcements, pids)?;
        agreed_topics(announcements, pids, subgroups)?;
        let lane = |at| lane_of(announcements, at, group_id);
        Ok(Self {
            subgroups,
            lanes: (0..subgroups).filter_map(lane).collect(),
            members: announcements.len(),
        })
    }

    /// The control segment first, then the lanes: each a window of the rows.
    pub(super) fn rows(&self) -> Result<Rows> {
        let mut lens = vec![0; self.members];
        let mut window = |of: Rank, len: usize| {
            let end = &mut lens[of.index()];
            let at = std::mem::replace(end, *end + len);
            Window { of, at, len }
        };
        let ranks = (0..self.members as u16).map(Rank);
        let control = ranks.map(|rank| window(rank, CONTROL_ROW_LEN)).collect();
        let mut lanes = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let row_lens = Layout::new(lane).map_err(impossible)?.row_lens();
            let rows = lane.members.iter().zip(row_lens);
            lanes.push(rows.map(|(rank, len)| window(*rank, len)).collect());
        }
        Ok(Rows {
            lens,
            control,
            lanes,
        })
    }

    /// My segments, over a fabric with these rows.
    pub(super) fn segments(&self, rows: &Rows, fabric: ShmFabric) -> Result<Segments> {
        let (me, whole) = (fabric.me(), Arc::new(fabric));
        let part = |windows: &[Window]| {
            let part = Part::new(whole.clone(), windows);
            part.ok_or_else(|| Error::Error("the rows are shorter than agreed".to_owned()))
        };
        let all = self.lanes.iter().zip(&rows.lanes);
        let mine = all.filter(|(lane, _)| lane.members.contains(&me));
        let lanes = mine.map(|(lane, windows)| Ok((lane.clone(), part(windows)?)));
        Ok(Segments {
            lanes: lanes.collect::<Result<_>>()?,
            control: part(&rows.control)?,
        })
    }

    /// The place of a member in a subgroup.
    pub(super) fn place(&self, subgroup: SubgroupId, rank: Rank) -> Option<Rank> {
        let place = self.lane(subgroup)?.members.binary_search(&rank).ok()?;
        Some(Rank(place as u16))
    }

    fn lane(&self, subgroup: SubgroupId) -> Option<&LaneSpec> {
        self.lanes.iter().find(|lane| lane.subgroup == subgroup)
    }

    /// How many messages the ring of a sender holds.
    pub(super) fn messages(&self, subgroup: SubgroupId, place: Rank, ring: Ring) -> usize {
        let senders = self.lane(subgroup).map(|lane| lane.senders.iter());
        let sender = senders.and_then(|mut senders| senders.find(|sender| sender.rank == place));
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

fn lane_of(announcements: &[Announcement], at: u32, epoch: u64) -> Option<LaneSpec> {
    let mut lane = LaneSpec {
        subgroup: SubgroupId(at),
        epoch,
        base: 0,
        members: Vec::new(),
        senders: Vec::new(),
        topics: Vec::new(),
    };
    let mut topics = BTreeSet::new();
    for (announcement, rank) in announcements.iter().zip(0..) {
        let here = |endpoint: &&super::announcement::Endpoint| endpoint.subgroup == at;
        let mut names = announcement.endpoints().filter(here).peekable();
        if names.peek().is_none() {
            continue;
        }
        topics.extend(names.map(|endpoint| TopicKey::of_name(&endpoint.topic)));
        let rings = Ring::BOTH.map(|ring| ring_of(announcement, at, ring));
        if rings.iter().any(Option::is_some) {
            let place = Rank(lane.members.len() as u16);
            lane.senders.push(SenderSpec { rank: place, rings });
        }
        lane.members.push(Rank(rank));
    }
    lane.topics = topics.into_iter().collect();
    (!lane.members.is_empty()).then_some(lane)
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
