//! Counters of a participant, and its peers.

use spindle_dds_core::Counters;
use spindle_dds_transport::hybrid::PeerPath;
use spindle_dds_transport::tcp::StreamCalls;
use spindle_dds_transport::{FabricCounters, StationTraffic};

use crate::driver::Session;
use crate::handle::Guid;
use crate::history::{LogCounters, LogService};

/// Another participant of the domain, and the path of samples to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The GUID of the participant.
    pub guid: Guid,
    /// Shared memory, streams (TCP) or RDMA, the latter with its counters.
    pub path: PeerPath,
    /// Whether what goes to it over the network is encrypted. False on one host, and by RDMA.
    pub encrypted: bool,
}

/// A snapshot of a participant's counters: of its engine, of the fabric below, and of its logs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantCounters {
    /// Counters of the engine: messages sent, nulls, received, delivered; steps; batches.
    pub engine: Counters,
    /// Counters of the fabric, over all subgroups: pushes, bytes, doorbells, sleeps.
    pub fabric: FabricCounters,
    /// What was sent to other participants of the host beside samples: messages, and rows of
    /// segments.
    pub station: StationTraffic,
    /// System calls of the streams (TCP) to participants of other hosts, and their bytes.
    pub streams: StreamCalls,
    /// What it has written to logs.
    pub logs: LogCounters,
    /// How often the polling thread woke up.
    pub wake_ups: u64,
    /// How often a doorbell woke a thread that sleeps for the participant, and its first step
    /// found nothing to do.
    pub wakes_without_work: u64,
    /// Number of the current view. It rises when a member joins, leaves or fails, and when
    /// endpoints are created or deleted.
    pub view: u64,
}

impl ParticipantCounters {
    pub(super) fn of(session: &Session, logs: &LogService) -> Self {
        Self {
            engine: session.handle().counters(),
            fabric: session.handle().traffic(),
            station: session.control_queue().station_traffic(),
            streams: session.control_queue().stream_calls(),
            logs: logs.counters(),
            wake_ups: session.wake_ups(),
            wakes_without_work: session.wakes_without_work(),
            view: session.control_queue().view().map_or(0, |view| view.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_transport::RdmaCounters;

    use super::*;

    #[test]
    fn peer_paths_survive_json() {
        let check = |path: PeerPath, expected: &str| {
            let line = serde_json::to_string(&path).expect("JSON");
            assert_eq!(line, expected);
            let read: PeerPath = serde_json::from_str(&line).expect("a path");
            assert_eq!(read, path);
        };
        check(PeerPath::SharedMemory, r#"{"way":"shm"}"#);
        check(PeerPath::Stream, r#"{"way":"tcp"}"#);
        let mut counters = RdmaCounters {
            work_requests: 7,
            sleep_words: 2,
            ..RdmaCounters::default()
        };
        counters.batches[2] = 1;
        let by_rdma = r#"{"way":"rdma","rdma":{"work_requests":7,"bytes":0,"completions":0,"chains":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"batches":[0,0,1,0,0,0],"sleep_words":2,"doorbells_sent":0,"doorbells_heard":0,"doorbells_slept_on":0,"slot_waits":0}}"#;
        check(PeerPath::Rdma(Box::new(counters)), by_rdma);
    }
}
