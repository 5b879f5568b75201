//! Who holds whom up.

use serde::Serialize;
use spindle_dds::monitor::{ParticipantFigures, SubgroupFigures, Wait, WaitFigures};

use super::scene::Names;

/// One that waits for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hold {
    pub(super) what: What,
    /// Who waits.
    pub(super) held: String,
    /// In which subgroup.
    pub(super) subgroup: u32,
    /// Which of its topics are there.
    pub(super) topics: Vec<String>,
    /// For whom.
    pub(super) by: Vec<String>,
    /// In words.
    pub(super) why: String,
}

/// What one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// A writer: for room.
    Room,
    /// Messages that have come: for their delivery.
    Delivery,
}

/// A participant waits if its writers have spent so much of the time with it.
const WAITS_FROM: f64 = 0.01;

/// One participant in two looks, and those who may hold it up.
pub(super) struct Case<'a> {
    pub(super) before: Option<&'a ParticipantFigures>,
    pub(super) now: &'a ParticipantFigures,
    pub(super) names: &'a Names,
    pub(super) all: &'a [&'a ParticipantFigures],
}

impl Case<'_> {
    pub(super) fn holds(&self) -> Vec<Hold> {
        let lanes = self.now.engine.lanes.iter();
        lanes
            .flat_map(|lane| [self.room(lane), self.delivery(lane)])
            .flatten()
            .collect()
    }

    fn hold(&self, what: What, lane: &SubgroupFigures, by: &[u16], why: String) -> Hold {
        let topics = self.now.topics.iter();
        let topics = topics.filter(|topic| topic.subgroup == lane.subgroup);
        Hold {
            what,
            held: self.names.of(&self.now.member),
            subgroup: lane.subgroup,
            topics: topics.map(|topic| topic.topic.clone()).collect(),
            by: by.iter().map(|rank| self.name(*rank)).collect(),
            why,
        }
    }

    fn member(&self, rank: u16) -> Option<&str> {
        let member = self.now.members.get(usize::from(rank))?;
        Some(&member.member)
    }

    fn name(&self, rank: u16) -> String {
        match self.member(rank) {
            Some(member) => self.names.of(member),
            None => format!("member {rank}"),
        }
    }

    /// A writer that waits for room.
    fn room(&self, lane: &SubgroupFigures) -> Option<Hold> {
        let waits = |of: &ParticipantFigures| -> Option<WaitFigures> {
            let mut waits = of.waits.iter();
            waits.find(|it| it.subgroup == lane.subgroup).copied()
        };
        let now = waits(self.now)?;
        let before = self.before.and_then(waits);
        let elapsed_ns = self.before.map_or(0, |before| {
            self.now.taken_at_ns.saturating_sub(before.taken_at_ns)
        });
        let waited_ns = now.ns.saturating_sub(before.map_or(0, |before| before.ns));
        let part = waited_ns as f64 / (elapsed_ns as f64).max(1.0);
        if now.waiting == 0 && (before.is_none() || part < WAITS_FROM) {
            return None;
        }
        let hold = |by: &[u16], why: String| Some(self.hold(What::Room, lane, by, why));
        if !lane.unready.is_empty() {
            let why = "not ready: has not come through what came before the view".to_owned();
            return hold(&lane.unready, why);
        }
        let mut rings: Vec<_> = lane.rings.iter().collect();
        rings.sort_by_key(|ring| ring.messages);
        let fullest = rings.pop()?;
        let (taken, most) = (fullest.messages, fullest.messages_max);
        let (bytes, bytes_max) = (fullest.bytes, fullest.bytes_max);
        let ring = format!("{taken} of {most} messages, {bytes} of {bytes_max} bytes in the ring");
        if fullest.unreleased.is_empty() {
            let why = match taken {
                0 => "RESOURCE_LIMITS of the writer".to_owned(),
                _ => format!("loans that are neither published nor dropped: {ring}"),
            };
            let me = [self.rank(&self.now.member)?];
            return hold(&me, why);
        }
        let full: Vec<String> = fullest
            .unreleased
            .iter()
            .flat_map(|rank| self.full_readers(*rank, lane.subgroup))
            .collect();
        let why = match full.is_empty() {
            true => format!("has not released what it was sent: {ring}"),
            false => format!(
                "does not take from its reader of {}: {ring}",
                full.join(", ")
            ),
        };
        hold(&fullest.unreleased, why)
    }

    /// Messages that have not moved from one look to the next.
    fn delivery(&self, lane: &SubgroupFigures) -> Option<Hold> {
        let wait = lane.wait.as_ref()?;
        let mut before = self.before?.engine.lanes.iter();
        let before = before.find(|it| it.subgroup == lane.subgroup && it.epoch == lane.epoch)?;
        if before.wait.is_none() || before.delivered_num != lane.delivered_num {
            return None;
        }
        let Wait {
            messages,
            senders,
            acknowledgements,
        } = wait;
        let (by, why) = match acknowledgements.is_empty() {
            false => (acknowledgements, "has not acknowledged"),
            true => (senders, "its next message, or null, is missing"),
        };
        let why = format!("{why}: {messages} messages wait for their delivery");
        Some(self.hold(What::Delivery, lane, by, why))
    }

    fn rank(&self, member: &str) -> Option<u16> {
        let mut members = (0..).zip(&self.now.members);
        let (rank, _) = members.find(|(_, it)| it.member == member)?;
        Some(rank)
    }

    /// Topics in a subgroup of which a member has a reader that is full.
    fn full_readers(&self, rank: u16, subgroup: u32) -> Vec<String> {
        let member = self.member(rank);
        let told = self.all.iter().find(|it| Some(&*it.member) == member);
        let topics = told.iter().flat_map(|told| &told.topics);
        let full = topics.filter(|it| it.subgroup == subgroup && it.full_readers > 0);
        full.map(|topic| topic.topic.clone()).collect()
    }
}
