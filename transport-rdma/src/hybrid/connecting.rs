//! Connecting to a station in the network, from the calling thread.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::acceptor::Acceptor;
use super::address::Address;
use super::handshake::{self, Handshake};
use super::path_state::PathSelection;
use super::pending::{CallOutcome, NoStation, PendingConnection, Phase, Role, no_answer};
use super::refusal::HandshakeRefusal;
use crate::retry::Classified;
use crate::shm::error::SetupError;

/// Pause between two calls of a station that is busy or is calling this one.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// How long a member that is not reached is called again: one error says little about it.
const MEMBER_WITHIN: Duration = Duration::from_millis(500);

/// Additional time for a call whose peer has proved itself by the deadline: that a queue pair
/// does not work is found out only by waiting.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);

/// The result of a successful call.
#[derive(Debug)]
pub(super) enum ConnectOutcome {
    /// A connected peer.
    Peer(u128),
    /// A station on this host.
    OnHost(Address),
}

/// Why a call did not reach a station.
#[derive(Debug)]
pub(super) enum ConnectError {
    Closed,
    Myself,
    Refused(HandshakeRefusal),
    /// No station is there, or it was too slow.
    Not(NoStation),
    System(SetupError),
}

impl Acceptor {
    /// Calls the stations at these sockets one after the other, and again if they are busy,
    /// until `deadline`, or somewhat longer if a peer has proved itself by then. If a member
    /// is expected, only that one will do.
    pub(super) fn call(
        &self,
        sockets: &[SocketAddr],
        expected: Option<u128>,
        deadline: Instant,
    ) -> Result<ConnectOutcome, ConnectError> {
        let mut failure = NoStation::from("it has no address in the network".to_owned());
        let member_until = Instant::now() + MEMBER_WITHIN;
        loop {
            let mut again = false;
            for (at, &socket) in sockets.iter().enumerate() {
                let left = deadline.saturating_duration_since(Instant::now());
                let share = left / (sockets.len() - at) as u32;
                let answer = self.ask(socket, expected, Instant::now() + share)?;
                failure = match answer {
                    CallOutcome::Connected(id) => return Ok(ConnectOutcome::Peer(id)),
                    CallOutcome::OnHost(address) => return Ok(ConnectOutcome::OnHost(address)),
                    CallOutcome::Myself => return Err(ConnectError::Myself),
                    CallOutcome::Refused(refusal) => return Err(ConnectError::Refused(refusal)),
                    CallOutcome::NotThere(failure) => {
                        again = expected.is_some() && Instant::now() < member_until;
                        failure
                    }
                    CallOutcome::Already(reason) | CallOutcome::Lost(reason) => {
                        again = true;
                        reason.into()
                    }
                };
            }
            if !again || Instant::now() >= deadline {
                return Err(ConnectError::Not(failure));
            }
            let next = deadline.min(Instant::now() + CALL_AGAIN_AFTER);
            let mut state = self.shared.state();
            while !state.stopped && Instant::now() < next {
                state = self.shared.wait(state, next);
            }
        }
    }

    /// Makes one call.
    fn ask(
        &self,
        socket: SocketAddr,
        expected: Option<u128>,
        until: Instant,
    ) -> Result<CallOutcome, ConnectError> {
        if let Some(id) = expected
            && let Some(fate) = self.shared.streams.fate_of(id)
        {
            return match fate {
                None => Ok(CallOutcome::Connected(id)),
                Some(cause) => Err(ConnectError::Not(cause.to_string().into())),
            };
        }
        let stream = match begin(socket) {
            Ok(stream) => Arc::new(stream),
            Err(errno) if errno.may_pass() => {
                let lacks = SetupError::system("calling a station")(errno);
                return Ok(CallOutcome::Lost(lacks.to_string()));
            }
            Err(errno) => return Ok(CallOutcome::NotThere(no_answer(&errno.into()))),
        };
        let handshake = Handshake::new(&self.shared.me, handshake::Role::Caller);
        let connection = PendingConnection {
            stream,
            role: Role::Called { expected },
            phase: Phase::Connecting,
            handshake: handshake.map_err(ConnectError::System)?,
            path: PathSelection::default(),
            heard: Vec::new(),
        };
        let mut state = self.shared.state();
        let number = state.add(connection);
        self.shared.kick();
        let (mut until, settled_by) = (until, until + SETTLE_WITHIN);
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return Ok(answer);
            }
            if state.stopped {
                return Err(ConnectError::Closed);
            }
            if Instant::now() >= until {
                let connection = state.connections.get(&number);
                if until < settled_by
                    && connection.is_some_and(PendingConnection::is_selecting_path)
                {
                    until = settled_by;
                    continue;
                }
                state.connections.remove(&number);
                let late = "it did not answer in time".to_owned();
                return Ok(CallOutcome::NotThere(late.into()));
            }
            state = self.shared.wait(state, until);
        }
    }
}

/// Starts a connection.
fn begin(to: SocketAddr) -> Result<TcpStream, Errno> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket.into()),
        Err(errno) => Err(errno),
    }
}
