//! Where a station is called, and from where it calls: one thread (`keeper`) leads all
//! connections until they are peers', or closed. It waits for nobody.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::address::Address;
use super::handshake::{Me, Talk};
use super::keeper::Keeper;
use super::listening::Listening;
use super::rdma::Rdma;
use super::way::Way;
use crate::eventfd::{create_eventfd, signal_eventfd};
use crate::shm::SetupError;
use crate::tcp;

/// Who is at the other end of a connection that is nobody's yet.
#[derive(Debug)]
pub(super) enum Role {
    /// It has called, and may do so for so long.
    Stranger { until: Instant },
    /// It has called and proved itself; until then it is a peer, or gone.
    Guest { until: Instant },
    /// I have called it, perhaps to find this one.
    Called { expected: Option<u128> },
}

impl Role {
    /// When it has no more time, if that is for the keeper to say.
    pub(super) fn until(&self) -> Option<Instant> {
        match *self {
            Self::Stranger { until } | Self::Guest { until } => Some(until),
            Self::Called { .. } => None,
        }
    }
}

/// What is waited for on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Hello,
    Proof,
    /// Of its queue pair.
    Offer,
    /// A thread of mine that sets up a queue pair.
    Pair,
    Verdict,
}

/// A connection that is nobody's yet.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Arc<TcpStream>,
    pub(super) role: Role,
    pub(super) phase: Phase,
    pub(super) talk: Talk,
    pub(super) way: Way,
    /// Of a frame that has come in part.
    pub(super) heard: Vec<u8>,
}

impl Connection {
    /// Whether both have proved themselves, and what is left is how pushes go.
    pub(super) fn settles(&self) -> bool {
        matches!(self.phase, Phase::Offer | Phase::Pair | Phase::Verdict)
    }
}

/// How a call has ended.
#[derive(Debug)]
pub(super) enum Answer {
    Connected(u128),
    /// Whoever was called is on my host: nearer than this.
    OnHost(Address),
    /// It was me.
    Myself,
    /// For being connected, or about to be.
    Already(String),
    Refused(String),
    /// Nobody to be reached is there.
    Nobody(String),
    /// It went away, or was too busy.
    Lost(String),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connections: BTreeMap<u64, Connection>,
    next: u64,
    /// By the connection of the call, until the caller has looked.
    pub(super) answers: BTreeMap<u64, Answer>,
    /// Where it is to listen, and does not yet.
    pub(super) missing: Option<SocketAddr>,
    pub(super) stopped: bool,
}

impl State {
    pub(super) fn add(&mut self, connection: Connection) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connections.insert(number, connection);
        number
    }

    /// A connection comes to nothing, or to a peer; if it was a call, whoever called
    /// is told.
    pub(super) fn end(&mut self, number: u64, answer: Answer) {
        if let Some(connection) = self.connections.remove(&number)
            && matches!(connection.role, Role::Called { .. })
        {
            self.answers.insert(number, answer);
        }
    }
}

/// What the thread and those who call share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) me: Me,
    pub(super) streams: Arc<tcp::Core>,
    pub(super) rdma: Option<Arc<Rdma>>,
    kick: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the thread something to do.
    pub(super) fn kick(&self) {
        // An event descriptor that is full wakes it already.
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

/// A listener, and its thread.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this but not the thread.
    process: u32,
}

impl Door {
    pub(super) fn open(
        me: Me,
        listening: Listening,
        streams: Arc<tcp::Core>,
        rdma: Option<Arc<Rdma>>,
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
            let door = Arc::downgrade(&shared);
            rdma.on_proof(move || door.upgrade().iter().for_each(|door| door.kick()));
        }
        let keeper = Keeper::new(Arc::clone(&shared), listening);
        let thread = thread::Builder::new()
            .name("spindle-door".into())
            .spawn(move || keeper.run())
            .map_err(SetupError::system("starting the thread that listens"))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    /// Nobody comes in, and nobody is called any more. Once is enough.
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
        // It has nothing to say if it panicked.
        let _ = thread.join();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close();
    }
}
