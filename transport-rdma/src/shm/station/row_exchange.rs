//! Making segments: every member makes its own row of each, hands it to each other member,
//! and receives theirs; all segments of one call in one exchange.
//!
//! A peer that is lost or takes too long gets rows of zeros, and every control segment of
//! the exchange that has it as a member reports it, whichever of its rows is missing: a
//! member that lacks a row in one segment must not continue in the view. A row that has arrived
//! and cannot be used for want of memory or descriptors here fails the whole call: it is this
//! member that cannot go on, and not the row's owner.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::packet::{Packet, ROWS_MAX, RowHead};
use super::segment::{MemberRow, ShmSegment};
use super::shared::Shared;
use super::state::{EarlyRow, Life, State};
use crate::fabric::FailureCause;
use crate::fabric::failures::{Control, Failures};
use crate::fabric::peers::{PeerSet, Rank};
use crate::memory::mapping::Mapping;
use crate::shm::error::SetupError;
use crate::shm::{memory, socket};
use crate::station::error::StationError;
use crate::station::segment::SegmentRequest;

/// Makes all of the segments, or none. See [`Station::segments`](super::Station::segments).
pub(super) fn segments(
    shared: &Arc<Shared>,
    requests: &[SegmentRequest],
    deadline: Instant,
    watch: &mut dyn FnMut(),
) -> Result<Vec<ShmSegment>, StationError> {
    for request in requests {
        if let Some(problem) = request.problem(shared.id()) {
            return Err(StationError::segment(request.key, problem));
        }
    }
    let made = RowExchange::begin(shared, requests).and_then(|mut exchange| {
        exchange.run(deadline, watch)?;
        exchange.end(deadline)
    });
    if let Err(StationError::System(error)) = &made {
        tell_lack(shared, requests, &error.to_string());
    }
    made
}

/// Tells the other members what this one lacks: they need not wait for its rows, and know why.
fn tell_lack(shared: &Shared, requests: &[SegmentRequest], reason: &str) {
    let mut state = shared.state();
    for request in requests {
        let (key, reason) = (request.key, reason.to_owned());
        let packet = Packet::NoRow { key, reason }.write();
        for (_, id) in request.peers() {
            if let Some(connection) = state.connection_to(id)
                && !connection.is_full()
            {
                connection.put(packet.clone(), Vec::new());
            }
        }
    }
    drop(state);
    shared.kick();
}

/// Most files of rows that wait to be sent: each takes a descriptor.
const FILES_QUEUED_MAX: usize = 64;
const _: () = assert!(ROWS_MAX <= socket::FDS_MAX);
/// How often those that wait for members may look for these.
const WATCH_EVERY: Duration = Duration::from_millis(10);

/// A row that a peer has made.
struct ArrivedRow {
    /// The rank as which the peer made it.
    of: u16,
    len: u64,
    /// Or why it cannot be mapped.
    mapped: Result<Arc<Mapping>, SetupError>,
}

/// My row of a segment, with its file, for a member.
type ReadyRow = (RowHead, Arc<OwnedFd>);

/// A segment in the making: my own row, and the rows that have arrived.
struct PendingSegment<'a> {
    request: &'a SegmentRequest,
    /// My row, once it is made.
    own: Option<Arc<Mapping>>,
    /// Its file, until it is sent to all members.
    file: Option<Arc<OwnedFd>>,
    /// Members whose row is awaited, or that are to be sent mine.
    open: Vec<(Rank, u128)>,
    /// Members to which my row was sent.
    sent: PeerSet,
    /// Rows that have arrived, with the sender's pid.
    arrived: BTreeMap<Rank, (u32, ArrivedRow)>,
    lost: PeerSet,
}

struct RowExchange<'a> {
    shared: &'a Arc<Shared>,
    pending: Vec<PendingSegment<'a>>,
    failed: BTreeMap<u128, FailureCause>,
    /// All segments are made; dropping the exchange undoes nothing.
    done: bool,
}

impl Drop for RowExchange<'_> {
    fn drop(&mut self) {
        if !self.done {
            let mut state = self.shared.state();
            self.pending
                .iter()
                .for_each(|segment| state.forget(segment.request.key));
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
            exchange.pending.push(PendingSegment {
                request,
                own: None,
                file: None,
                open: request.peers().collect(),
                sent: PeerSet::EMPTY,
                arrived: BTreeMap::new(),
                lost: PeerSet::EMPTY,
            });
        }
        Ok(exchange)
    }

    /// Runs until each row has arrived or is given up.
    fn run(&mut self, deadline: Instant, watch: &mut dyn FnMut()) -> Result<(), StationError> {
        let shared = self.shared;
        let mut state = shared.state();
        let mut watch_at = Instant::now() + WATCH_EVERY;
        loop {
            if state.stopped {
                return Err(StationError::Closed);
            }
            let from = state.exchanges_from;
            let mut keys = self.pending.iter().map(|segment| segment.request.key);
            if let Some(key) = keys.find(|key| key.epoch < from) {
                return Err(StationError::segment(key, "it is not needed any more"));
            }
            let (waits, sends) = self.advance(&mut state)?;
            if sends {
                shared.kick();
            }
            if !waits {
                return Ok(());
            }
            if Instant::now() >= deadline {
                self.give_up_missing(state);
                return Ok(());
            }
            (state, _) = shared.wait(state, deadline.min(watch_at));
            // Rows that arrive end the wait, too: many, where there are many members.
            if Instant::now() >= watch_at {
                drop(state);
                watch();
                watch_at = Instant::now() + WATCH_EVERY;
                state = shared.state();
            }
        }
    }

    /// Returns whether something is still awaited, and whether something is to be sent.
    fn advance(&mut self, state: &mut State) -> Result<(bool, bool), StationError> {
        let mut waits = false;
        let mut ready = BTreeMap::new();
        let queued = self.pending.iter_mut().map(PendingSegment::is_queued);
        let mut queued = queued.filter(|it| *it).count();
        for segment in &mut self.pending {
            let is_made = segment.own.is_some();
            if !is_made && queued < FILES_QUEUED_MAX {
                segment.make()?;
            }
            waits |= segment.own.is_none();
            waits |= segment.advance(state, &mut ready, &mut self.failed);
            queued += usize::from(!is_made && segment.is_queued());
        }
        let mut sends = false;
        for (id, rows) in ready {
            sends |= self.send(state, id, &rows);
        }
        Ok((waits, sends))
    }

    /// Sends rows to a member, many in one packet. Returns whether there is something to send.
    fn send(&mut self, state: &mut State, id: u128, rows: &[ReadyRow]) -> bool {
        let Some(connection) = state.connection_to(id) else {
            return false;
        };
        if connection.is_full() {
            let waiting = connection.out.len();
            let cause = format!("{waiting} packets wait for it, which takes none");
            let cause = FailureCause::Unreachable(cause);
            self.failed.entry(id).or_insert(cause);
            return false;
        }
        for rows in rows.chunks(ROWS_MAX) {
            let heads = rows.iter().map(|(head, _)| *head).collect();
            let files = rows.iter().map(|(_, file)| Arc::clone(file)).collect();
            connection.put_rows(Packet::Rows(heads).write(), files, rows.len() as u64);
        }
        true
    }

    /// At the deadline: members whose rows are missing stay absent.
    fn give_up_missing(&mut self, state: MutexGuard<'_, State>) {
        for segment in &mut self.pending {
            for (rank, id) in segment.request.peers() {
                if segment.arrived.contains_key(&rank) || segment.lost.contains(rank) {
                    continue;
                }
                segment.lost.insert(rank);
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
        for segment in &mut self.pending {
            rows.push(segment.rows(self.shared, deadline, &mut self.failed)?);
        }
        let mut segments = Vec::new();
        let mut state = self.shared.state();
        for (segment, mut rows) in self.pending.iter().zip(rows) {
            for (rank, id) in segment.request.peers() {
                let peer = state.peers.get(&id);
                rows[rank.index()].wake_target = peer.map(|peer| Arc::clone(&peer.wake_target));
            }
            let request = segment.request;
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

    /// Registers a control segment for failures; those that happened are reported now.
    fn register(&self, request: &SegmentRequest, state: &mut State) -> Arc<Failures> {
        let failures = Arc::<Failures>::default();
        let mut control = Control::new(request.members.clone(), &failures);
        for (_, id) in request.peers() {
            // The kernel's report, if there is one by now, goes before a missing row.
            if let Some(cause) = state.fate_of(id).or_else(|| self.failed.get(&id)) {
                control.tell(id, cause);
            }
        }
        state.controls.push(control);
        failures
    }
}

impl PendingSegment<'_> {
    /// Makes my row.
    fn make(&mut self) -> Result<&Arc<Mapping>, StationError> {
        let (own, file) = memory::create_row(self.request.row_lens[self.request.me.index()])?;
        self.file = Some(Arc::new(file));
        Ok(self.own.insert(own))
    }

    /// Whether my row waits to be sent to a member that is connected. Closes its file once it is
    /// sent to all.
    fn is_queued(&mut self) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        let is_queued = Arc::strong_count(file) > 1;
        let is_sent =
            |(rank, _): &(Rank, u128)| self.sent.contains(*rank) || self.lost.contains(*rank);
        if !is_queued && self.open.iter().all(is_sent) {
            self.file = None;
        }
        is_queued
    }

    /// Takes rows that have arrived, and adds mine to what is `ready` for each member that is
    /// connected. Returns whether a row is still awaited.
    fn advance(
        &mut self,
        state: &mut State,
        ready: &mut BTreeMap<u128, Vec<ReadyRow>>,
        failed: &mut BTreeMap<u128, FailureCause>,
    ) -> bool {
        let mut waits = false;
        let mut open = core::mem::take(&mut self.open);
        open.retain(|&(rank, id)| {
            if let Some(file) = self.file.as_ref().filter(|_| !self.sent.contains(rank))
                && state.connection_to(id).is_some()
            {
                self.sent.insert(rank);
                let row = (self.head(), Arc::clone(file));
                ready.entry(id).or_default().push(row);
            }
            let is_awaited = self.awaits(rank, id, state, failed);
            waits |= is_awaited;
            is_awaited || !(self.sent.contains(rank) || self.lost.contains(rank))
        });
        self.open = open;
        waits
    }

    fn head(&self) -> RowHead {
        RowHead {
            key: self.request.key,
            rank: self.request.me.0,
            len: self.request.row_lens[self.request.me.index()] as u64,
        }
    }

    /// Takes a member's row if it has arrived. Returns whether it may still come.
    fn awaits(
        &mut self,
        rank: Rank,
        id: u128,
        state: &mut State,
        failed: &mut BTreeMap<u128, FailureCause>,
    ) -> bool {
        if self.lost.contains(rank) || self.arrived.contains_key(&rank) {
            return false;
        }
        let cause = match state.peers.get_mut(&id) {
            Some(peer) => match (peer.rows.remove(&self.request.key), &peer.life) {
                (
                    Some(EarlyRow::Made {
                        rank: of,
                        len,
                        mapped,
                    }),
                    _,
                ) => {
                    let row = ArrivedRow { of, len, mapped };
                    self.arrived.insert(rank, (peer.pid, row));
                    return false;
                }
                (Some(EarlyRow::Lacking(reason)), _) => FailureCause::Unreachable(reason),
                (None, Life::Closed(cause)) => cause.clone(),
                (None, _) => return true,
            },
            None => match state.absent.get(&id) {
                Some(cause) => cause.clone(),
                // It may still connect.
                None => return true,
            },
        };
        self.lost.insert(rank);
        failed.entry(id).or_insert(cause);
        false
    }

    /// Maps the rows that have arrived, and zeros for the rest. Prefaulting ends at
    /// `deadline`: the other members begin when they have the rows, and wait for this one's
    /// heartbeat.
    fn rows(
        &mut self,
        shared: &Shared,
        deadline: Instant,
        failed: &mut BTreeMap<u128, FailureCause>,
    ) -> Result<Vec<MemberRow>, StationError> {
        let mut rows = Vec::new();
        for (rank, &len) in (0..).map(Rank).zip(&self.request.row_lens) {
            if rank == self.request.me {
                // Prefaulting may take seconds where memory is cold, so it comes after the
                // row was sent, for which the others wait.
                let own = match &self.own {
                    Some(own) => Arc::clone(own),
                    // No member has it.
                    None => Arc::clone(self.make()?),
                };
                shared.prefault(&own, rank, deadline);
                rows.push(MemberRow::real(own));
                continue;
            }
            let arrived = self.arrived.remove(&rank);
            let mapped = arrived.map(|(pid, row)| self.checked(rank, pid, row));
            let row = match mapped {
                Some(Ok(mapping)) => {
                    shared.prefault(&mapping, rank, deadline);
                    MemberRow::real(mapping)
                }
                // This process lacks something: it cannot go on, and the peer can.
                Some(Err(error)) if error.is_local() => return Err(error.into()),
                Some(Err(error)) => {
                    let id = self.request.members[rank.index()];
                    let cause = FailureCause::Unreachable(error.to_string());
                    failed.entry(id).or_insert(cause);
                    MemberRow::zeros(memory::zero_row(len)?)
                }
                None => MemberRow::zeros(memory::zero_row(len)?),
            };
            rows.push(row);
        }
        Ok(rows)
    }

    /// A member's row, if it is the one that was agreed.
    fn checked(&self, rank: Rank, pid: u32, row: ArrivedRow) -> Result<Arc<Mapping>, SetupError> {
        let ours = self.request.row_lens[rank.index()];
        if (row.of, row.len) != (rank.0, ours as u64) {
            let (len, theirs) = (row.len, row.of);
            let what = format!(
                "it made a row of {len} bytes as rank {theirs}, where one of {ours} bytes as rank \
                 {rank} was agreed"
            );
            return Err(SetupError::ProtocolViolation { pid, what });
        }
        row.mapped
    }
}
