//! Stations over streams, within one process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use spindle_dds_transport::tcp::{Station, StationOptions, TcpSegment, local_group};
use spindle_dds_transport::{FailureCause, Rank, SegmentKey, SegmentRequest};

use crate::harness::{
    Actor, Harness, Outcome, Segments, Sleep, end_batch, park_for_a_while, run_threads,
};

/// Streams: a station for each member, all connected, with a control segment.
pub(crate) struct StreamGroup {
    fabrics: Vec<TcpSegment>,
    stations: Vec<Station>,
    row_len: usize,
    agreed: Mutex<BTreeMap<u32, (Vec<usize>, bool)>>,
}

impl StreamGroup {
    pub(crate) fn new(members: usize, row_len: usize) -> Self {
        let lens = vec![row_len; members];
        let (stations, fabrics) = local_group(&lens, &StationOptions::default()).expect("a group");
        Self {
            fabrics,
            stations,
            row_len,
            agreed: Mutex::default(),
        }
    }

    /// Whether nothing is on its way from one to another that could arrive.
    fn is_still(&self, from: usize, to: usize) -> bool {
        let (out, back) = (&self.stations[from], &self.stations[to]);
        let (Some(out), Some(back)) = (out.link(back.id()), back.link(out.id())) else {
            return true;
        };
        let through = out.waiting == 0 && out.sent == back.received;
        !out.sending || !back.receiving || back.blocked || through
    }
}

impl Harness for StreamGroup {
    type F = TcpSegment;

    fn fabric(&self, rank: usize) -> &TcpSegment {
        &self.fabrics[rank]
    }

    fn run(&self, actors: Vec<Actor<'_, TcpSegment>>) -> Outcome {
        run_threads(&self.fabrics, actors)
    }

    fn sleep(&self, rank: usize) -> Sleep {
        self.settle();
        park_for_a_while(&self.fabrics[rank])
    }

    fn settle(&self) {
        self.fabrics.iter().for_each(end_batch);
        let members = self.stations.len();
        for pair in 0..members * members {
            while !self.is_still(pair / members, pair % members) {
                thread::yield_now();
            }
        }
    }

    /// The kernel closes the streams of a process that ends.
    fn kill(&self, rank: usize) {
        for other in &self.stations {
            self.stations[rank].drop_peer(other.id());
        }
    }

    /// Nobody can tell a process that ended from one that closed its streams.
    fn is_death(&self, cause: &FailureCause) -> bool {
        matches!(cause, FailureCause::Unreachable(_))
    }

    fn rounds(&self) -> u64 {
        500
    }
}

impl Segments for StreamGroup {
    type Segment = u32;

    /// To be opened by each on its own.
    fn agree(&self, members: &[usize], control: bool) -> u32 {
        let mut agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = agreed.len() as u32;
        agreed.insert(lane, (members.to_vec(), control));
        lane
    }

    fn open(&self, lane: u32, rank: usize) -> TcpSegment {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let (members, control) = &agreed[&lane];
        let request = SegmentRequest {
            key: SegmentKey { epoch: 1, lane },
            members: members.iter().map(|&at| self.stations[at].id()).collect(),
            me: Rank(rank as u16),
            row_lens: vec![self.row_len; members.len()],
            control: *control,
        };
        let made = self.stations[members[rank]].segments(&[request]);
        made.expect("a segment").remove(0)
    }
}
