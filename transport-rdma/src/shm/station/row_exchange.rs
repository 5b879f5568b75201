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

use rustix::io::Errno;

use super::packet::Packet;
use super::segment::{MemberRow, ShmSegment};
use super::shared::Shared;
use super::state::{EarlyRow, Life, State};
use crate::fabric::FailureCause;
use crate::fabric::failures::{Control, Failures};
use crate::fabric::peers::{PeerSet, Rank};
use crate::memory::mapping::Mapping;
use crate::shm::error::SetupError;
use crate::shm::memory;
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

/// How often those that wait for members may look for these.
const WATCH_EVERY: Duration = Duration::from_millis(10);

/// A row that a peer has made.
struct ArrivedRow {
    /// The rank as which the peer made it.
    of: u16,
    len: u64,
    /// `None` if this process had no descriptor left for it.
    file: Option<OwnedFd>,
}

/// A segment in the making: my own row, and the rows that have arrived.
struct PendingSegment<'a> {
    request: &'a SegmentRequest,
    own: Arc<Mapping>,
    file: Arc<OwnedFd>,
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
            let made = memory::create_row(request.row_lens[request.me.index()]);
            let (own, file) = made.inspect_err(|_| shared.forget(request.key))?;
            exchange.pending.push(PendingSegment {
                request,
                own,
                file: Arc::new(file),
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
        loop {
            if state.stopped {
                return Err(StationError::Closed);
            }
            let from = state.exchanges_from;
            let mut keys = self.pending.iter().map(|segment| segment.request.key);
            if let Some(key) = keys.find(|key| key.epoch < from) {
                return Err(StationError::segment(key, "it is not needed any more"));
            }
            let (waits, sends) = self.advance(&mut state);
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
            (state, _) = shared.wait(state, deadline.min(Instant::now() + WATCH_EVERY));
            drop(state);
            watch();
            state = shared.state();
        }
    }

    /// Returns whether some row is still awaited, and whether something is to be sent.
    fn advance(&mut self, state: &mut State) -> (bool, bool) {
        let (mut waits, mut sends) = (false, false);
        for segment in &mut self.pending {
            let request = segment.request;
            for (rank, id) in request.peers() {
                sends |= segment.send_to(rank, id, state, &mut self.failed);
                if segment.lost.contains(rank) || segment.arrived.contains_key(&rank) {
                    continue;
                }
                let Some(peer) = state.peers.get_mut(&id) else {
                    match state.absent.get(&id) {
                        Some(cause) => {
                            segment.lost.insert(rank);
                            self.failed.entry(id).or_insert_with(|| cause.clone());
                        }
                        // It may still connect.
                        None => waits = true,
                    }
                    continue;
                };
                if let Some(row) = peer.rows.remove(&request.key) {
                    match row {
                        EarlyRow::Made {
                            rank: of,
                            len,
                            file,
                        } => {
                            let row = ArrivedRow { of, len, file };
                            segment.arrived.insert(rank, (peer.pid, row));
                        }
                        EarlyRow::Lacking(reason) => {
                            segment.lost.insert(rank);
                            let cause = FailureCause::Unreachable(reason);
                            self.failed.entry(id).or_insert(cause);
                        }
                    }
                } else if let Life::Closed(cause) = &peer.life {
                    segment.lost.insert(rank);
                    self.failed.entry(id).or_insert_with(|| cause.clone());
                } else {
                    waits = true;
                }
            }
        }
        (waits, sends)
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
    /// Sends my row as soon as the member is connected.
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
        let Some(connection) = state.connection_to(id) else {
            return false;
        };
        self.sent.insert(rank);
        if connection.is_full() {
            let waiting = format!(
                "{} packets wait for it, which takes none",
                connection.out.len()
            );
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
        connection.put(row.write(), vec![Arc::clone(&self.file)]);
        true
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
                shared.prefault(&self.own, rank, deadline);
                rows.push(MemberRow::real(Arc::clone(&self.own)));
                continue;
            }
            let arrived = self.arrived.remove(&rank);
            let mapped = arrived.map(|(pid, row)| self.open(rank, pid, row));
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

    fn open(&self, rank: Rank, pid: u32, row: ArrivedRow) -> Result<Arc<Mapping>, SetupError> {
        let ours = self.request.row_lens[rank.index()];
        if (row.of, row.len) != (rank.0, ours as u64) {
            let (len, theirs) = (row.len, row.of);
            let what = format!(
                "it made a row of {len} bytes as rank {theirs}, where one of {ours} bytes as rank \
                 {rank} was agreed"
            );
            return Err(SetupError::ProtocolViolation { pid, what });
        }
        let file = row.file.ok_or_else(|| {
            SetupError::system("receiving the row of a member (ulimit -n)")(Errno::MFILE)
        })?;
        memory::open_row(file, rank.0, pid, ours)
    }
}
