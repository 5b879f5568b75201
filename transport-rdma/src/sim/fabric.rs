//! One member's end of a segment.

use super::network::{NodeId, SegmentId, SimNetwork};
use super::segment::Seat;
use crate::fabric::{Fabric, FabricCounters, PeerFailure, WakeInterest};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// A [`Fabric`] over a segment of a [`SimNetwork`]. Nothing it sends lands
/// before the network is stepped, but what a doorbell or a sleeper's fence
/// brings along. The node drops the segment with the last of its fabrics.
#[derive(Debug)]
pub struct SimFabric {
    network: SimNetwork,
    node: usize,
    seat: Seat,
    rows: Vec<Region>,
}

impl SimFabric {
    pub(super) fn new(network: SimNetwork, node: usize, seat: Seat, rows: Vec<Region>) -> Self {
        Self {
            network,
            node,
            seat,
            rows,
        }
    }

    /// Whose it is.
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    /// Of what it is an end.
    pub fn segment(&self) -> SegmentId {
        SegmentId(self.seat.segment)
    }
}

impl Drop for SimFabric {
    fn drop(&mut self) {
        self.network.state().release(self.seat);
    }
}

impl Fabric for SimFabric {
    fn me(&self) -> Rank {
        Rank(self.seat.rank as u16)
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    fn store(&self, word: usize, value: u64) {
        self.network.state().store(self.seat, word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.network.state().push(self.seat, at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.network.state().push_word(self.seat, word, value, to);
    }

    fn wake(&self, data: &PeerSet, acks: &PeerSet) {
        self.network.state().ring(self.seat, data, acks);
    }

    fn announce_sleep(&self, want: WakeInterest) {
        self.network.state().announce_sleep(self.node, want);
    }

    fn announce_awake(&self) {
        self.network.state().announce_awake(self.node);
    }

    fn nudge(&self) {
        self.network.state().nudge(self.node);
    }

    fn poll(&self) -> Option<PeerFailure> {
        let mut state = self.network.state();
        state.end_mut(self.seat).failures.pop_front()
    }

    fn fence(&self, peer: Rank) {
        self.network.state().fence(self.seat, peer.index());
    }

    fn counters(&self) -> FabricCounters {
        let state = self.network.state();
        let node = &state.nodes[self.node];
        FabricCounters {
            peer_wakes: node.peer_wakes,
            sleeps: node.sleeps,
            nudges: node.nudges,
            ..state.end(self.seat).counters
        }
    }
}
