//! Making segments: every member makes its own row of each, hands it to each
//! other member, and takes theirs; all segments of one call in one exchange.
//!
//! A peer that is lost or takes too long has rows of zeros, and is reported by
//! every control segment of the exchange that has it, whichever of its rows is
//! missing: who lacks one in a segment must not go on in the view.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::packet::Packet;
use super::segment::{MemberRow, ShmSegment};
use super::shared::Shared;
use super::state::{EarlyRow, Life, State};
use crate::fabric::FailureCause;
use crate::failures::{Control, Failures};
use crate::mapping::Mapping;
use crate::peers::{PeerSet, Rank};
use crate::segment::SegmentRequest;
use crate::shm::memory;
use crate::station_error::StationError;

/// Makes all of them, or none. See [`Station::segments`](super::Station::segments).
pub(super) fn segments(
    shared: &Arc<Shared>,
    requests: &[SegmentRequest],
    deadline: Instant,
) -> Result<Vec<ShmSegment>, StationError> {
    for request in requests {
        if let Some(problem) = request.problem(shared.id()) {
            return Err(StationError::segment(request.key, problem));
        }
    }
    let mut exchange = RowExchange::begin(shared, requests)?;
    exchange.run(deadline)?;
    exchange.end(deadline)
}

/// My own row of a segment, and what has come of the others'.
struct PendingSegment<'a> {
    request: &'a SegmentRequest,
    own: Arc<Mapping>,
    file: Arc<OwnedFd>,
    /// To whom it is on its way.
    sent: PeerSet,
    /// By rank.
    come: BTreeMap<Rank, (u32, EarlyRow)>,
    lost: PeerSet,
}

struct RowExchange<'a> {
    shared: &'a Arc<Shared>,
    pending: Vec<PendingSegment<'a>>,
    failed: BTreeMap<u128, FailureCause>,
    /// All segments are there: nothing is to be taken back.
    done: bool,
}

impl Drop for RowExchange<'_> {
    fn drop(&mut self) {
        if !self.done {
            let mut state = self.shared.state();
            self.pending
                .iter()
                .for_each(|side| state.forget(side.request.key));
        }
    }
}

impl<'a> RowExchange<'a> {
    fn begin(
        shared: &'a Arc<Shared>,
        requests: &'a [SegmentRequest],
    ) -> Result<Self, StationError> {
        let mut exchange = RowExchange {
            shared,
            pending: Vec::new(),
            failed: BTreeMap::new(),
            done: false,
        };
        for request in requests {
            if !shared.state().asked.insert(request.key) {
                let there = "it is there already, or asked for twice".to_owned();
                return Err(StationError::segment(request.key, there));
            }
            let made = memory::create_row(request.row_lens[request.me.index()]);
            let (own, file) = made.inspect_err(|_| shared.forget(request.key))?;
            exchange.pending.push(PendingSegment {
                request,
                own,
                file: Arc::new(file),
                sent: PeerSet::EMPTY,
                come: BTreeMap::new(),
                lost: PeerSet::EMPTY,
            });
        }
        Ok(exchange)
    }

    /// Until each row has come, or will not.
    fn run(&mut self, deadline: Instant) -> Result<(), StationError> {
        let shared = self.shared;
        let mut state = shared.state();
        loop {
            if state.stopped {
                return Err(StationError::Closed);
            }
            let (waits, sends) = self.advance(&mut state);
            if sends {
                shared.kick();
            }
            if !waits {
                return Ok(());
            }
            let in_time;
            (state, in_time) = shared.wait(state, deadline);
            if !in_time {
                self.call_off(state);
                return Ok(());
            }
        }
    }

    /// Whether some row is still to come, and whether something is to be sent.
    fn advance(&mut self, state: &mut State) -> (bool, bool) {
        let (mut waits, mut sends) = (false, false);
        for side in &mut self.pending {
            let request = side.request;
            for (rank, id) in request.peers() {
                sends |= side.send_to(rank, id, state, &mut self.failed);
                if side.lost.contains(rank) || side.come.contains_key(&rank) {
                    continue;
                }
                let Some(peer) = state.peers.get_mut(&id) else {
                    match state.absent.get(&id) {
                        Some(cause) => {
                            side.lost.insert(rank);
                            self.failed.entry(id).or_insert_with(|| cause.clone());
                        }
                        // It may call yet.
                        None => waits = true,
                    }
                    continue;
                };
                if let Some(row) = peer.rows.remove(&request.key) {
                    side.come.insert(rank, (peer.pid, row));
                } else if let Life::Closed(cause) = &peer.life {
                    side.lost.insert(rank);
                    self.failed.entry(id).or_insert_with(|| cause.clone());
                } else {
                    waits = true;
                }
            }
        }
        (waits, sends)
    }

    /// The time is over: who is missing stays away.
    fn call_off(&mut self, state: MutexGuard<'_, State>) {
        for side in &mut self.pending {
            for (rank, id) in side.request.peers() {
                if side.come.contains_key(&rank) || side.lost.contains(rank) {
                    continue;
                }
                side.lost.insert(rank);
                let reason = match state.peers.contains_key(&id) {
                    true => "it did not hand over its row of a segment in time",
                    false => "it is not connected, and did not call in time",
                };
                let cause = FailureCause::Unreachable(reason.into());
                self.failed.entry(id).or_insert(cause);
            }
        }
    }

    fn end(mut self, deadline: Instant) -> Result<Vec<ShmSegment>, StationError> {
        let mut rows = Vec::new();
        for side in &mut self.pending {
            rows.push(side.rows(self.shared, deadline, &mut self.failed)?);
        }
        let mut segments = Vec::new();
        let mut state = self.shared.state();
        for (side, mut rows) in self.pending.iter().zip(rows) {
            for (rank, id) in side.request.peers() {
                let peer = state.peers.get(&id);
                rows[rank.index()].wake_target = peer.map(|peer| Arc::clone(&peer.wake_target));
            }
            let request = side.request;
            let failures = request.control.then(|| self.register(request, &mut state));
            segments.push(ShmSegment::new(
                Arc::clone(self.shared),
                request.key,
                request.me,
                rows,
                failures,
            ));
        }
        drop(state);
        self.done = true;
        Ok(segments)
    }

    /// From here on it is told of failures; of those that there were, now.
    fn register(&self, request: &SegmentRequest, state: &mut State) -> Arc<Failures> {
        let failures = Arc::<Failures>::default();
        let mut control = Control::new(request.members.clone(), &failures);
        for (_, id) in request.peers() {
            // The kernel's word, if there is one by now, before what was missed.
            if let Some(cause) = state.fate_of(id).or_else(|| self.failed.get(&id)) {
                control.tell(id, cause);
            }
        }
        state.controls.push(control);
        failures
    }
}

impl PendingSegment<'_> {
    /// Hands over my row as soon as there is somebody to take it.
    fn send_to(
        &mut self,
        rank: Rank,
        id: u128,
        state: &mut State,
        failed: &mut BTreeMap<u128, FailureCause>,
    ) -> bool {
        if self.sent.contains(rank) {
            return false;
        }
        let Some(link) = state.link_of(id) else {
            return false;
        };
        self.sent.insert(rank);
        if link.is_full() {
            let waiting = format!("{} packets wait for it, which takes none", link.out.len());
            let cause = FailureCause::Unreachable(waiting);
            failed.entry(id).or_insert(cause);
            return false;
        }
        let key = self.request.key;
        let row = Packet::Row {
            key,
            rank: self.request.me.0,
            len: self.request.row_lens[self.request.me.index()] as u64,
        };
        link.put(row.write(), vec![Arc::clone(&self.file)]);
        true
    }

    /// Maps what has come; zeros for the rest. Memory is found for them until `deadline`, and
    /// not for longer: others begin when they have the rows, and wait for a sign of this member.
    fn rows(
        &mut self,
        shared: &Shared,
        deadline: Instant,
        failed: &mut BTreeMap<u128, FailureCause>,
    ) -> Result<Vec<MemberRow>, StationError> {
        let mut rows = Vec::new();
        for (rank, &len) in (0..).map(Rank).zip(&self.request.row_lens) {
            if rank == self.request.me {
                // It may take seconds where memory is cold: not before the others have the row,
                // which they wait for.
                shared.prefault(&self.own, rank, deadline);
                rows.push(MemberRow::real(Arc::clone(&self.own)));
                continue;
            }
            let come = self.come.remove(&rank);
            let mapped = come.map(|(pid, row)| self.open(rank, pid, row));
            let row = match mapped {
                Some(Ok(mapping)) => {
                    shared.prefault(&mapping, rank, deadline);
                    MemberRow::real(mapping)
                }
                Some(Err(reason)) => {
                    let id = self.request.members[rank.index()];
                    let cause = FailureCause::Unreachable(reason);
                    failed.entry(id).or_insert(cause);
                    MemberRow::zeros(memory::zero_row(len)?)
                }
                None => MemberRow::zeros(memory::zero_row(len)?),
            };
            rows.push(row);
        }
        Ok(rows)
    }

    fn open(&self, rank: Rank, pid: u32, row: EarlyRow) -> Result<Arc<Mapping>, String> {
        let ours = self.request.row_lens[rank.index()];
        if (row.rank, row.len) != (rank.0, ours as u64) {
            return Err(format!(
                "it made a row of {} bytes as rank {}, where one of {ours} bytes as rank {rank} was agreed",
                row.len, row.rank
            ));
        }
        memory::open_row(row.file, rank.0, pid, ours).map_err(|error| error.to_string())
    }
}
