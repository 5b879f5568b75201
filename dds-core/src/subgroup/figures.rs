//! The state of an epoch as one member sees it, for tools that show which member delays others.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::{Phase, SubgroupState};
use crate::ids::DeliveryClass;
use crate::subgroup::receive_cursor::ReceiveCursor;
use crate::sync::Ordering;

/// A member's progress in a subgroup's order: exclusive ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Every message below has been received by all members.
    pub stable: u64,
    /// Every message below has been delivered here.
    pub delivered_num: u64,
    /// Digest of the messages delivered here.
    pub digest: u64,
}

/// An epoch at one moment, as one member sees it. Members are named by their ranks in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgroupFigures {
    /// The subgroup's id.
    pub subgroup: u32,
    /// Id of the view that formed the epoch.
    pub epoch: u64,
    /// The members' ranks in the view, by rank in the epoch.
    pub members: Vec<u16>,
    /// The epoch's phase.
    pub phase: EpochPhase,
    /// Members not known to be ready for messages: while there is one, claims find no room. Empty
    /// once the epoch has begun.
    pub unready: Vec<u16>,
    /// Sequence number below which every message has been received here.
    pub received_num: u64,
    /// The same of each member, by rank in the epoch, as far as known here and at most
    /// `received_num`.
    pub received: Vec<u64>,
    /// Sequence number below which every message has been received by all members, as far as known
    /// here.
    pub stable: u64,
    /// Sequence number below which every message has been delivered here.
    pub delivered_num: u64,
    /// Real messages delivered here.
    pub delivered: u64,
    /// Bytes of their payload.
    pub delivered_bytes: u64,
    /// What received messages wait for before delivery; `None` if none waits.
    pub wait: Option<DeliveryWait>,
    /// This member's rings.
    pub rings: Vec<RingFigures>,
}

/// The phases of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochPhase {
    /// Takes claims.
    Open,
    /// Refuses claims and commits; its guards become final.
    Wedged,
    /// The counts of received messages are final.
    Frozen,
}

/// What received messages wait for before they are delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryWait {
    /// Number of messages received and not delivered.
    pub messages: u64,
    /// Senders whose next message, or null, is missing: all messages that wait come after it.
    pub senders: Vec<u16>,
    /// Members whose acknowledgement is furthest behind.
    pub acknowledgements: Vec<u16>,
}

/// One of a member's own rings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingFigures {
    /// The class it sends.
    pub class: DeliveryClass,
    /// Capacity in messages.
    pub messages_max: u32,
    /// Maximum bytes of payload in flight. Large messages may take all of the ring's memory
    /// instead.
    pub bytes_max: u64,
    /// Messages claimed and not yet released by all members.
    pub messages: u32,
    /// Bytes they take, including bytes skipped at the end of the ring.
    pub bytes: u64,
    /// Real messages published.
    pub sent: u64,
    /// Bytes of their payload.
    pub sent_bytes: u64,
    /// Messages published, nulls included.
    pub published: u64,
    /// Published messages, nulls included, that all members have released.
    pub released: u64,
    /// Members that have released the least; empty if all published messages are released by all.
    pub unreleased: Vec<u16>,
}

impl<F: Fabric> SubgroupState<F> {
    /// A snapshot, taken between two steps.
    pub(crate) fn figures(&self) -> SubgroupFigures {
        SubgroupFigures {
            subgroup: self.id().0,
            epoch: self.spec.epoch,
            members: self.spec.members.iter().map(|rank| rank.0).collect(),
            phase: match self.phase {
                Phase::Open => EpochPhase::Open,
                Phase::Wedged => EpochPhase::Wedged,
                Phase::Frozen => EpochPhase::Frozen,
            },
            unready: self.unready(),
            received_num: self.received_num,
            received: self.received_by_each(),
            stable: self.stable,
            delivered_num: self.delivered_num,
            delivered: self.delivered.0,
            delivered_bytes: self.delivered.1,
            wait: self.wait(),
            rings: DeliveryClass::BOTH
                .into_iter()
                .filter_map(|class| self.ring(class))
                .collect(),
        }
    }

    /// A member's rank in the view.
    fn rank(&self, place: Rank) -> u16 {
        self.spec.members[place.index()].0
    }

    /// The ranks in the view of the members with the least `value`, if that is below `end`.
    fn least(&self, end: u64, value: impl Fn(Rank) -> Option<u64>) -> Vec<u16> {
        let places = (0..self.members.len() as u16).map(Rank);
        let values: Vec<(Rank, u64)> = places
            .filter_map(|place| Some((place, value(place)?)))
            .collect();
        let least = values.iter().map(|(_, value)| *value).min();
        let least = least.filter(|least| *least < end);
        let theirs = values.iter().filter(|(_, value)| Some(*value) == least);
        theirs.map(|(place, _)| self.rank(*place)).collect()
    }

    /// The end of what each member has received in order, of what was received here.
    fn received_by_each(&self) -> Vec<u64> {
        let me = self.handle.fabric.me();
        let end = self.received_num;
        let of = |place: Rank| match place == me || self.sends_all(place) {
            true => end,
            false => self.received_by(place, end).min(end),
        };
        (0..self.members.len() as u16).map(Rank).map(of).collect()
    }

    fn unready(&self) -> Vec<u16> {
        let handle = &self.handle;
        if handle.begun.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let word = |place: Rank| self.members[place.index()].columns.ready();
        self.least(1, |place| Some(handle.fabric.row(place).load(word(place))))
    }

    fn wait(&self) -> Option<DeliveryWait> {
        let ordered = || self.ordered.iter().map(|&at| &self.senders[at]);
        let waiting = |cursor: &ReceiveCursor| cursor.waiting();
        let receive_cursors = ordered().filter_map(|sender| sender.receive_cursors[0].as_ref());
        let messages = receive_cursors.map(waiting).sum();
        if messages == 0 {
            return None;
        }
        let me = self.handle.fabric.me();
        // Stable messages wait only for the next step.
        let reach = match self.delivered_num >= self.stable {
            true => self.received_num,
            false => 0,
        };
        let acknowledgements = self.least(reach, |place| {
            let says = place != me && !self.sends_all(place);
            says.then(|| self.received_by(place, reach))
        });
        let n = self.ordered.len() as u64;
        let next = |place: Rank| {
            let mut senders = (0..).zip(ordered());
            let (at, sender) = senders.find(|(_, sender)| sender.rank == place)?;
            Some(sender.receive_cursors[0].as_ref()?.count() * n + at)
        };
        let senders = match self.delivered_num >= self.received_num {
            true => self.least(u64::MAX, next),
            false => Vec::new(),
        };
        Some(DeliveryWait {
            messages,
            senders,
            acknowledgements,
        })
    }

    fn ring(&self, class: DeliveryClass) -> Option<RingFigures> {
        let handle = &self.handle;
        let outgoing = self.outgoing[class.index()].as_ref()?;
        let send_ring = handle.send_rings[class.index()].as_ref()?;
        let spec = handle.columns.rings[class.index()]?.spec;
        let mine = handle.mine?;
        let (messages, bytes) = send_ring.in_use();
        let released = |place: Rank| {
            let columns = &self.members[place.index()].columns;
            let word = columns.released(class.index(), mine);
            handle.fabric.row(place).load(word)
        };
        let published = outgoing.published.index;
        let unreleased = self.least(published, |place| Some(released(place)));
        let places = (0..self.members.len() as u16).map(Rank);
        let least = places.map(released).min().unwrap_or(published);
        Some(RingFigures {
            class,
            messages_max: spec.messages,
            bytes_max: spec.bytes,
            messages,
            bytes,
            sent: outgoing.sent(),
            sent_bytes: outgoing.bytes,
            published,
            released: least.min(published),
            unreleased,
        })
    }
}
