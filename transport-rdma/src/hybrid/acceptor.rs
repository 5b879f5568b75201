//! Connections that are not peers' yet: incoming ones, and calls of this station. One thread
//! (`handshake_thread`) serves all of them until they become peers' or are closed.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::address::Address;
use super::handshake::{Handshake, LocalIdentity};
use super::handshake_thread::HandshakeThread;
use super::listeners::Listeners;
use super::path_selection::PathSelection;
use super::rdma::StationRdma;
use crate::eventfd::{create_eventfd, signal_eventfd};
use crate::shm::SetupError;
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
    Refused(String),
    /// No suitable station is there.
    Nobody(String),
    /// The connection was lost, or the peer was too busy.
    Lost(String),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connections: BTreeMap<u64, PendingConnection>,
    next: u64,
    /// Results of calls by connection number, until the caller has taken them.
    pub(super) answers: BTreeMap<u64, CallOutcome>,
    /// The address on which the station was told to listen, while it cannot.
    pub(super) missing: Option<SocketAddr>,
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
    kick: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
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

/// Handle of the listeners and their thread.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this value, but not the thread.
    process: u32,
}

impl Acceptor {
    pub(super) fn open(
        me: LocalIdentity,
        listening: Listeners,
        streams: Arc<tcp::StreamTransport>,
        rdma: Option<Arc<StationRdma>>,
    ) -> Result<Self, SetupError> {
        let shared = Arc::new(Shared {
            me,
            streams,
            rdma,
            kick: create_eventfd().map_err(SetupError::system("making an event descriptor"))?,
            state: Mutex::new(State {
                missing: listening.missing(),
                ..State::default()
            }),
            changed: Condvar::new(),
        });
        if let Some(rdma) = &shared.rdma {
            let acceptor = Arc::downgrade(&shared);
            rdma.on_proof(move || {
                acceptor
                    .upgrade()
                    .iter()
                    .for_each(|acceptor| acceptor.kick())
            });
        }
        let handshake_thread = HandshakeThread::new(Arc::clone(&shared), listening);
        let thread = thread::Builder::new()
            .name("spindle-acceptor".into())
            .spawn(move || handshake_thread.run())
            .map_err(SetupError::system("starting the thread that listens"))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    /// Ends the thread: accepts and calls no more. Idempotent.
    pub(super) fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.shared.state().stopped = true;
        self.shared.kick();
        self.shared.notify();
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.close();
    }
}
