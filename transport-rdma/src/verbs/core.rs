//! A participant's queue pairs to its peers.

use ::core::sync::atomic::AtomicU64;
use ::core::time::Duration;
use std::net::IpAddr;

use super::error::RdmaError;
use super::segment::Segment;
use crate::fabric::Ring;
use crate::mem::Region;
use crate::peers::PeerSet;
use crate::rdma::{RdmaCounters, RdmaOptions};
use crate::segment::{SegmentKey, SegmentRequest};
use crate::station_error::StationError;

/// What the threads of RDMA tell those who use it. All are called without a lock held,
/// by any thread, and return soon.
pub(crate) struct Hooks {
    /// Takes the part of a peer that has rung: wakes the sleeper of this process, if it
    /// wants to know, and counts that before.
    pub(crate) wake: Box<dyn Fn(Ring, &AtomicU64) + Send + Sync>,
    /// The queue pair of a peer has failed, and why: once for each, never after `close`
    /// of it has returned. To be closed then.
    pub(crate) failed: Box<dyn Fn(u128, String) + Send + Sync>,
    /// The peer's hello has come over its queue pair: it works in that direction.
    pub(crate) proved: Box<dyn Fn(u128) + Send + Sync>,
}

/// A participant's queue pairs, one for each peer that comes by RDMA, and the thread
/// that serves them.
#[derive(Debug)]
pub(crate) struct Core;

#[expect(unused_variables, clippy::unused_self)]
impl Core {
    /// Chooses the device and tries it. `listen` is where the station listens: of several
    /// GIDs, that of this address is taken. A queue pair whose peer acknowledges nothing
    /// for about `patience` has failed.
    pub(crate) fn open(
        options: &RdmaOptions,
        listen: IpAddr,
        patience: Duration,
        hooks: Hooks,
    ) -> Result<Self, RdmaError> {
        Err(RdmaError::NoDevice)
    }

    /// The first word of two: a queue pair for this peer, and what it has to know of it,
    /// at most 128 bytes. One of the two offers, the other answers: in a connection, who
    /// was called and who has called. May block for some milliseconds.
    pub(crate) fn offer(&self, peer: u128) -> Result<Vec<u8>, String> {
        Err(String::new())
    }

    /// The second word: from the peer's offer on, what it writes arrives here. Gives what
    /// the peer has to [`accept`](Self::accept), at most 128 bytes. My hello is sent when
    /// the peer's has come. May block while the kernel finds the way to the peer.
    pub(crate) fn answer(&self, peer: u128, offer: &[u8]) -> Result<Vec<u8>, String> {
        Err(String::new())
    }

    /// The peer has answered my offer: the queue pair is up, and my hello is sent. May
    /// block while the kernel finds the way to the peer.
    pub(crate) fn accept(&self, peer: u128, answer: &[u8]) -> Result<(), String> {
        Err(String::new())
    }

    /// Whether the peer's hello has come.
    pub(crate) fn is_proved(&self, peer: u128) -> bool {
        false
    }

    /// Ends the queue pair of a peer, in whatever state. What it had open goes with it;
    /// `failed` is not called for it any more. Does nothing if there is none.
    pub(crate) fn close(&self, peer: u128) {}

    /// Opens a segment with those of its members that are `peers`, which come by RDMA.
    /// `row` is mine. Who is not connected, or has failed, has a copy of zeros.
    pub(crate) fn segment(
        &self,
        request: &SegmentRequest,
        peers: &PeerSet,
        row: &Region,
    ) -> Result<Segment, StationError> {
        Err(StationError::Closed)
    }

    /// Throws away what peers push for a segment that will not be made here. One that is
    /// dropped does it by itself.
    pub(crate) fn forget(&self, key: SegmentKey) {}

    /// My sleeper has announced itself with this word: the peers are told. Before the
    /// sleeper looks again.
    pub(crate) fn announce_sleep(&self, word: u64) {}

    /// My sleeper is awake. Nobody is told.
    pub(crate) fn announce_awake(&self) {}

    /// Upkeep: sends what could not be sent before, and doorbells to those that were
    /// seen to sleep since. Never blocks.
    pub(crate) fn poll(&self) {}

    /// What was done for a peer; `None` if it has no queue pair.
    pub(crate) fn counters(&self, peer: u128) -> Option<RdmaCounters> {
        None
    }

    /// Whether all that was pushed to the peer is done. For tests: it takes locks.
    pub(crate) fn is_still(&self, peer: u128) -> bool {
        true
    }
}
