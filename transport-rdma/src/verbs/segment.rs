//! The data path of one segment over queue pairs.

use crate::fabric::FabricCounters;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};

/// The part of a segment that goes by RDMA: mine to those of its members that have a
/// queue pair. Dropped, it sends what was pushed, and tells them that it is over.
#[derive(Debug)]
pub(crate) struct Segment;

#[expect(unused_variables, clippy::unused_self)]
impl Segment {
    /// Copies of the rows of those who come by RDMA, not writable.
    pub(crate) fn copies(&self) -> &[(Rank, Region)] {
        &[]
    }

    /// As [`Fabric::push`](crate::Fabric::push), to those of `to` that come by RDMA.
    pub(crate) fn push(&self, at: usize, len: usize, to: &PeerSet) {}

    /// Sends the value; whoever calls has stored it.
    pub(crate) fn push_word(&self, at: usize, value: u64, to: &PeerSet) {}

    /// Posts what was held back, and doorbells to those who sleep.
    pub(crate) fn ring(&self, data: &PeerSet, acks: &PeerSet) {}

    /// F6: nothing more of this peer is seen here. Does nothing for one that comes otherwise.
    pub(crate) fn fence(&self, peer: Rank) {}

    /// Its pushes, and of the process the rings.
    pub(crate) fn counters(&self) -> FabricCounters {
        FabricCounters::default()
    }
}
