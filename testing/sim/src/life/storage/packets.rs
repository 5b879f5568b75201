//! Packets of transfers between members: they arrive once and in order, after a delay, unless a member
//! is gone.

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::Cursor;
use spindle_dds_transport::sim::Rng;

use super::announcement::{Guid, Level};
use super::matching::Transfer;

/// A packet of a transfer.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) from: MemberId,
    pub(crate) to: MemberId,
    pub(crate) transfer: Transfer,
    /// Which history of the donor it is about.
    pub(crate) level: Level,
    pub(crate) body: Body,
}

impl Packet {
    /// The answer to a joiner.
    pub(super) fn answer(&self, from: MemberId, body: Body) -> Self {
        let (to, transfer, level) = (self.from, self.transfer, self.level);
        Self {
            from,
            to,
            transfer,
            level,
            body,
        }
    }
}

/// What a packet says.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Ask {
        after: BTreeMap<Guid, u64>,
        from: Option<Cursor>,
        parts: u32,
    },
    More,
    Part(Vec<u8>),
    End(Vec<(Guid, u64)>),
    /// Nothing is pinned for the transfer; `was_dropped` says whether something was.
    Unknown {
        was_dropped: bool,
    },
}

/// What is between two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Road {
    Open,
    /// Packets wait.
    HeldUp,
    /// The sender is gone: what is still under way may be lost.
    SenderGone,
    /// Nothing arrives any more.
    Broken,
}

/// Packets on their way.
#[derive(Debug)]
pub(crate) struct Post {
    rng: Rng,
    /// By sender and receiver, each with the turn at which it arrives at the earliest.
    under_way: BTreeMap<(MemberId, MemberId), Vec<(usize, Packet)>>,
    broken: BTreeSet<(MemberId, MemberId)>,
}

impl Post {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed ^ 0x9057),
            under_way: BTreeMap::new(),
            broken: BTreeSet::new(),
        }
    }

    pub(crate) fn send(&mut self, packet: Packet, turn: usize) {
        let between = (packet.from, packet.to);
        let due = turn + 1 + self.rng.below(200);
        self.under_way
            .entry(between)
            .or_default()
            .push((due, packet));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Senders and receivers of packets that are under way.
    pub(crate) fn between(&self) -> impl Iterator<Item = (MemberId, MemberId)> {
        self.under_way.keys().copied()
    }

    /// The packets that arrive now.
    pub(crate) fn arrive(
        &mut self,
        turn: usize,
        roads: &BTreeMap<(MemberId, MemberId), Road>,
    ) -> Vec<Packet> {
        let mut arrived = Vec::new();
        let (rng, broken) = (&mut self.rng, &mut self.broken);
        self.under_way.retain(|pair, packets| {
            let road = roads.get(pair).copied().unwrap_or(Road::Broken);
            if road == Road::Broken || broken.contains(pair) {
                return false;
            }
            let due = packets.iter().take_while(|(due, _)| *due <= turn).count();
            if road == Road::SenderGone && due > 0 && rng.chance(0.5) {
                broken.insert(*pair);
                return false;
            }
            if road != Road::HeldUp {
                arrived.extend(packets.drain(..due).map(|(_, packet)| packet));
            }
            !packets.is_empty()
        });
        arrived
    }
}
