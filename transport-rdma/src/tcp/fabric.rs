//! The fabric over streams: all peers are reached by them.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::links::{LinkError, Links, TcpOptions};
use super::sleeper::Sleeper;
use super::streams::{LinkState, Streams};
use crate::fabric::{Fabric, FabricCounters, Failure, Park, Ring, Want};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// A [`Fabric`] over TCP streams; made from [`Links`](super::Links).
///
/// Pushes are held back until [`ring`](Fabric::ring), or until 64 KiB wait.
/// Dropping it ends the streams; what they do not take at once is lost.
#[derive(Debug)]
pub struct TcpFabric {
    me: Rank,
    /// By rank; mine is writable.
    rows: Vec<Region>,
    sleeper: Arc<Sleeper>,
    streams: Streams,
}

impl TcpFabric {
    /// Over zeroed rows of these, all of which are writable.
    pub(super) fn start(
        links: Links,
        mut rows: Vec<Region>,
        options: &TcpOptions,
    ) -> Result<Self, LinkError> {
        let me = links.me();
        let mine = rows[me.index()].clone();
        let sleeper = Arc::new(Sleeper::new(mine));
        let woken = Arc::clone(&sleeper);
        let wake = Box::new(move |ring| woken.wake(ring));
        let streams = links.start(&rows, options, wake)?;
        for (rank, row) in rows.iter_mut().enumerate() {
            if rank != me.index() {
                *row = row.read_only();
            }
        }
        Ok(Self {
            me,
            rows,
            sleeper,
            streams,
        })
    }

    /// How far the link to a peer has come; `None` for myself.
    pub fn link(&self, peer: Rank) -> Option<LinkState> {
        self.streams.link(peer)
    }
}

impl Fabric for TcpFabric {
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
        self.streams.sleep().sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn announce_awake(&self) {
        self.sleeper.announce_awake();
    }

    fn nudge(&self) {
        if self.sleeper.wake(Ring::Data) {
            self.streams.sleep().nudges.fetch_add(1, Ordering::Relaxed);
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

impl Park for TcpFabric {
    fn park(&self, timeout: Option<Duration>) -> bool {
        self.sleeper.park(timeout)
    }
}
