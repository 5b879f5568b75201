//! What an epoch looks like from here: for tools that show who holds whom up.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{Fabric, Rank};

use super::{Phase, SubgroupState};
use crate::ids::DeliveryClass;
use crate::subgroup::receive_cursor::ReceiveCursor;
use crate::sync::Ordering;

/// How far a member is in a subgroup's order: exclusive ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// All messages below are received by all.
    pub stable: u64,
    /// Everything below is delivered here.
    pub delivered_num: u64,
    /// Digest of what is delivered here.
    pub digest: u64,
}

/// An epoch at one moment, as one member sees it. Members are named by their ranks in the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgroupFigures {
    /// Of which subgroup.
    pub subgroup: u32,
    /// The view that made it.
    pub epoch: u64,
    /// Its members by place.
    pub members: Vec<u16>,
    /// How far it is on its way to its end.
    pub phase: EpochPhase,
    /// Members of which it is not known that they are ready for its messages: until all
    /// are, no sender finds room. Empty once it has begun.
    pub unready: Vec<u16>,
    /// Positions in its order, counted from its beginning: below, all is received here.
    pub received_num: u64,
    /// Below, all is received by all, as far as it is known here.
    pub stable: u64,
    /// Below, all is delivered here.
    pub delivered_num: u64,
    /// Messages delivered, and bytes of their payload.
    pub delivered: u64,
    /// See `delivered`.
    pub delivered_bytes: u64,
    /// What the messages wait for that are received here and not delivered, if there are any.
    pub wait: Option<DeliveryWait>,
    /// This member's rings.
    pub rings: Vec<RingFigures>,
}

/// How far an epoch is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochPhase {
    /// It takes messages.
    Open,
    /// It takes none any more.
    Wedged,
    /// All of it is received here that will be.
    Frozen,
}

/// What messages wait for before they are delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryWait {
    /// How many are received and not delivered.
    pub messages: u64,
    /// The sender whose next message, or null, is missing: all that waits stands behind it.
    pub senders: Vec<u16>,
    /// Members whose acknowledgement is missing most.
    pub acknowledgements: Vec<u16>,
}

/// One of a member's own rings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingFigures {
    /// Which.
    pub class: DeliveryClass,
    /// Messages that it holds at most.
    pub messages_max: u32,
    /// Bytes of payload in flight at most, if none are of large messages: these may take all
    /// of its memory.
    pub bytes_max: u64,
    /// Messages that are claimed, and not released by all.
    pub messages: u32,
    /// The bytes that they take, what is skipped at the end of the ring included.
    pub bytes: u64,
    /// Messages published, nulls not counted.
    pub sent: u64,
    /// Bytes of their payload.
    pub sent_bytes: u64,
    /// Members that have released the least of what was published, if anything of it is
    /// not released by all.
    pub unreleased: Vec<u16>,
}

impl<F: Fabric> SubgroupState<F> {
    /// For the moment between two steps.
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

    /// Those for whom `value` is the least, if that is below `end`.
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
        // What is stable waits for the next step alone.
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
        let unreleased = self.least(outgoing.published.index, |place| {
            let columns = &self.members[place.index()].columns;
            let word = columns.released(class.index(), mine);
            Some(handle.fabric.row(place).load(word))
        });
        Some(RingFigures {
            class,
            messages_max: spec.messages,
            bytes_max: spec.bytes,
            messages,
            bytes,
            sent: outgoing.published.real,
            sent_bytes: outgoing.bytes,
            unreleased,
        })
    }
}
