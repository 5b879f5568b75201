//! The data path: each call goes to the part that reaches the peer.

use core::time::Duration;

use crate::fabric::{Fabric, FabricCounters, Failure, Park, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::segment::SegmentKey;
use crate::shm::ShmSegment;
use crate::tcp::Streams;

/// A [`Fabric`] over shared memory to the members of my host and over streams
/// to all others; made by [`Station`](super::Station).
#[derive(Debug)]
pub struct MixedSegment {
    pub(super) me: Rank,
    /// By rank in the whole.
    pub(super) rows: Vec<Region>,
    pub(super) streams: Streams,
    /// My host's members, with ranks of their own.
    pub(super) host: ShmSegment,
    /// Rank in the whole, by rank on my host.
    pub(super) whole: Vec<Rank>,
    /// Rank on my host, by rank in the whole.
    pub(super) on_host: Vec<Option<Rank>>,
}

impl MixedSegment {
    /// Which one it is.
    pub fn key(&self) -> SegmentKey {
        self.host.key()
    }

    /// Those of them that are on my host, by their ranks there.
    fn seats(&self, peers: &PeerSet) -> PeerSet {
        let on_host = |peer: Rank| *self.on_host.get(peer.index())?;
        peers.iter().filter_map(on_host).collect()
    }
}

impl Fabric for MixedSegment {
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
        self.host.store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.host.push(at, len, &self.seats(to));
        self.streams.push(at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.host.push_word(word, value, &self.seats(to));
        self.streams.push_word(word, value, to);
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.host.ring(&self.seats(data), &self.seats(acks));
        self.streams.ring(data, acks);
    }

    fn announce_sleep(&self, want: Want) {
        self.host.announce_sleep(want);
    }

    fn announce_awake(&self) {
        self.host.announce_awake();
    }

    fn nudge(&self) {
        self.host.nudge();
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        match self.on_host[to.index()] {
            Some(to) => self.host.acknowledge(word, value, to),
            None => {
                self.store(word, value);
                self.nudge();
            }
        }
    }

    fn poll(&self) -> Option<Failure> {
        let on_host = self.host.poll().map(|failure| Failure {
            peer: self.whole[failure.peer.index()],
            ..failure
        });
        on_host.or_else(|| self.streams.poll())
    }

    fn fence(&self, peer: Rank) {
        match self.on_host[peer.index()] {
            Some(peer) => self.host.fence(peer),
            None => self.streams.fence(peer),
        }
    }

    fn counters(&self) -> FabricCounters {
        let (host, away) = (self.host.counters(), self.streams.counters());
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

impl Park for MixedSegment {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.host.park(timeout)
    }
}
