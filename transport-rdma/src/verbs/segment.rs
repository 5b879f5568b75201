//! The data path of one segment over queue pairs, for the members that are reached by RDMA.
//!
//! It knows neither how the process sleeps nor how the other members are reached.

use std::io;
use std::sync::Arc;

use super::control_message::{ControlMessage, RemoteRow};
use super::link::RdmaLink;
use super::poster::SegmentMemory;
use super::shared::Shared;
use super::sys::{Access, Memory};
use crate::fabric::counters::{PushCounters, SleepCounters};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FabricCounters, WakeReason};
use crate::fork::OwnerProcess;
use crate::memory::Region;
use crate::memory::mapping::Mapping;
use crate::push_queue::{OwnSegment, Push};
use crate::shm::error::SetupError;
use crate::station::error::StationError;
use crate::station::segment::SegmentRequest;

/// What to check if memory cannot be registered.
const HINT: &str = "no memory to be registered with the RDMA device; look at ulimit -l";

/// The part of a segment that goes by RDMA, to the members that have a queue pair. When it is
/// dropped, it sends what was pushed, and ends the segment with them.
#[derive(Debug)]
pub(crate) struct RdmaSegment {
    shared: Arc<Shared>,
    /// A child of a fork does nothing at its end.
    owner: OwnerProcess,
    me: Rank,
    own: Arc<OwnSegment>,
    /// By rank; `None` for members on other paths or not connected.
    links: Vec<Option<Arc<RdmaLink>>>,
    copies: Vec<(Rank, Region)>,
    /// Parallel to `copies`.
    mappings: Vec<Arc<Mapping>>,
    pushes: PushCounters,
}

/// A member that is reached by RDMA.
struct Member {
    rank: Rank,
    mapping: Arc<Mapping>,
    /// Its link and the memory to which it will write, if it is connected.
    reached: Option<(Arc<RdmaLink>, Memory)>,
}

impl RdmaSegment {
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
        let slot = state.open_segment(key);
        let slot = slot.map_err(|problem| StationError::segment(key, problem))?;
        shared.end_overdue(&state);
        let row = row.clone();
        let own = Arc::new(OwnSegment { slot, key, row });
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
            owner: OwnerProcess::this(),
            me: request.me,
            own,
            links,
            copies,
            mappings,
            pushes: PushCounters::default(),
        })
    }

    /// Read-only copies of the rows of members that are reached by RDMA.
    pub(crate) fn copies(&self) -> &[(Rank, Region)] {
        &self.copies
    }

    fn links(&self, of: &PeerSet) -> impl Iterator<Item = &RdmaLink> {
        of.iter_behind(self.me)
            .filter_map(|peer| self.links.get(peer.index())?.as_deref())
    }

    /// Appends a record for each of `to`; returns their number.
    fn post(&self, push: &Push, to: &PeerSet) -> u64 {
        let mut count = 0;
        for link in self.links(to) {
            count += 1;
            self.shared.put(link, link.outgoing.put(push.clone()));
        }
        count
    }

    /// As [`Fabric::push`](crate::Fabric::push), to the members of `to` reached by RDMA.
    pub(crate) fn push(&self, at: usize, len: usize, to: &PeerSet) {
        let push = self.own.range(at, len);
        if len > 0 {
            let peers = self.post(&push, to);
            self.pushes.pushed(peers, len);
        }
    }

    /// Pushes the value; the caller has stored it.
    pub(crate) fn push_word(&self, at: usize, value: u64, to: &PeerSet) {
        let peers = self.post(&self.own.word(at, value), to);
        self.pushes.word_pushed(peers);
    }

    /// Posts what was held back, and doorbells to members that sleep.
    pub(crate) fn wake(&self, peers: &PeerSet, reason: WakeReason) {
        for link in self.links(peers) {
            link.sleep.note(reason);
            self.shared.wake_if_due(link);
        }
        self.end_batch();
    }

    fn end_batch(&self) {
        for link in self.links.iter().flatten() {
            let sent = link.outgoing.end_batch(self.shared.is_asleep());
            self.shared.sent(link, sent);
        }
    }

    /// F6: nothing more of this peer is seen here. No effect for members on other paths.
    pub(crate) fn fence(&self, peer: Rank) {
        let Some(at) = self.copies.iter().position(|(rank, _)| *rank == peer) else {
            return;
        };
        // The peer goes on writing to the pinned memory, which is mapped nowhere.
        if let Err(error) = self.mappings[at].freeze()
            && let Some(link) = &self.links[peer.index()]
        {
            // No memory for the private copy: the queue pair is closed instead.
            link.close();
            let reason = format!("its row cannot be frozen: {error}");
            self.shared.fail(link, reason);
        }
    }

    /// Pushes of this segment, and wake-ups of the process.
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

/// Opens the segment with one peer, which may write to `copy` from now on.
fn introduce(
    link: &RdmaLink,
    own: &Arc<OwnSegment>,
    row: &Arc<Memory>,
    copy: Memory,
) -> Result<(), String> {
    let key = own.key;
    let place = RemoteRow {
        to: copy.remote(),
        len: copy.region().len() as u64,
    };
    let mut poster = link.outgoing.poster();
    let Some(poster) = &mut *poster else {
        return Ok(());
    };
    let row = Arc::clone(row);
    poster
        .segments
        .open(key, SegmentMemory { row, _copy: copy });
    poster.check(key)?;
    poster
        .express
        .push_back(ControlMessage::Open { key, place });
    let opened = link.outgoing.open(own);
    opened.map_err(|full| format!("it takes too little: {} records wait", full.waiting))
}

impl Drop for RdmaSegment {
    /// Sends what was pushed, as far as the peers accept it.
    fn drop(&mut self) {
        if self.owner.is_inherited() {
            return;
        }
        self.shared.state().close_segment(self.own.key);
        for link in self.links.iter().flatten() {
            let shut = link.outgoing.shut(self.own.slot);
            self.shared.put(link, shut.map(|()| false));
        }
        self.end_batch();
        self.shared.state().return_slot(self.own.slot);
    }
}
