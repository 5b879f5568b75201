//! Calling somebody in the network, from the thread that wants it.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::address::Address;
use super::door::{Answer, Connection, Door, Phase, Role};
use super::handshake::{self, Talk};
use super::way::Way;
use crate::shm::SetupError;

/// Between two calls of somebody who is busy, or calls this one.
const CALL_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// What one who has proved itself by the deadline has more, to settle how pushes go: a
/// queue pair that does not work is found out by waiting.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);

/// Who was found.
#[derive(Debug)]
pub(super) enum Reached {
    /// A peer, which is connected.
    Peer(u128),
    /// A station on this host.
    OnHost(Address),
}

/// Why nobody was.
#[derive(Debug)]
pub(super) enum Unreached {
    Closed,
    Myself,
    Refused(String),
    /// It is not there, or was too slow.
    Not(String),
    System(SetupError),
}

impl Door {
    /// Calls whoever listens at one of these, one after the other, and again if it
    /// has no time, until `deadline`, or somewhat longer if somebody has proved itself by
    /// then. If somebody is expected, no other will do.
    pub(super) fn call(
        &self,
        sockets: &[SocketAddr],
        expected: Option<u128>,
        deadline: Instant,
    ) -> Result<Reached, Unreached> {
        let mut excuse = "it has no address in the network".to_owned();
        loop {
            let mut again = false;
            for (at, &socket) in sockets.iter().enumerate() {
                let left = deadline.saturating_duration_since(Instant::now());
                let share = left / (sockets.len() - at) as u32;
                let answer = self.ask(socket, expected, Instant::now() + share)?;
                excuse = match answer {
                    Answer::Connected(id) => return Ok(Reached::Peer(id)),
                    Answer::OnHost(address) => return Ok(Reached::OnHost(address)),
                    Answer::Myself => return Err(Unreached::Myself),
                    Answer::Refused(reason) => return Err(Unreached::Refused(reason)),
                    Answer::Nobody(reason) => reason,
                    Answer::Already(reason) | Answer::Lost(reason) => {
                        again = true;
                        reason
                    }
                };
            }
            if !again || Instant::now() >= deadline {
                return Err(Unreached::Not(excuse));
            }
            let next = deadline.min(Instant::now() + CALL_AGAIN_AFTER);
            let mut state = self.shared.state();
            while !state.stopped && Instant::now() < next {
                state = self.shared.wait(state, next);
            }
        }
    }

    /// One call.
    fn ask(
        &self,
        socket: SocketAddr,
        expected: Option<u128>,
        until: Instant,
    ) -> Result<Answer, Unreached> {
        if let Some(id) = expected
            && let Some(fate) = self.shared.streams.fate_of(id)
        {
            return match fate {
                None => Ok(Answer::Connected(id)),
                Some(cause) => Err(Unreached::Not(cause.to_string())),
            };
        }
        let stream = match begin(socket) {
            Ok(stream) => Arc::new(stream),
            Err(errno) => return Ok(Answer::Nobody(no_answer(errno.into()))),
        };
        let talk = Talk::new(&self.shared.me, handshake::Role::Caller);
        let connection = Connection {
            stream,
            role: Role::Called { expected },
            phase: Phase::Connecting,
            talk: talk.map_err(Unreached::System)?,
            way: Way::default(),
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
                return Err(Unreached::Closed);
            }
            if Instant::now() >= until {
                let connection = state.connections.get(&number);
                if until < settled_by && connection.is_some_and(Connection::settles) {
                    until = settled_by;
                    continue;
                }
                state.connections.remove(&number);
                return Ok(Answer::Nobody("it did not answer in time".into()));
            }
            state = self.shared.wait(state, until);
        }
    }
}

/// A connection that is on its way.
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

pub(super) fn no_answer(error: std::io::Error) -> String {
    format!("nobody answers: {error}")
}
