//! One segment all of whose members are reached by streams.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::Shared;
use super::sleeper::Sleeper;
use super::streams::Streams;
use crate::fabric::{Fabric, FabricCounters, Failure, Park, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::segment::SegmentKey;

/// A [`Fabric`] over TCP streams; made by [`Station`](super::Station).
///
/// Pushes are held back until [`ring`](Fabric::ring), or until 64 KiB wait for a
/// peer. Dropped, it sends what was pushed, and forgets its key: what comes late
/// for it is thrown away. Without its station it stands still.
#[derive(Debug)]
pub struct TcpSegment {
    pub(super) me: Rank,
    /// By rank; mine is writable.
    pub(super) rows: Vec<Region>,
    pub(super) streams: Streams,
    pub(super) shared: Arc<Shared>,
    pub(super) sleeper: Arc<Sleeper>,
}

impl TcpSegment {
    /// Which one it is.
    pub fn key(&self) -> SegmentKey {
        self.streams.key()
    }
}

impl Fabric for TcpSegment {
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
        self.row(self.me).store(word, value);
    }

    fn push(&self, at: usize, len: usize, to: &PeerSet) {
        self.streams.push(at, len, to);
    }

    fn push_word(&self, word: usize, value: u64, to: &PeerSet) {
        self.store(word, value);
        self.streams.push_word(word, value, to);
    }

    fn ring(&self, data: &PeerSet, acks: &PeerSet) {
        self.streams.ring(data, acks);
    }

    fn announce_sleep(&self, want: Want) {
        self.sleeper.announce_sleep(want);
        self.shared.sleep.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn announce_awake(&self) {
        self.sleeper.announce_awake();
    }

    fn nudge(&self) {
        if self.sleeper.nudge() {
            self.shared.sleep.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(&self) -> Option<Failure> {
        self.streams.poll()
    }

    fn fence(&self, peer: Rank) {
        self.streams.fence(peer);
    }

    fn counters(&self) -> FabricCounters {
        self.streams.counters()
    }
}

impl Park for TcpSegment {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.sleeper.park(timeout)
    }
}
