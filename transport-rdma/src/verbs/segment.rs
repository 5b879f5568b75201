//! The data path of one segment over queue pairs, for those of its members that come by
//! them.
//!
//! It does not know how the process sleeps, nor how the others are reached.

use std::io;
use std::sync::Arc;

use super::link::Link;
use super::message::{Message, Place};
use super::poster::Kept;
use super::shared::Shared;
use super::sys::{Access, Memory};
use crate::counters::{PushCounters, SleepCounters};
use crate::fabric::{FabricCounters, WakeReason};
use crate::mapping::Mapping;
use crate::mem::Region;
use crate::peers::{PeerSet, Rank};
use crate::queue::{Own, Push};
use crate::segment::SegmentRequest;
use crate::shm::SetupError;
use crate::station_error::StationError;

/// What to look at when memory is not given.
const HINT: &str = "no memory to be registered with the RDMA device; look at ulimit -l";

/// The part of a segment that goes by RDMA: mine to those of its members that have a
/// queue pair. Dropped, it sends what was pushed, and tells them that it is over.
#[derive(Debug)]
pub(crate) struct Segment {
    shared: Arc<Shared>,
    me: Rank,
    own: Arc<Own>,
    /// By rank; none for those who are reached otherwise, or not.
    links: Vec<Option<Arc<Link>>>,
    copies: Vec<(Rank, Region)>,
    /// As `copies`.
    mappings: Vec<Arc<Mapping>>,
    pushes: PushCounters,
}

/// A member that comes by RDMA.
struct Member {
    rank: Rank,
    mapping: Arc<Mapping>,
    /// If it is connected: where it will write.
    reached: Option<(Arc<Link>, Memory)>,
}

impl Segment {
    pub(super) fn open(
        shared: &Arc<Shared>,
        request: &SegmentRequest,
        peers: &PeerSet,
        row: &Region,
    ) -> Result<Self, StationError> {
        let key = request.key;
        let mine = register(shared, row, Access::Source)?;
        let mine = Arc::new(mine);
        let theirs = request.peers().filter(|(rank, _)| peers.contains(*rank));
        let mut members = Vec::new();
        for (rank, id) in theirs {
            let len = Region::heap_len(request.row_lens[rank.index()]);
            let mapping = Mapping::shared(len).map_err(|errno| refused(len, errno.into()))?;
            let mapping = Arc::new(mapping);
            let link = shared.link(id);
            let reached = link.map(|link| {
                let copy = register(shared, &mapping.region(), Access::Target);
                copy.map(|copy| (link, copy))
            });
            members.push(Member {
                rank,
                mapping,
                reached: reached.transpose()?,
            });
        }
        let mut state = shared.state();
        let slot = state.admit(key);
        let slot = slot.map_err(|problem| StationError::segment(key, problem))?;
        shared.end_overdue(&state);
        let row = row.clone();
        let own = Arc::new(Own { slot, key, row });
        let mut links = vec![None; request.members.len()];
        let (mut copies, mut mappings) = (Vec::new(), Vec::new());
        let mut misfits = Vec::new();
        for member in members {
            copies.push((member.rank, member.mapping.region().read_only()));
            mappings.push(member.mapping);
            let Some((link, copy)) = member.reached else {
                continue;
            };
            if let Err(reason) = introduce(&link, &own, &mine, copy) {
                misfits.push((Arc::clone(&link), reason));
            }
            links[member.rank.index()] = Some(link);
        }
        drop(state);
        for (link, reason) in misfits {
            shared.fail(&link, reason);
        }
        for link in shared.links().iter() {
            shared.sent(link, link.outgoing.send(shared.is_asleep()));
        }
        Ok(Self {
            shared: Arc::clone(shared),
            me: request.me,
            own,
            links,
            copies,
            mappings,
            pushes: PushCounters::default(),
        })
    }

    /// Copies of the rows of those who come by RDMA, not writable.
    pub(crate) fn copies(&self) -> &[(Rank, Region)] {
        &self.copies
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
            self.shared.put(link, link.outgoing.put(push.clone()));
        }
        count
    }

    /// As [`Fabric::push`](crate::Fabric::push), to those of `to` that come by RDMA.
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

    /// Posts what was held back, and doorbells to those who sleep.
    pub(crate) fn wake(&self, data: &PeerSet, acks: &PeerSet) {
        for (ring, to) in [
            (WakeReason::Data, *data),
            (WakeReason::Acks, acks.without(data)),
        ] {
            for link in self.links(&to) {
                link.sleeper.note(ring);
                self.shared.ring_if_due(link);
            }
        }
        self.end_batch();
    }

    fn end_batch(&self) {
        for link in self.links.iter().flatten() {
            let sent = link.outgoing.end_batch(self.shared.is_asleep());
            self.shared.sent(link, sent);
        }
    }

    /// F6: nothing more of this peer is seen here. Does nothing for one that comes otherwise.
    pub(crate) fn fence(&self, peer: Rank) {
        let Some(at) = self.copies.iter().position(|(rank, _)| *rank == peer) else {
            return;
        };
        // What the peer writes goes on to the memory that was pinned, which nobody sees.
        if let Err(error) = self.mappings[at].freeze()
            && let Some(link) = &self.links[peer.index()]
        {
            // No memory for that: then the queue pair ends.
            link.close();
            let reason = format!("its row cannot be frozen: {error}");
            self.shared.fail(link, reason);
        }
    }

    /// Its pushes, and of the process the rings.
    pub(crate) fn counters(&self) -> FabricCounters {
        let woken = self.shared.woken.load(std::sync::atomic::Ordering::Relaxed);
        FabricCounters {
            peer_wakes: woken,
            ..self.pushes.read(&SleepCounters::default())
        }
    }
}

fn refused(wanted: usize, source: io::Error) -> StationError {
    StationError::System(SetupError::Memory {
        wanted,
        hint: HINT,
        source,
    })
}

fn register(shared: &Shared, region: &Region, access: Access) -> Result<Memory, StationError> {
    let registered = Memory::new(&shared.device.domain, region, access);
    registered.map_err(|source| refused(region.len(), source))
}

/// The peer may write to this copy, and my pushes to it have their place in the queue.
fn introduce(link: &Link, own: &Arc<Own>, row: &Arc<Memory>, copy: Memory) -> Result<(), String> {
    let key = own.key;
    let place = Place {
        to: copy.remote(),
        len: copy.region().len() as u64,
    };
    let mut poster = link.outgoing.poster();
    let Some(poster) = &mut *poster else {
        return Ok(());
    };
    let row = Arc::clone(row);
    poster.ledger.open(key, Kept { row, _copy: copy });
    poster.check(key)?;
    poster.express.push_back(Message::Open { key, place });
    let opened = link.outgoing.open(own);
    opened.map_err(|full| format!("it takes too little: {} records wait", full.waiting))
}

impl Drop for Segment {
    /// What was pushed is sent, as far as the peers take it.
    fn drop(&mut self) {
        self.shared.state().dismiss(self.own.key);
        for link in self.links.iter().flatten() {
            let shut = link.outgoing.shut(self.own.slot);
            self.shared.put(link, shut.map(|()| false));
        }
        self.end_batch();
        self.shared.state().return_slot(self.own.slot);
    }
}
