//! What a participant has done so far.

use spindle_dds_core::Counters;
use spindle_dds_transport::FabricCounters;
use spindle_dds_transport::mixed::PeerWay;

use crate::driver::Session;
use crate::handle::Guid;

/// Another participant of the domain, and how samples go to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Which.
    pub guid: Guid,
    /// By shared memory, streams or RDMA; of the last with what has been done so far.
    pub way: PeerWay,
}

/// A snapshot of a participant's counters: of its engine and of the fabric below.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantCounters {
    /// Of the engine: messages sent, nulls, received, delivered; steps; batches.
    pub engine: Counters,
    /// Of the fabric, over all lanes: pushes, bytes, doorbells rung, sleeps.
    pub fabric: FabricCounters,
    /// Times that the polling thread woke up.
    pub wake_ups: u64,
    /// Number of the view that began last: it rises whenever somebody joins, leaves or
    /// fails, and when endpoints come and go.
    pub view: u64,
}

impl ParticipantCounters {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            engine: session.handle().counters(),
            fabric: session.traffic(),
            wake_ups: session.wake_ups(),
            view: session.desk().view().map_or(0, |view| view.id),
        }
    }
}
