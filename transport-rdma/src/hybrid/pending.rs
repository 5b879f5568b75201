//! Connections that are not peers' yet: incoming ones, and calls of this station.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::address::Address;
use super::handshake::{Handshake, LocalIdentity};
use super::log_limit::LogLimit;
use super::noise::NoiseError;
use super::path_state::PathSelection;
use super::rdma::StationRdma;
use super::refusal::{HandshakeRefusal, RefusalKind};
use crate::sleep::eventfd::signal_eventfd;
use crate::tcp;

/// The other end of a connection that is not a peer's yet.
#[derive(Debug)]
pub(super) enum Role {
    /// It has connected, and has until then to prove itself.
    Stranger { until: Instant },
    /// It has connected and proved itself; until then it must have become a peer.
    Authenticated { until: Instant },
    /// This station has called it; if `expected`, only that member will do.
    Called { expected: Option<u128> },
}

impl Role {
    /// When the handshake thread closes the connection, if it has a time limit there.
    pub(super) fn until(&self) -> Option<Instant> {
        match *self {
            Self::Stranger { until } | Self::Authenticated { until } => Some(until),
            Self::Called { .. } => None,
        }
    }
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Hello,
    Proof,
    /// The other side's offer of a queue pair.
    Offer,
    /// A thread of this station that sets up a queue pair.
    SettingUpPair,
    Verdict,
}

/// A connection that is not a peer's yet.
#[derive(Debug)]
pub(super) struct PendingConnection {
    pub(super) stream: Arc<TcpStream>,
    pub(super) role: Role,
    pub(super) phase: Phase,
    pub(super) handshake: Handshake,
    pub(super) path: PathSelection,
    /// Bytes of an incomplete frame.
    pub(super) heard: Vec<u8>,
}

impl PendingConnection {
    /// Whether both sides have proved themselves, and only the path of pushes is open.
    pub(super) fn is_selecting_path(&self) -> bool {
        matches!(
            self.phase,
            Phase::Offer | Phase::SettingUpPair | Phase::Verdict
        )
    }
}

/// How a call has ended.
#[derive(Debug)]
pub(super) enum CallOutcome {
    Connected(u128),
    /// The called station is on this host, and reachable by shared memory.
    OnHost(Address),
    /// The called station is this one.
    Myself,
    /// The two are connected, or about to be.
    Already(String),
    Refused(HandshakeRefusal),
    NotThere(NoStation),
    /// The connection was lost, or the peer was too busy.
    Lost(String),
}

impl CallOutcome {
    /// The outcome of a call that either side refuses.
    pub(super) fn of_refusal(refusal: HandshakeRefusal) -> Self {
        match refusal.kind {
            RefusalKind::Already => Self::Already(refusal.reason),
            _ => Self::Refused(refusal),
        }
    }
}

/// No suitable station is at an address.
#[derive(Debug)]
pub(super) struct NoStation {
    pub(super) reason: String,
    /// The kind of the system's error, if the connection failed with one.
    pub(super) kind: Option<ErrorKind>,
}

impl From<String> for NoStation {
    fn from(reason: String) -> Self {
        Self { reason, kind: None }
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connections: BTreeMap<u64, PendingConnection>,
    pub(super) next: u64,
    /// Results of calls by connection number, until the caller has taken them.
    pub(super) answers: BTreeMap<u64, CallOutcome>,
    /// The address on which the station was told to listen, while it cannot.
    pub(super) missing: Option<SocketAddr>,
    /// Lines about incoming connections that were refused.
    pub(super) refusals: LogLimit,
    pub(super) stopped: bool,
}

impl State {
    pub(super) fn add(&mut self, connection: PendingConnection) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connections.insert(number, connection);
        number
    }

    /// Removes a connection; if it was a call, its outcome is kept for the caller.
    pub(super) fn end(&mut self, number: u64, answer: CallOutcome) {
        if let Some(connection) = self.connections.remove(&number)
            && matches!(connection.role, Role::Called { .. })
        {
            self.answers.insert(number, answer);
        }
    }
}

/// State shared by the handshake thread and calling threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) me: LocalIdentity,
    pub(super) streams: Arc<tcp::StreamTransport>,
    pub(super) rdma: Option<Arc<StationRdma>>,
    pub(super) kick: OwnedFd,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the handshake thread.
    pub(super) fn kick(&self) {
        // A full event descriptor is readable already.
        let _ = signal_eventfd(&self.kick);
    }

    pub(super) fn kicked(&self) -> &OwnedFd {
        &self.kick
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits for a change, at most until `deadline`.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Instant,
    ) -> MutexGuard<'a, State> {
        let left = deadline.saturating_duration_since(Instant::now());
        let waited = self.changed.wait_timeout(state, left);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Why a connection ends.
pub(super) enum Ending {
    /// The other side is sent the reason.
    Refuse(HandshakeRefusal),
    /// Nothing is sent.
    Quiet(CallOutcome),
}

impl Ending {
    pub(super) fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(HandshakeRefusal::new(RefusalKind::Other, reason))
    }

    /// There are no keys for this connection; another call may succeed.
    pub(super) fn no_keys(error: &NoiseError) -> Self {
        Self::Quiet(CallOutcome::Lost(error.to_string()))
    }

    pub(super) fn already(reason: String) -> Self {
        Self::Refuse(HandshakeRefusal::new(RefusalKind::Already, reason))
    }

    pub(super) fn lost(reason: &str) -> Self {
        Self::Quiet(CallOutcome::Lost(reason.into()))
    }
}

/// Sends a frame, encrypted if keys have been exchanged.
pub(super) fn send_frame(connection: &mut PendingConnection, frame: Vec<u8>) -> Result<(), Ending> {
    let bytes = connection.handshake.seal(frame);
    send_bytes(connection, &bytes)
}

/// Writes all bytes at once; so few always fit.
pub(super) fn send_bytes(connection: &PendingConnection, bytes: &[u8]) -> Result<(), Ending> {
    match (&*connection.stream).write(bytes) {
        Ok(len) if len == bytes.len() => Ok(()),
        Ok(_) => Err(Ending::lost("it takes nothing")),
        Err(error) => Err(Ending::Quiet(CallOutcome::Lost(error.to_string()))),
    }
}

/// The connection failed with an error of the system.
pub(super) fn no_answer(error: &std::io::Error) -> NoStation {
    NoStation {
        reason: format!("no station answers: {error}"),
        kind: Some(error.kind()),
    }
}
