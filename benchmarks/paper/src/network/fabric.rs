//! One node's end of a segment.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::costs::Measure;
use super::timed_network::{Posted, TimedNetwork};
use spindle_dds_transport::{
    FABRIC_AREA, Fabric, FabricCounters, PeerFailure, PeerSet, Rank, Region, WakeInterest,
    WakeReason,
};

/// A [`Fabric`] over a segment of a [`TimedNetwork`]: a push takes time of its node, and lands
/// later.
pub(crate) struct TimedFabric {
    network: TimedNetwork,
    segment: usize,
    me: usize,
    rows: Vec<Region>,
    measure: Arc<dyn Measure>,
    pushes: AtomicU64,
    word_pushes: AtomicU64,
    bytes_pushed: AtomicU64,
    requests: AtomicU64,
    writes: AtomicU64,
    wire_bytes: AtomicU64,
    posting_ns: AtomicU64,
    looks: AtomicU64,
    rising_ns: AtomicU64,
}

/// The costs of a node for a segment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Posted pushes; a push to several peers counts once.
    pub(crate) requests: u64,
    /// Posted writes; a push counts for each of its peers.
    pub(crate) writes: u64,
    /// Bytes of these writes on the link.
    pub(crate) wire_bytes: u64,
    /// Time of posting them.
    pub(crate) posting_ns: u64,
    /// Time of reading rows of others.
    pub(crate) looking_ns: u64,
    /// Time of the work that raised words represent.
    pub(crate) rising_ns: u64,
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl TimedFabric {
    pub(super) fn new(
        network: TimedNetwork,
        (segment, me): (usize, usize),
        rows: Vec<Region>,
        measure: Arc<dyn Measure>,
    ) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            network,
            segment,
            me,
            rows,
            measure,
            pushes: zero(),
            word_pushes: zero(),
            bytes_pushed: zero(),
            requests: zero(),
            writes: zero(),
            wire_bytes: zero(),
            posting_ns: zero(),
            looks: zero(),
            rising_ns: zero(),
        }
    }

    /// The costs so far.
    pub(crate) fn spent(&self) -> Spent {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent {
            requests: load(&self.requests),
            writes: load(&self.writes),
            wire_bytes: load(&self.wire_bytes),
            posting_ns: load(&self.posting_ns),
            looking_ns: load(&self.looks) * self.network.costs().look_ns,
            rising_ns: load(&self.rising_ns),
        }
    }

    fn post(&self, at: usize, bytes: Arc<[u8]>, to: &PeerSet) {
        let end = (self.segment, self.me);
        let Posted {
            writes,
            wire_bytes,
            posting_ns,
        } = self.network.post(end, at, bytes, to);
        add(&self.requests, u64::from(writes > 0));
        add(&self.writes, writes);
        add(&self.wire_bytes, wire_bytes);
        add(&self.posting_ns, posting_ns);
    }

    fn check(&self, at: usize, len: usize) {
        let inside = at >= FABRIC_AREA && self.rows[self.me].contains(at, len);
        assert!(
            inside && at.is_multiple_of(8) && len.is_multiple_of(8),
            "push of {len} bytes at {at}: unaligned, outside the row or in the fabric's area"
        );
    }

    fn peers(&self, to: &PeerSet) -> u64 {
        let me: PeerSet = [self.me()].into_iter().collect();
        to.without(&me).len() as u64
    }
}

impl Fabric for TimedFabric {
    fn me(&self) -> Rank {
        Rank(self.me as u16)
    }

    fn members(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, of: Rank) -> &Region {
        if of.index() != self.me {
            self.looked(1);
        }
        &self.rows[of.index()]
    }

    fn looked(&self, words: usize) {
        add(&self.looks, words as u64);
        self.network.look(self.me, words as u64);
    }

    fn store(&self, word: usize, value: u64) {
        let row = &self.rows[self.me];
        let rise = value.saturating_sub(row.load(word));
        row.store(word, value);
        let ns = self.measure.rise(word, rise);
        if ns > 0 {
            add(&self.rising_ns, ns);
            self.network.spend(self.me, ns);
        }
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.check(at, len);
        if len == 0 {
            return;
        }
        let peers = self.peers(to);
        add(&self.pushes, peers);
        add(&self.bytes_pushed, peers * len as u64);
        let mut bytes = vec![0; len];
        self.rows[self.me].copy_out(at, &mut bytes);
        self.post(at, bytes.into(), to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.check(word, 8);
        self.store(word, value);
        let peers = self.peers(to);
        add(&self.word_pushes, peers);
        add(&self.bytes_pushed, peers * 8);
        self.post(word, Arc::new(value.to_le_bytes()), to);
    }

    /// Pushes are posted by their own calls, and no node sleeps.
    fn wake(&self, _: &PeerSet, _: WakeReason) {}

    fn announce_sleep(&self, _: WakeInterest) {}

    fn announce_awake(&self) {}

    fn nudge(&self) {}

    fn poll(&self) -> Option<PeerFailure> {
        None
    }

    fn fence(&self, peer: Rank) {
        self.network.fence(self.segment, self.me, peer.index());
    }

    fn counters(&self) -> FabricCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FabricCounters {
            pushes: load(&self.pushes),
            word_pushes: load(&self.word_pushes),
            bytes_pushed: load(&self.bytes_pushed),
            ..FabricCounters::default()
        }
    }
}

impl fmt::Debug for TimedFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedFabric")
            .field("segment", &self.segment)
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}
