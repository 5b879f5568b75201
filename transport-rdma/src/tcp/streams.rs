//! The data path of one segment over streams, for the members that are reached over them.
//!
//! It does not know how the process sleeps: a segment that has members on other paths, too,
//! has one of these for the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::shared::{IncomingSegment, Shared, StreamLink};
use crate::fabric::counters::PushCounters;
use crate::fabric::failures::{Control, Failures};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FabricCounters, FailureCause, MessagePush, PeerFailure, WakeReason};
use crate::fork::OwnerProcess;
use crate::memory::Region;
use crate::push_queue::{OwnSegment, Push};
use crate::station::error::StationError;
use crate::station::segment::SegmentRequest;

/// Members that are not reached by streams.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamReach {
    /// Members on this host: nothing is known of them here.
    pub(crate) not_by_network: PeerSet,
    /// Members that pushes reach by RDMA; their failures are reported here.
    pub(crate) by_rdma: PeerSet,
}

#[derive(Debug)]
pub(crate) struct Streams {
    shared: Arc<Shared>,
    /// A child of a fork does nothing at its end.
    owner: OwnerProcess,
    me: Rank,
    own: Arc<OwnSegment>,
    /// By rank; `None` for myself and for members on other paths or not connected.
    links: Vec<Option<Arc<StreamLink>>>,
    incoming_segment: Arc<IncomingSegment>,
    /// Of a control segment.
    failures: Option<Arc<Failures>>,
    pushes: PushCounters,
}

impl Streams {
    /// Opens the segment over these rows, by rank; mine and those of members reached by
    /// streams are writable.
    pub(super) fn open(
        shared: &Arc<Shared>,
        request: &SegmentRequest,
        rows: &[Region],
        reach: &StreamReach,
    ) -> Result<Self, StationError> {
        let key = request.key;
        let incoming_segment = Arc::new(IncomingSegment {
            members: request.members.clone(),
            copies: rows.to_vec(),
            // Streams do not write rows that come by RDMA.
            fenced: (0..rows.len() as u16)
                .map(|rank| AtomicBool::new(reach.by_rdma.contains(Rank(rank))))
                .collect(),
        });
        let mut state = shared.state();
        let Some(slot) = state.take_slot() else {
            let problem = "there are 65536 segments";
            return Err(StationError::segment(key, problem));
        };
        if !state.open_segment(key, Arc::clone(&incoming_segment)) {
            state.return_slot(slot);
            let problem = "it is there already, or it is over";
            return Err(StationError::segment(key, problem));
        }
        let mut links = vec![None; rows.len()];
        let failures = request.control.then(Arc::<Failures>::default);
        let mut control = failures
            .as_ref()
            .map(|failures| Control::new(request.members.clone(), failures));
        for (rank, id) in request.peers() {
            if reach.not_by_network.contains(rank) {
                continue;
            }
            let peer = state.peers.get(&id);
            if !reach.by_rdma.contains(rank) {
                links[rank.index()] = peer.map(|peer| Arc::clone(&peer.link));
            }
            let fate = match peer {
                Some(peer) => peer.fate.clone(),
                None => Some(FailureCause::Unreachable("it is not connected".into())),
            };
            if let (Some(control), Some(cause)) = (&mut control, fate) {
                control.tell(id, &cause);
            }
        }
        state.controls.extend(control);
        drop(state);
        let row = rows[request.me.index()].clone();
        Ok(Self {
            shared: Arc::clone(shared),
            owner: OwnerProcess::this(),
            me: request.me,
            own: Arc::new(OwnSegment { slot, key, row }),
            links,
            incoming_segment,
            failures,
            pushes: PushCounters::default(),
        })
    }

    fn links(&self, of: &PeerSet) -> impl Iterator<Item = &StreamLink> {
        of.iter_behind(self.me)
            .filter_map(|peer| self.links.get(peer.index())?.as_deref())
    }

    /// Appends a record for each of `to`; returns their number.
    fn post(&self, push: &Push, to: &PeerSet) -> u64 {
        let mut count = 0;
        for link in self.links(to) {
            count += 1;
            let put = link.outgoing.put_in(&self.own, push.clone());
            self.shared.put(link, put);
        }
        count
    }

    pub(crate) fn push(&self, at: usize, len: usize, to: &PeerSet) {
        let push = self.own.range(at, len);
        if len > 0 {
            let peers = self.post(&push, to);
            self.pushes.pushed(peers, len);
        }
    }

    /// Pushes a message; the caller has stored its header.
    pub(crate) fn push_message<const N: usize>(&self, message: &MessagePush<'_, N>, to: &PeerSet) {
        let guard = (message.guard, message.count);
        let header = (message.header, N * 8);
        let push = self.own.message(message.payload, header, guard);
        let peers = self.post(&push, to);
        self.pushes
            .pushed_all(peers, message.pushes() - 1, message.bytes());
    }

    /// Pushes the value; the caller has stored it.
    pub(crate) fn push_word(&self, at: usize, value: u64, to: &PeerSet) {
        let peers = self.post(&self.own.word(at, value), to);
        self.pushes.word_pushed(peers);
    }

    /// Sends wake-ups behind the data, and all that was held back for members of this
    /// segment.
    pub(crate) fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        for link in self.links(peers) {
            let put = link.outgoing.put_wake(reason);
            self.shared.put(link, put.map(|()| false));
        }
        self.end_batch();
    }

    fn end_batch(&self) {
        for link in self.links.iter().flatten() {
            self.shared.end_batch(link);
        }
    }

    pub(crate) fn poll(&self) -> Option<PeerFailure> {
        self.failures.as_ref()?.take()
    }

    pub(crate) fn fence(&self, peer: Rank) {
        if let Some(link) = &self.links[peer.index()] {
            // Seen by a peer that opens the segment later; the decoder is told below.
            self.incoming_segment.fenced[peer.index()].store(true, Ordering::Release);
            link.incoming.close_segment(self.own.key);
        }
    }

    pub(crate) fn counters(&self) -> FabricCounters {
        self.pushes.read(&self.shared.sleep)
    }
}

impl Drop for Streams {
    /// Sends what was pushed, as far as the streams accept it.
    fn drop(&mut self) {
        if self.owner.is_inherited() {
            return;
        }
        self.shared.state().close_segment(self.own.key);
        for link in self.links.iter().flatten() {
            let shut = link.outgoing.shut(self.own.slot);
            self.shared.put(link, shut.map(|()| false));
            link.incoming.close_segment(self.own.key);
        }
        self.end_batch();
        self.shared.state().return_slot(self.own.slot);
        // A peer's stream may wait for this segment to be opened.
        self.shared.kick();
    }
}
