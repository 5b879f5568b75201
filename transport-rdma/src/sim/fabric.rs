//! The fabric of one member of a simulated segment.

use super::ids::{NodeId, SegmentId};
use super::landing::news_bucket;
use super::network::SimNetwork;
use super::options::SimOptions;
use super::segment::MemberRef;
use crate::fabric::news::{News, SeenNews};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{Fabric, FabricCounters, PeerFailure, WakeInterest, WakeReason};
use crate::memory::Region;

/// A [`Fabric`] over a segment of a [`SimNetwork`]. Nothing that it pushes lands before the
/// network is stepped, except what a doorbell or a sleeper's fence brings along. The node
/// drops the segment with the last of its fabrics.
#[derive(Debug)]
pub struct SimFabric {
    network: SimNetwork,
    node: usize,
    member: MemberRef,
    rows: Vec<Region>,
}

impl SimNetwork {
    /// A network with one control segment that all its nodes have opened, with rows of these
    /// lengths in bytes: node `n` has rank `n` and fabric `n`.
    pub fn group(seed: u64, row_lens: &[usize], options: SimOptions) -> (Self, Vec<SimFabric>) {
        let network = Self::new(seed, row_lens.len(), options);
        let rows = row_lens.iter().enumerate();
        let rows: Vec<_> = rows.map(|(node, &len)| (NodeId(node), len)).collect();
        let segment = network.open_control(&rows);
        let ranks = (0..rows.len() as u16).map(Rank);
        let fabrics = ranks.map(|rank| network.fabric(segment, rank)).collect();
        (network, fabrics)
    }

    /// A member's fabric. With the first one its node opens the segment; when the last is
    /// dropped, it closes it. Several are the same fabric. Panics if the segment was closed,
    /// or the node has crashed.
    pub fn fabric(&self, segment: SegmentId, rank: Rank) -> SimFabric {
        let member = MemberRef {
            segment: segment.0,
            rank: rank.index(),
        };
        let mut state = self.state();
        let mut rows = state.acquire(member);
        for (of, row) in rows.iter_mut().enumerate() {
            if of != rank.index() {
                *row = row.read_only();
            }
        }
        SimFabric::new(self.clone(), state.node_of(member), member, rows)
    }
}

impl SimFabric {
    pub(super) fn new(
        network: SimNetwork,
        node: usize,
        member: MemberRef,
        rows: Vec<Region>,
    ) -> Self {
        Self {
            network,
            node,
            member,
            rows,
        }
    }

    /// The node of this member.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    /// Its segment.
    pub fn segment(&self) -> SegmentId {
        SegmentId(self.member.segment)
    }
}

impl Drop for SimFabric {
    fn drop(&mut self) {
        self.network.state().release(self.member);
    }
}

impl Fabric for SimFabric {
    fn me(&self) -> Rank {
        Rank(self.member.rank as u16)
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    fn store(&self, word: usize, value: u64) {
        self.network.state().store(self.member, word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.network.state().push(self.member, at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.network.state().push_word(self.member, word, value, to);
    }

    fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        let mut state = self.network.state();
        state.wake_members(self.member, peers, reason);
    }

    fn shares_memory(&self) -> bool {
        self.network.state().shares_memory(self.member.segment)
    }

    fn would_wake(&self, peers: &PeerSet, reason: WakeReason) -> bool {
        let mut state = self.network.state();
        state.wake_members(self.member, &PeerSet::EMPTY, reason);
        state.would_wake(self.member, peers, reason)
    }

    fn announce_sleep(&self, interest: WakeInterest) {
        self.network.state().announce_sleep(self.node, interest);
    }

    fn announce_awake(&self) {
        self.network.state().announce_awake(self.node);
    }

    fn nudge(&self) {
        self.network.state().nudge(self.node);
    }

    fn news(&self, _: &mut SeenNews) -> Option<News> {
        let node = &mut self.network.state().nodes[self.node];
        let buckets = core::mem::take(&mut node.news);
        node.knows_news.then_some(News {
            buckets,
            acknowledged: false,
        })
    }

    fn news_bucket(&self) -> u8 {
        news_bucket(self.member.segment)
    }

    fn poll(&self) -> Option<PeerFailure> {
        let mut state = self.network.state();
        state.endpoint_mut(self.member).failures.pop_front()
    }

    fn fence(&self, peer: Rank) {
        self.network.state().fence(self.member, peer.index());
    }

    fn counters(&self) -> FabricCounters {
        let state = self.network.state();
        let node = &state.nodes[self.node];
        FabricCounters {
            peer_wakes: node.peer_wakes,
            sleeps: node.sleeps,
            nudges: node.nudges,
            ..state.endpoint(self.member).counters
        }
    }
}
