//! The data path: each call goes to the part that reaches the peer.

use core::time::Duration;

use crate::fabric::{Fabric, FabricCounters, Failure, Park, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::shm::ShmFabric;
use crate::tcp::{LinkState, Streams};

/// A [`Fabric`] over shared memory to the members of my host and over streams
/// to all others; made by [`MixedFabric::build`].
#[derive(Debug)]
pub struct MixedFabric {
    pub(super) me: Rank,
    /// By rank in the view.
    pub(super) rows: Vec<Region>,
    /// Ends first: its thread rings the bell of `shm`.
    pub(super) streams: Streams,
    /// My host's members, with ranks of their own.
    pub(super) shm: ShmFabric,
    /// Rank in the view, by rank on my host.
    pub(super) in_view: Vec<Rank>,
    /// Rank on my host, by rank in the view.
    pub(super) on_host: Vec<Option<Rank>>,
}

impl MixedFabric {
    /// The part that reaches my host's members.
    pub fn shm(&self) -> &ShmFabric {
        &self.shm
    }

    /// How far the link to a peer elsewhere has come; `None` for my host's.
    pub fn link(&self, peer: Rank) -> Option<LinkState> {
        self.streams.link(peer)
    }

    /// Those of them that are on my host, by their ranks there.
    fn host(&self, peers: &PeerSet) -> PeerSet {
        let on_host = |peer: Rank| *self.on_host.get(peer.index())?;
        peers.iter().filter_map(on_host).collect()
    }
}

impl Fabric for MixedFabric {
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
        self.shm.store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.shm.push(at, len, &self.host(to));
        self.streams.push(at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.shm.push_word(word, value, &self.host(to));
        self.streams.push_word(word, value, to);
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.shm.ring(&self.host(data), &self.host(acks));
        self.streams.ring(data, acks);
    }

    fn announce_sleep(&self, want: Want) {
        self.shm.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.shm.announce_awake();
    }

    fn nudge(&self) {
        self.shm.nudge();
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        match self.on_host[to.index()] {
            Some(to) => self.shm.acknowledge(word, value, to),
            None => {
                self.store(word, value);
                self.nudge();
            }
        }
    }

    fn poll(&self) -> Option<Failure> {
        let on_host = self.shm.poll().map(|failure| Failure {
            peer: self.in_view[failure.peer.index()],
            ..failure
        });
        on_host.or_else(|| self.streams.poll())
    }

    fn fence(&self, peer: Rank) {
        match self.on_host[peer.index()] {
            Some(peer) => self.shm.fence(peer),
            None => self.streams.fence(peer),
        }
    }

    fn counters(&self) -> FabricCounters {
        let (host, away) = (self.shm.counters(), self.streams.counters());
        FabricCounters {
            pushes: host.pushes + away.pushes,
            word_pushes: host.word_pushes + away.word_pushes,
            bytes_pushed: host.bytes_pushed + away.bytes_pushed,
            rings: host.rings + away.rings,
            sleeps: host.sleeps + away.sleeps,
            nudges: host.nudges + away.nudges,
        }
    }
}

impl Park for MixedFabric {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.shm.park(timeout)
    }
}
