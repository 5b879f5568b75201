//! The data path: each call goes to the parts that reach the peers.

use core::time::Duration;
use std::sync::Arc;

use super::rdma::StationRdma;
use crate::fabric::news::{News, SeenNews};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{
    Fabric, FabricCounters, MessagePush, Park, ParkSlots, PeerFailure, WakeInterest, WakeReason,
};
use crate::memory::Region;
use crate::shm::ShmSegment;
use crate::station::segment::SegmentKey;
use crate::tcp::Streams;
use crate::verbs;

/// A [`Fabric`] over shared memory to the members on my host, and over RDMA or streams to all
/// others; made by a [`Station`](super::Station).
///
/// If all members are on my host, it is its [`ShmSegment`]. To other members, pushes are held
/// back until [`wake`](Fabric::wake), or until many wait for a peer. When it is dropped, it
/// sends what was pushed, and forgets its key: what arrives late for it is discarded.
#[derive(Debug)]
pub struct HybridSegment {
    /// The members on my host, with ranks of their own.
    pub(super) host: ShmSegment,
    /// Set if there are members on other hosts.
    pub(super) remote: Option<RemoteMembers>,
    /// Of the station; it announces the sleep of the process to peers by RDMA.
    pub(super) rdma: Option<Arc<StationRdma>>,
}

/// The additional state of a segment with members on other hosts.
#[derive(Debug)]
pub(super) struct RemoteMembers {
    pub(super) me: Rank,
    pub(super) streams: Streams,
    /// Set if there are members that are reached by RDMA.
    pub(super) verbs: Option<verbs::RdmaSegment>,
    /// By rank in the segment.
    pub(super) rows: Vec<Region>,
    /// Rank in the segment, by rank on my host.
    pub(super) whole: Vec<Rank>,
    /// Rank on my host, by rank in the segment.
    pub(super) on_host: Vec<Option<Rank>>,
}

impl RemoteMembers {
    /// The members of `peers` that are on my host, by their ranks there.
    fn local_ranks(&self, peers: &PeerSet) -> PeerSet {
        let on_host = |peer: Rank| *self.on_host.get(peer.index())?;
        peers.iter().filter_map(on_host).collect()
    }
}

impl HybridSegment {
    /// Sends my announcement to peers that cannot see it in shared memory.
    fn tell_rdma(&self) {
        if let Some(rdma) = &self.rdma {
            rdma.core().announce_sleep(self.host.sleep_word());
        }
    }

    /// Its key.
    pub fn key(&self) -> SegmentKey {
        self.host.key()
    }
}

impl Fabric for HybridSegment {
    #[inline]
    fn me(&self) -> Rank {
        match &self.remote {
            None => self.host.me(),
            Some(remote) => remote.me,
        }
    }

    fn members(&self) -> usize {
        match &self.remote {
            None => self.host.members(),
            Some(remote) => remote.rows.len(),
        }
    }

    #[inline]
    fn row(&self, of: Rank) -> &Region {
        match &self.remote {
            None => self.host.row(of),
            Some(remote) => &remote.rows[of.index()],
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
        let Some(remote) = &self.remote else {
            return self.host.push(at, len, to);
        };
        self.host.push(at, len, &remote.local_ranks(to));
        remote.streams.push(at, len, to);
        if let Some(verbs) = &remote.verbs {
            verbs.push(at, len, to);
        }
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        let Some(remote) = &self.remote else {
            return self.host.push_word(word, value, to);
        };
        self.host.push_word(word, value, &remote.local_ranks(to));
        remote.streams.push_word(word, value, to);
        if let Some(verbs) = &remote.verbs {
            verbs.push_word(word, value, to);
        }
    }

    #[inline]
    fn push_guarded(&self, ranges: &[(usize, usize)], word: usize, value: u64, to: &PeerSet) {
        if self.remote.is_none() {
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
        let Some(remote) = &self.remote else {
            return self.host.push_message(message, to, peers);
        };
        let local = remote.local_ranks(to);
        self.host.push_message(message, &local, local.len());
        remote.streams.push_message(message, to);
        if let Some(verbs) = &remote.verbs {
            let MessagePush {
                payload, header, ..
            } = *message;
            if payload.1 > 0 {
                verbs.push(payload.0, payload.1, to);
            }
            verbs.push(header, N * 8, to);
            verbs.push_word(message.guard, message.count, to);
        }
    }

    #[inline]
    fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        let Some(remote) = &self.remote else {
            return self.host.wake(peers, reason);
        };
        self.host.wake(&remote.local_ranks(peers), reason);
        remote.streams.wake(peers, reason);
        if let Some(verbs) = &remote.verbs {
            verbs.wake(peers, reason);
        }
    }

    fn shares_memory(&self) -> bool {
        self.remote.is_none()
    }

    fn would_wake(&self, peers: &PeerSet, reason: WakeReason) -> bool {
        match self.remote {
            None => self.host.would_wake(peers, reason),
            Some(_) => {
                self.wake(&PeerSet::EMPTY, reason);
                true
            }
        }
    }

    fn announce_sleep(&self, interest: WakeInterest) {
        self.host.announce_sleep(interest);
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
        let Some(remote) = &self.remote else {
            return self.host.acknowledge(word, value, to);
        };
        if let Some(to) = remote.on_host[to.index()] {
            return self.host.acknowledge(word, value, to);
        }
        self.store(word, value);
        // A thread that is awake steps, and pushes it with all else. By RDMA a step pushes it in any
        // case.
        if self.host.is_asleep() && !remote.streams.acknowledge(word, to) {
            self.host.nudge_sleeper();
        }
    }

    fn news(&self, seen: &mut SeenNews) -> Option<News> {
        // What a peer writes by RDMA, no thread of this process sees.
        if self.rdma.as_ref().is_some_and(|rdma| rdma.has_peers()) {
            seen.forget();
            return None;
        }
        self.host.news(seen)
    }

    fn news_bucket(&self) -> u8 {
        self.host.news_bucket()
    }

    fn poll(&self) -> Option<PeerFailure> {
        if let Some(rdma) = &self.rdma {
            rdma.core().poll();
        }
        let failure = self.host.poll();
        let Some(remote) = &self.remote else {
            return failure;
        };
        let on_host = failure.map(|failure| PeerFailure {
            peer: remote.whole[failure.peer.index()],
            ..failure
        });
        on_host.or_else(|| remote.streams.poll())
    }

    fn fence(&self, peer: Rank) {
        let Some(remote) = &self.remote else {
            return self.host.fence(peer);
        };
        match remote.on_host[peer.index()] {
            Some(peer) => self.host.fence(peer),
            None => {
                remote.streams.fence(peer);
                if let Some(verbs) = &remote.verbs {
                    verbs.fence(peer);
                }
            }
        }
    }

    fn counters(&self) -> FabricCounters {
        let host = self.host.counters();
        let Some(remote) = &self.remote else {
            return host;
        };
        let streams = remote.streams.counters();
        let verbs = remote.verbs.as_ref().map(verbs::RdmaSegment::counters);
        [Some(streams), verbs].into_iter().flatten().fold(host, sum)
    }
}

/// The sum of the counters of two parts.
fn sum(one: FabricCounters, other: FabricCounters) -> FabricCounters {
    FabricCounters {
        pushes: one.pushes + other.pushes,
        word_pushes: one.word_pushes + other.word_pushes,
        bytes_pushed: one.bytes_pushed + other.bytes_pushed,
        peer_wakes: one.peer_wakes + other.peer_wakes,
        wake_calls: one.wake_calls + other.wake_calls,
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
    fn set_polled(&self, is_polled: bool) {
        self.host.set_polled(is_polled);
    }

    #[inline]
    fn receive(&self) {
        self.host.receive();
    }

    fn note_doorbells(&self) {
        self.host.note_doorbells();
    }

    fn announce_follower_awake(&self) {
        self.host.announce_follower_awake();
        if let Some(rdma) = &self.rdma {
            rdma.core().announce_awake();
        }
    }

    fn announce_follower(&self, interest: WakeInterest) {
        self.host.announce_follower(interest);
        self.tell_rdma();
    }

    fn announce_poller(&self, interest: WakeInterest) -> bool {
        let announced = self.host.announce_poller(interest);
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
