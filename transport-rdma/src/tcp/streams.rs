//! The data path of one segment over streams, for those of its members that are
//! reached by them.
//!
//! It does not know how the process sleeps: a segment some of whose members are
//! reached by other means has one of these for the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::shared::{Link, Receiving, Shared};
use crate::counters::PushCounters;
use crate::fabric::{FabricCounters, FailureCause, PeerFailure, WakeReason};
use crate::failures::{Control, Failures};
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::queue::{Own, Push};
use crate::segment::SegmentRequest;
use crate::station_error::StationError;

/// Who is not reached by streams.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reach {
    /// Nothing of these is known here.
    pub(crate) elsewhere: PeerSet,
    /// What is pushed goes to these by other means; that they fail is told here.
    pub(crate) besides: PeerSet,
}

#[derive(Debug)]
pub(crate) struct Streams {
    shared: Arc<Shared>,
    me: Rank,
    own: Arc<Own>,
    /// By rank; none for myself and for those who are reached otherwise, or not.
    links: Vec<Option<Arc<Link>>>,
    receiving: Arc<Receiving>,
    /// Of a control segment.
    failures: Option<Arc<Failures>>,
    pushes: PushCounters,
}

impl Streams {
    /// Over these rows, by rank, of which mine and those of who is reached by streams
    /// are writable.
    pub(super) fn open(
        shared: &Arc<Shared>,
        request: &SegmentRequest,
        rows: &[Region],
        reach: &Reach,
    ) -> Result<Self, StationError> {
        let key = request.key;
        let receiving = Arc::new(Receiving {
            members: request.members.clone(),
            copies: rows.to_vec(),
            // A stream has nothing to say of rows that come by other means.
            fenced: (0..rows.len() as u16)
                .map(|rank| AtomicBool::new(reach.besides.contains(Rank(rank))))
                .collect(),
        });
        let mut state = shared.state();
        let Some(slot) = state.take_slot() else {
            let problem = "there are 65536 segments";
            return Err(StationError::segment(key, problem));
        };
        if !state.admit(key, Arc::clone(&receiving)) {
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
            if reach.elsewhere.contains(rank) {
                continue;
            }
            let peer = state.peers.get(&id);
            if !reach.besides.contains(rank) {
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
            me: request.me,
            own: Arc::new(Own { slot, key, row }),
            links,
            receiving,
            failures,
            pushes: PushCounters::default(),
        })
    }

    fn links(&self, of: &PeerSet) -> impl Iterator<Item = &Link> {
        of.iter_behind(self.me)
            .filter_map(|peer| self.links.get(peer.index())?.as_deref())
    }

    /// Appends a record for each; returns for how many.
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

    /// Sends the value; whoever calls has stored it.
    pub(crate) fn push_word(&self, at: usize, value: u64, to: &PeerSet) {
        let peers = self.post(&self.own.word(at, value), to);
        self.pushes.word_pushed(peers);
    }

    /// Sends rings behind the data, and all that was held back for members of
    /// this segment.
    pub(crate) fn wake(&self, data: &PeerSet, acks: &PeerSet) {
        for (ring, to) in [
            (WakeReason::Data, *data),
            (WakeReason::Acks, acks.without(data)),
        ] {
            for link in self.links(&to) {
                let put = link.outgoing.put_wake(ring);
                self.shared.put(link, put.map(|()| false));
            }
        }
        self.end_batch();
    }

    fn end_batch(&self) {
        for link in self.links.iter().flatten() {
            self.shared.sent(link, link.outgoing.end_batch());
        }
    }

    pub(crate) fn poll(&self) -> Option<PeerFailure> {
        self.failures.as_ref()?.take()
    }

    pub(crate) fn fence(&self, peer: Rank) {
        if let Some(link) = &self.links[peer.index()] {
            // Whoever opens the segment from now on sees it; who has, is told.
            self.receiving.fenced[peer.index()].store(true, Ordering::Release);
            link.incoming.dismiss(self.own.key);
        }
    }

    pub(crate) fn counters(&self) -> FabricCounters {
        self.pushes.read(&self.shared.sleep)
    }
}

impl Drop for Streams {
    /// What was pushed is sent, as far as the streams take it.
    fn drop(&mut self) {
        self.shared.state().dismiss(self.own.key);
        for link in self.links.iter().flatten() {
            let shut = link.outgoing.shut(self.own.slot);
            self.shared.put(link, shut.map(|()| false));
            link.incoming.dismiss(self.own.key);
        }
        self.end_batch();
        self.shared.state().return_slot(self.own.slot);
        // Somebody's stream may wait for it to be opened.
        self.shared.kick();
    }
}
