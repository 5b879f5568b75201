//! Participants that are blocked, and by which others.

use serde::Serialize;
use spindle_dds::monitor::{
    DeliveryWait, EpochPhase, ParticipantFigures, SubgroupFigures, WaitFigures,
};

use super::scene::Names;

/// A participant that waits for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Blocked {
    #[serde(flatten)]
    pub(super) what: What,
    /// The participant that waits.
    pub(super) participant: String,
    /// The subgroup in which it waits.
    pub(super) subgroup: u32,
    /// Its topics in that subgroup.
    pub(super) topics: Vec<String>,
    /// The participants that block it.
    pub(super) by: Vec<String>,
    /// The reason, as text.
    pub(super) why: String,
}

/// What a participant waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(super) enum What {
    /// A writer waits for room.
    Room,
    /// No writer waits, but so many samples do, in the histories of writers, to be sent.
    History { samples: u64 },
    /// Received messages wait for their delivery.
    Delivery,
}

/// Share of the time that writers have to wait for a participant to count as blocked.
const WAITS_FROM: f64 = 0.01;

/// One participant in two snapshots, and the others, which may block it.
pub(super) struct Comparison<'a> {
    pub(super) before: Option<&'a ParticipantFigures>,
    pub(super) now: &'a ParticipantFigures,
    pub(super) names: &'a Names,
    pub(super) all: &'a [&'a ParticipantFigures],
}

impl Comparison<'_> {
    pub(super) fn blocked(&self) -> Vec<Blocked> {
        let subgroups = self.now.engine.subgroups.iter();
        subgroups
            .flat_map(|subgroup| [self.room(subgroup), self.delivery(subgroup)])
            .flatten()
            .collect()
    }

    fn entry(&self, what: What, subgroup: &SubgroupFigures, by: &[u16], why: String) -> Blocked {
        let topics = self.now.topics.iter();
        let topics = topics.filter(|topic| topic.subgroup == subgroup.subgroup);
        let is_of_history = matches!(what, What::History { .. });
        let topics = topics.filter(|topic| !is_of_history || topic.waiting > 0);
        Blocked {
            what,
            participant: self.names.of(&self.now.member),
            subgroup: subgroup.subgroup,
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

    /// Whether a writer waits for room, or what it has written does.
    fn waits(&self, subgroup: &SubgroupFigures) -> Option<What> {
        let waits = |of: &ParticipantFigures| -> Option<WaitFigures> {
            let mut waits = of.waits.iter();
            waits.find(|it| it.subgroup == subgroup.subgroup).copied()
        };
        if let Some(now) = waits(self.now) {
            let before = self.before.and_then(waits);
            let elapsed_ns = self.before.map_or(0, |before| {
                self.now.taken_at_ns.saturating_sub(before.taken_at_ns)
            });
            let waited_ns = now.ns.saturating_sub(before.map_or(0, |before| before.ns));
            let part = waited_ns as f64 / (elapsed_ns as f64).max(1.0);
            if now.waiting > 0 || (before.is_some() && part >= WAITS_FROM) {
                return Some(What::Room);
            }
        }
        let waiting = |of: &ParticipantFigures| -> u64 {
            let topics = of.topics.iter();
            let topics = topics.filter(|topic| topic.subgroup == subgroup.subgroup);
            topics.fold(0, |sum, topic| sum.saturating_add(topic.waiting))
        };
        let samples = waiting(self.now);
        let before = self.before.map_or(samples, waiting);
        (samples > 0 && before > 0).then_some(What::History { samples })
    }

    /// What waits for room in the ring of a writer, and for which participants.
    fn room(&self, subgroup: &SubgroupFigures) -> Option<Blocked> {
        let what = self.waits(subgroup)?;
        let entry = |by: &[u16], why: String| Some(self.entry(what, subgroup, by, why));
        if subgroup.phase != EpochPhase::Open {
            let me = [self.rank(&self.now.member)?];
            return entry(&me, "takes no messages: the view is changing".to_owned());
        }
        if !subgroup.unready.is_empty() {
            let why = "not ready: has not delivered all messages from before the view".to_owned();
            return entry(&subgroup.unready, why);
        }
        let mut rings: Vec<_> = subgroup.rings.iter().collect();
        rings.sort_by_key(|ring| ring.messages);
        let fullest = rings.pop()?;
        let (taken, most) = (fullest.messages, fullest.messages_max);
        let (bytes, bytes_max) = (fullest.bytes, fullest.bytes_max);
        let ring = format!("{taken} of {most} messages, {bytes} of {bytes_max} bytes in the ring");
        if fullest.unreleased.is_empty() {
            let why = match taken {
                0 => "RESOURCE_LIMITS of the writer".to_owned(),
                _ => format!("loans that are neither written nor dropped: {ring}"),
            };
            let me = [self.rank(&self.now.member)?];
            return entry(&me, why);
        }
        let full: Vec<String> = fullest
            .unreleased
            .iter()
            .flat_map(|rank| self.full_readers(*rank, subgroup.subgroup))
            .collect();
        let why = match full.is_empty() {
            true => format!("has not released the messages that it received: {ring}"),
            false => format!(
                "does not take from its reader of {}: {ring}",
                full.join(", ")
            ),
        };
        entry(&fullest.unreleased, why)
    }

    /// Whether messages wait for their delivery, with no progress between the snapshots.
    fn delivery(&self, subgroup: &SubgroupFigures) -> Option<Blocked> {
        let wait = subgroup.wait.as_ref()?;
        let mut before = self.before?.engine.subgroups.iter();
        let before =
            before.find(|it| it.subgroup == subgroup.subgroup && it.epoch == subgroup.epoch)?;
        if before.wait.is_none() || before.delivered_num != subgroup.delivered_num {
            return None;
        }
        let DeliveryWait {
            messages,
            senders,
            acknowledgements,
        } = wait;
        let (by, why) = match acknowledgements.is_empty() {
            false => (acknowledgements, "has not acknowledged"),
            true => (senders, "has not sent its next message or null"),
        };
        let why = format!("{why}: {messages} messages wait for delivery");
        Some(self.entry(What::Delivery, subgroup, by, why))
    }

    fn rank(&self, member: &str) -> Option<u16> {
        let mut members = (0..).zip(&self.now.members);
        let (rank, _) = members.find(|(_, it)| it.member == member)?;
        Some(rank)
    }

    /// Topics of a subgroup in which a member has a full reader.
    fn full_readers(&self, rank: u16, subgroup: u32) -> Vec<String> {
        let member = self.member(rank);
        let told = self.all.iter().find(|it| Some(&*it.member) == member);
        let topics = told.iter().flat_map(|told| &told.topics);
        let full = topics.filter(|it| it.subgroup == subgroup && it.full_readers > 0);
        full.map(|topic| topic.topic.clone()).collect()
    }
}
