//! A station's state: its connections, its peers, and what they have sent.
//!
//! ```text
//!   accepted: Stranger --hello--> Member        a peer:  Open -> Closing -> Closed
//!   called:   Called   --hello--> Member                 in Closing, the kernel's report
//!                                                        of the process's end is awaited
//! ```
//! The I/O thread changes it; callers only add requests and take results.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;

use super::doorbell_row::{DOORBELLS, WakeTarget};
use super::packet::Packet;
use super::sleep_state::SleepState;
use crate::fabric::FailureCause;
use crate::fabric::failures::Control;
use crate::fork::OwnerProcess;
use crate::memory::Region;
use crate::memory::mapping::Mapping;
use crate::shm::error::SetupError;
use crate::shm::memory;
use crate::shm::socket;
use crate::station::event::{EventQueue, QUEUE_LEN_MAX, StationEvent};
use crate::station::segment::SegmentKey;
use crate::station::traffic::StationTraffic;

/// Most rows of one peer that wait until they are requested; beyond that the row of the
/// oldest epoch is discarded.
const EARLY_ROWS_MAX: usize = 4096;

/// Most packets that wait for a peer: those with rows hold descriptors.
const OUTGOING_MAX: usize = 4096;

/// A packet to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<Arc<OwnedFd>>,
    /// Rows of segments in it.
    pub(super) rows: u64,
}

/// The other end of a connection.
#[derive(Debug)]
pub(super) enum Role {
    /// A process that has connected and not said hello yet.
    Stranger {
        until: Instant,
    },
    /// A peer that this station has called, and the doorbell reserved for it.
    Called {
        id: u128,
        doorbell: u16,
    },
    Member(u128),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) pid: u32,
    pub(super) role: Role,
    pub(super) out: VecDeque<Outgoing>,
    /// Bytes in `out`.
    pub(super) out_len: usize,
    /// Bytes of an incomplete message.
    pub(super) partial: Vec<u8>,
    /// Nothing is sent or received before this time: the kernel lacks memory, or has too many
    /// descriptors in flight.
    pub(super) paused_until: Option<Instant>,
    owner: OwnerProcess,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, pid: u32, role: Role) -> Self {
        Self {
            socket: Arc::new(socket),
            pid,
            role,
            out: VecDeque::new(),
            out_len: 0,
            partial: Vec::new(),
            paused_until: None,
            owner: OwnerProcess::this(),
        }
    }

    pub(super) fn put(&mut self, bytes: Vec<u8>, fds: Vec<Arc<OwnedFd>>) {
        self.put_rows(bytes, fds, 0);
    }

    /// Queues a packet with so many rows of segments.
    pub(super) fn put_rows(&mut self, bytes: Vec<u8>, fds: Vec<Arc<OwnedFd>>, rows: u64) {
        self.out_len += bytes.len();
        self.out.push_back(Outgoing { bytes, fds, rows });
    }

    /// Whether the queue accepts nothing more.
    pub(super) fn is_full(&self) -> bool {
        self.out_len > QUEUE_LEN_MAX || self.out.len() > OUTGOING_MAX
    }
}

impl Drop for Connection {
    /// Shut down explicitly: forked children may have the socket open, too.
    fn drop(&mut self) {
        if self.owner.is_inherited() {
            return;
        }
        let _ = rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both);
    }
}

/// Whether a peer is connected.
#[derive(Debug)]
pub(super) enum Life {
    Open {
        connection: u64,
    },
    /// Its connection has closed; whether its process has ended is not known yet.
    Closing {
        until: Instant,
    },
    Closed(FailureCause),
}

/// A row of a peer that was not requested yet. It is mapped at once: there may be many, and few
/// descriptors.
#[derive(Debug)]
pub(super) enum EarlyRow {
    Made {
        rank: u16,
        len: u64,
        /// Or why it cannot be mapped.
        mapped: Result<Arc<Mapping>, SetupError>,
    },
    /// The peer has not made it, for this reason.
    Lacking(String),
}

impl EarlyRow {
    /// A row that process `pid` has made. No `file`: this process had no descriptor left for it.
    pub(super) fn made(pid: u32, rank: u16, len: u64, file: Option<&OwnedFd>) -> Self {
        let whole = usize::try_from(len).ok();
        let mapped = match (whole.filter(|_| len <= memory::ROW_LEN_MAX), file) {
            (Some(whole), Some(file)) => memory::open_row(file, rank, pid, whole),
            (Some(_), None) => {
                let what = "receiving the row of a member (ulimit -n)";
                Err(SetupError::system(what)(Errno::MFILE))
            }
            (None, _) => {
                let what = format!("its row of {len} bytes is too long");
                Err(SetupError::ProtocolViolation { pid, what })
            }
        };
        Self::Made { rank, len, mapped }
    }
}

/// A peer, which has said hello.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) wake_target: Arc<WakeTarget>,
    /// Its doorbell row, as long as this station waits for it.
    pub(super) row: Region,
    /// Readable once its process has ended.
    pub(super) lifeline: Arc<OwnedFd>,
    pub(super) life: Life,
    /// The doorbell of my row that is the peer's.
    pub(super) doorbell: u16,
    pub(super) rows: BTreeMap<SegmentKey, EarlyRow>,
}

/// How a call that did not lead to a hello has ended.
#[derive(Debug)]
pub(super) enum CallFailure {
    Refused(String),
    /// The two are connected, or about to be.
    Already(String),
    Lost(String),
    /// This process lacks something.
    Lack(SetupError),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    pub(super) peers: BTreeMap<u128, Peer>,
    /// Members that are not connected and were given up, and why.
    pub(super) absent: BTreeMap<u128, FailureCause>,
    /// Results of calls, by the peer called, until the caller has taken them.
    pub(super) answers: BTreeMap<u128, CallFailure>,
    pub(super) events: Arc<EventQueue>,
    pub(super) controls: Vec<Control>,
    /// No segment of an earlier epoch is waited for.
    pub(super) exchanges_from: u64,
    /// Segments that were requested here and not forgotten.
    pub(super) asked: BTreeSet<SegmentKey>,
    /// Doorbells of my row that are in use. The first is my own.
    doorbells_taken: [bool; DOORBELLS],
    pub(super) stopped: bool,
    /// Packets that were sent.
    pub(super) sent: StationTraffic,
}

impl State {
    pub(super) fn new() -> Self {
        let mut doorbells_taken = [false; DOORBELLS];
        doorbells_taken[0] = true;
        Self {
            connections: BTreeMap::new(),
            next_connection: 0,
            peers: BTreeMap::new(),
            absent: BTreeMap::new(),
            answers: BTreeMap::new(),
            events: Arc::default(),
            controls: Vec::new(),
            exchanges_from: 0,
            asked: BTreeSet::new(),
            doorbells_taken,
            stopped: false,
            sent: StationTraffic::default(),
        }
    }

    pub(super) fn add_connection(&mut self, connection: Connection) -> u64 {
        let number = self.next_connection;
        self.next_connection += 1;
        self.connections.insert(number, connection);
        number
    }

    /// Reserves a doorbell; `None` if there are as many peers as possible.
    pub(super) fn take_doorbell(&mut self) -> Option<u16> {
        let free = self.doorbells_taken.iter().position(|&taken| !taken)?;
        self.doorbells_taken[free] = true;
        Some(free as u16)
    }

    pub(super) fn return_doorbell(&mut self, doorbell: u16) {
        self.doorbells_taken[usize::from(doorbell)] = false;
    }

    /// Ends a call that led to no connection.
    pub(super) fn end_call(&mut self, number: u64, answer: Option<CallFailure>) {
        let Some(&Role::Called { id, doorbell }) = self
            .connections
            .get(&number)
            .map(|connection| &connection.role)
        else {
            return;
        };
        self.return_doorbell(doorbell);
        self.connections.remove(&number);
        if let Some(answer) = answer {
            self.answers.insert(id, answer);
        }
    }

    /// A call to this peer that is under way.
    pub(super) fn call_to(&self, id: u128) -> Option<u64> {
        let is_call = |connection: &Connection| matches!(connection.role, Role::Called { id: to, .. } if to == id);
        let mut calls = self
            .connections
            .iter()
            .filter(|(_, connection)| is_call(connection));
        calls.next().map(|(&number, _)| number)
    }

    /// The connection to a connected peer.
    pub(super) fn connection_to(&mut self, id: u128) -> Option<&mut Connection> {
        match self.peers.get(&id)?.life {
            Life::Open { connection } => self.connections.get_mut(&connection),
            _ => None,
        }
    }

    /// Keeps a row until it is requested.
    pub(super) fn keep_early_row(&mut self, from: u128, key: SegmentKey, row: EarlyRow) {
        if key.epoch < self.exchanges_from {
            return;
        }
        let Some(peer) = self.peers.get_mut(&from) else {
            return;
        };
        if let Some((oldest, _)) = keep(&mut peer.rows, key, row, EARLY_ROWS_MAX) {
            tracing::warn!(from, ?oldest, "an unrequested row is discarded");
        }
    }

    /// No segment of an earlier epoch is waited for any more: rows for them are discarded.
    pub(super) fn end_exchanges_before(&mut self, epoch: u64) {
        self.exchanges_from = self.exchanges_from.max(epoch);
        for peer in self.peers.values_mut() {
            peer.rows.retain(|key, _| key.epoch >= epoch);
        }
    }

    /// A peer is lost for good: reports it to control segments and as an event.
    pub(super) fn close_peer(&mut self, id: u128, cause: FailureCause, sleep: &SleepState) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        match peer.life {
            Life::Open { connection } => drop(self.connections.remove(&connection)),
            Life::Closing { .. } => {}
            Life::Closed(_) => return,
        }
        peer.life = Life::Closed(cause.clone());
        sleep.remove_peer(&peer.row);
        Control::tell_all(&mut self.controls, id, &cause);
        self.events.push(StationEvent::Closed { id, cause });
        sleep.wake_myself();
    }

    /// Why a peer is lost, if it is.
    pub(super) fn fate_of(&self, id: u128) -> Option<&FailureCause> {
        match &self.peers.get(&id)?.life {
            Life::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// Removes a peer, its doorbell and its rows.
    pub(super) fn drop_peer(&mut self, id: u128, sleep: &SleepState) {
        self.absent.remove(&id);
        let Some(peer) = self.peers.remove(&id) else {
            return;
        };
        if let Life::Open { connection } = peer.life
            && let Some(connection) = self.connections.remove(&connection)
        {
            try_send(&connection.socket, &Packet::Bye);
        }
        sleep.remove_peer(&peer.row);
        self.answers.remove(&id);
        self.return_doorbell(peer.doorbell);
        self.events.forget(id);
    }

    /// Discards the rows of a segment that have arrived. Rows that are being sent to others
    /// still are: the others may wait for them.
    pub(super) fn forget(&mut self, key: SegmentKey) {
        self.asked.remove(&key);
        for peer in self.peers.values_mut() {
            peer.rows.remove(&key);
        }
    }
}

/// Inserts an entry, and removes the first one if there are more than `max` then.
fn keep<K: Ord, V>(kept: &mut BTreeMap<K, V>, key: K, value: V, max: usize) -> Option<(K, V)> {
    kept.insert(key, value);
    let over = kept.len() > max;
    over.then(|| kept.pop_first()).flatten()
}

/// Sends a packet if the socket accepts it; a failure is ignored.
pub(super) fn try_send(socket: &OwnedFd, packet: &Packet<'_>) {
    let _ = socket::send_now(socket, &packet.write(), &[]);
}

pub(super) fn borrow(fds: &[Arc<OwnedFd>]) -> Vec<std::os::fd::BorrowedFd<'_>> {
    fds.iter().map(|fd| fd.as_fd()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rows_give_way() {
        let mut kept = BTreeMap::new();
        let key = |epoch, index| SegmentKey { epoch, index };
        assert_eq!(keep(&mut kept, key(2, 0), 'a', 2), None);
        assert_eq!(keep(&mut kept, key(1, 9), 'b', 2), None);
        assert_eq!(keep(&mut kept, key(2, 0), 'c', 2), None, "in its place");
        assert_eq!(keep(&mut kept, key(2, 1), 'd', 2), Some((key(1, 9), 'b')));
        assert_eq!(kept.into_values().collect::<String>(), "cd");
    }

    #[test]
    fn bells_are_given_out_once_and_again_when_they_are_returned() {
        let mut state = State::new();
        let all: BTreeSet<_> = core::iter::from_fn(|| state.take_doorbell()).collect();
        assert_eq!(all.len(), DOORBELLS - 1);
        assert!(!all.contains(&0), "that is its own");
        state.return_doorbell(7);
        assert_eq!(state.take_doorbell(), Some(7));
    }
}
