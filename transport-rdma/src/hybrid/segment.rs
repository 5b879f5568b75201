//! The data path: each call goes to the parts that reach the peers.

use core::time::Duration;
use std::sync::Arc;

use super::rdma::Rdma;
use crate::fabric::{
    Fabric, FabricCounters, MessagePush, Park, ParkSlots, PeerFailure, WakeInterest,
};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::segment::SegmentKey;
use crate::shm::ShmSegment;
use crate::tcp::Streams;
use crate::verbs;

/// A [`Fabric`] over shared memory to the members of my host, and over RDMA or
/// streams to all others; made by [`Station`](super::Station).
///
/// Where all members are on my host, it is its [`ShmSegment`]. To the others, pushes
/// are held back until [`ring`](Fabric::ring), or until much waits for a peer.
/// Dropped, it sends what was pushed, and forgets its key: what comes late for it is
/// thrown away.
#[derive(Debug)]
pub struct HybridSegment {
    /// My host's members, with ranks of their own.
    pub(super) host: ShmSegment,
    /// If there are members elsewhere.
    pub(super) away: Option<Away>,
    /// Of the station: it hears of the sleep of its process.
    pub(super) rdma: Option<Arc<Rdma>>,
}

/// What there is more if not all members are on my host.
#[derive(Debug)]
pub(super) struct Away {
    pub(super) me: Rank,
    pub(super) streams: Streams,
    /// If there are members that are reached by RDMA.
    pub(super) verbs: Option<verbs::Segment>,
    /// By rank in the whole.
    pub(super) rows: Vec<Region>,
    /// Rank in the whole, by rank on my host.
    pub(super) whole: Vec<Rank>,
    /// Rank on my host, by rank in the whole.
    pub(super) on_host: Vec<Option<Rank>>,
}

impl Away {
    /// Those of them that are on my host, by their ranks there.
    fn seats(&self, peers: &PeerSet) -> PeerSet {
        let on_host = |peer: Rank| *self.on_host.get(peer.index())?;
        peers.iter().filter_map(on_host).collect()
    }
}

impl HybridSegment {
    /// What I have announced, to those who cannot see it.
    fn tell_rdma(&self) {
        if let Some(rdma) = &self.rdma {
            rdma.core().announce_sleep(self.host.sleep_word());
        }
    }

    /// Which one it is.
    pub fn key(&self) -> SegmentKey {
        self.host.key()
    }
}

impl Fabric for HybridSegment {
    #[inline]
    fn me(&self) -> Rank {
        match &self.away {
            None => self.host.me(),
            Some(away) => away.me,
        }
    }

    fn members(&self) -> usize {
        match &self.away {
            None => self.host.members(),
            Some(away) => away.rows.len(),
        }
    }

    #[inline]
    fn row(&self, of: Rank) -> &Region {
        match &self.away {
            None => self.host.row(of),
            Some(away) => &away.rows[of.index()],
        }
    }

    #[inline]
    fn store(&self, word: usize, value: u64) {
        self.host.store(word, value);
    }

    #[inline]
    fn store_words<const N: usize>(&self, at: usize, values: &[u64; N]) {
        self.host.store_words(at, values);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        let Some(away) = &self.away else {
            return self.host.push(at, len, to);
        };
        self.host.push(at, len, &away.seats(to));
        away.streams.push(at, len, to);
        if let Some(verbs) = &away.verbs {
            verbs.push(at, len, to);
        }
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        let Some(away) = &self.away else {
            return self.host.push_word(word, value, to);
        };
        self.host.push_word(word, value, &away.seats(to));
        away.streams.push_word(word, value, to);
        if let Some(verbs) = &away.verbs {
            verbs.push_word(word, value, to);
        }
    }

    #[inline]
    fn push_guarded(&self, ranges: &[(usize, usize)], word: usize, value: u64, to: &PeerSet) {
        if self.away.is_none() {
            return self.host.push_guarded(ranges, word, value, to);
        }
        for (at, len) in ranges {
            self.push(*at, *len, to);
        }
        self.push_word(word, value, to);
    }

    #[inline]
    fn push_message<const N: usize>(
        &self,
        message: &MessagePush<'_, N>,
        to: &PeerSet,
        peers: usize,
    ) {
        if self.away.is_none() {
            return self.host.push_message(message, to, peers);
        }
        self.store_words(message.header, message.words);
        if message.payload.1 > 0 {
            self.push(message.payload.0, message.payload.1, to);
        }
        self.push(message.header, N * 8, to);
        self.push_word(message.guard, message.count, to);
    }

    #[inline]
    fn wake(&self, data: &PeerSet, acks: &PeerSet) {
        let Some(away) = &self.away else {
            return self.host.wake(data, acks);
        };
        self.host.wake(&away.seats(data), &away.seats(acks));
        away.streams.wake(data, acks);
        if let Some(verbs) = &away.verbs {
            verbs.wake(data, acks);
        }
    }

    fn announce_sleep(&self, want: WakeInterest) {
        self.host.announce_sleep(want);
        self.tell_rdma();
    }

    fn announce_awake(&self) {
        self.host.announce_awake();
        if let Some(rdma) = &self.rdma {
            rdma.core().announce_awake();
        }
    }

    fn nudge(&self) {
        self.host.nudge();
    }

    #[inline]
    fn nudge_under_lock(&self) {
        self.host.nudge_under_lock();
    }

    fn acknowledge(&self, word: usize, value: u64, to: Rank) {
        let seat = match &self.away {
            None => Some(to),
            Some(away) => away.on_host[to.index()],
        };
        match seat {
            Some(to) => self.host.acknowledge(word, value, to),
            None => {
                self.store(word, value);
                self.host.nudge_sleeper();
            }
        }
    }

    fn poll(&self) -> Option<PeerFailure> {
        if let Some(rdma) = &self.rdma {
            rdma.core().poll();
        }
        let failure = self.host.poll();
        let Some(away) = &self.away else {
            return failure;
        };
        let on_host = failure.map(|failure| PeerFailure {
            peer: away.whole[failure.peer.index()],
            ..failure
        });
        on_host.or_else(|| away.streams.poll())
    }

    fn fence(&self, peer: Rank) {
        let Some(away) = &self.away else {
            return self.host.fence(peer);
        };
        match away.on_host[peer.index()] {
            Some(peer) => self.host.fence(peer),
            None => {
                away.streams.fence(peer);
                if let Some(verbs) = &away.verbs {
                    verbs.fence(peer);
                }
            }
        }
    }

    fn counters(&self) -> FabricCounters {
        let host = self.host.counters();
        let Some(away) = &self.away else {
            return host;
        };
        let streams = away.streams.counters();
        let verbs = away.verbs.as_ref().map(verbs::Segment::counters);
        [Some(streams), verbs].into_iter().flatten().fold(host, sum)
    }
}

/// Of parts of a segment.
fn sum(one: FabricCounters, other: FabricCounters) -> FabricCounters {
    FabricCounters {
        pushes: one.pushes + other.pushes,
        word_pushes: one.word_pushes + other.word_pushes,
        bytes_pushed: one.bytes_pushed + other.bytes_pushed,
        peer_wakes: one.peer_wakes + other.peer_wakes,
        sleeps: one.sleeps + other.sleeps,
        nudges: one.nudges + other.nudges,
    }
}

impl Park for HybridSegment {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.host.park(timeout)
    }
}

impl ParkSlots for HybridSegment {
    fn has_follower_slot(&self) -> bool {
        self.host.has_follower_slot()
    }

    fn note_doorbells(&self) {
        self.host.note_doorbells();
    }

    fn announce_follower(&self, want: WakeInterest) -> bool {
        let announced = self.host.announce_follower(want);
        if announced {
            self.tell_rdma();
        }
        announced
    }

    fn announce_poller(&self, want: WakeInterest) -> bool {
        let announced = self.host.announce_poller(want);
        if announced {
            self.tell_rdma();
        }
        announced
    }

    fn announce_leased(&self) {
        self.host.announce_leased();
        if let Some(rdma) = &self.rdma {
            rdma.core().announce_awake();
        }
    }

    fn park_follower(&self, timeout: Option<Duration>) -> bool {
        self.host.park_follower(timeout)
    }

    fn wake_poller(&self) {
        self.host.wake_poller();
    }
}
