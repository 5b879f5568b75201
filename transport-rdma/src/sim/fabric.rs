//! One member's end of a simulated network.

use super::network::SimNetwork;
use crate::fabric::{Fabric, FabricCounters, Failure, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// A [`Fabric`] over a [`SimNetwork`]. Nothing it sends lands before the
/// network is stepped, but what a doorbell or a sleeper's fence brings along.
#[derive(Debug)]
pub struct SimFabric {
    network: SimNetwork,
    me: Rank,
    rows: Vec<Region>,
}

impl SimFabric {
    pub(super) fn new(network: SimNetwork, me: Rank, rows: Vec<Region>) -> Self {
        Self { network, me, rows }
    }
}

impl Fabric for SimFabric {
    fn me(&self) -> Rank {
        self.me
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        &self.rows[of.index()]
    }

    fn store(&self, word: usize, value: u64) {
        self.network.state().store(self.me.index(), word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.network.state().push(self.me.index(), at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.network
            .state()
            .push_word(self.me.index(), word, value, to);
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.network.state().ring(self.me.index(), data, acks);
    }

    fn announce_sleep(&self, want: Want) {
        self.network.state().announce_sleep(self.me.index(), want);
    }

    fn announce_awake(&self) {
        self.network.state().announce_awake(self.me.index());
    }

    fn nudge(&self) {
        self.network.state().nudge(self.me.index());
    }

    fn poll(&self) -> Option<Failure> {
        self.network.state().members[self.me.index()]
            .failures
            .pop_front()
    }

    fn fence(&self, peer: Rank) {
        self.network.state().fence(self.me.index(), peer.index());
    }

    fn counters(&self) -> FabricCounters {
        self.network.state().members[self.me.index()].counters
    }
}
