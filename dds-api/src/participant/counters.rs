//! What a participant has done so far.

use spindle_dds_core::Counters;
use spindle_dds_transport::FabricCounters;
use spindle_dds_transport::hybrid::PeerPath;

use crate::driver::Session;
use crate::handle::Guid;

/// Another participant of the domain, and how samples go to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Which.
    pub guid: Guid,
    /// By shared memory, streams or RDMA; of the last with what has been done so far.
    pub way: PeerPath,
}

/// A snapshot of a participant's counters: of its engine and of the fabric below.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantCounters {
    /// Of the engine: messages sent, nulls, received, delivered; steps; batches.
    pub engine: Counters,
    /// Of the fabric, over all epochs: pushes, bytes, doorbells rung, sleeps.
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
            fabric: session.handle().traffic(),
            wake_ups: session.wake_ups(),
            view: session.control_queue().view().map_or(0, |view| view.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_dds_transport::RdmaCounters;

    use super::*;

    #[test]
    fn ways_are_told_in_json_and_come_back() {
        let check = |way: PeerPath, expected: &str| {
            let line = serde_json::to_string(&way).expect("JSON");
            assert_eq!(line, expected);
            let come: PeerPath = serde_json::from_str(&line).expect("a way");
            assert_eq!(come, way);
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
