//! The thread that accepts connections, drives handshakes, and passes authenticated
//! connections to the stream transport.
//!
//! Two stations may call each other at the same moment. Then the call of the station with the
//! lower id counts: once it has proved itself in its own call, it refuses the other's.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::handshake::{self, Handshake};
use super::handshake_frame::{Frame, FrameError, Hello, VERSION};
use super::listeners::Listeners;
use super::log_limit::LogLimit;
use super::path_selection;
use super::path_state::PathSelection;
use super::pending::{
    CallOutcome, Ending, PendingConnection, Phase, Role, Shared, State, no_answer, send_bytes,
    send_frame,
};
use super::refusal::{HandshakeRefusal, RefusalKind};
use crate::retry::{self, Classified};

/// How long an incoming connection has to prove itself.
const STRANGER_WITHIN: Duration = Duration::from_secs(2);

/// How long an authenticated connection has for the rest of the handshake.
const AUTHENTICATED_WITHIN: Duration = Duration::from_secs(5);

/// Most authenticated incoming connections; beyond that callers are told to call again.
const AUTHENTICATED_MAX: usize = 64;

/// Most incoming connections that are not authenticated; beyond that the oldest is closed.
const STRANGERS_MAX: usize = 64;

/// Pause in accepting, or in polling, after the system ran out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(5);

/// Most new connections that are accepted in one round.
const ROUND_MAX: usize = 64;

/// A source of events that is ready.
#[derive(Debug, Clone, Copy)]
enum Source {
    Kick,
    Listener(usize),
    Connection(u64),
}

#[derive(Debug)]
pub(super) struct HandshakeThread {
    shared: Arc<Shared>,
    listening: Listeners,
    /// No connection is accepted before this time: there were no descriptors left.
    admit_after: Option<Instant>,
    /// Lines about what the system lacks.
    lacks: LogLimit,
}

impl HandshakeThread {
    pub(super) fn new(shared: Arc<Shared>, listening: Listeners) -> Self {
        Self {
            shared,
            listening,
            admit_after: None,
            lacks: LogLimit::default(),
        }
    }

    /// Runs until the acceptor is closed.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(errno) if errno.may_pass() => {
                    if self.lacks.admits(Instant::now()) {
                        tracing::warn!(%errno, "accepting and calling pause for a moment");
                    }
                    thread::sleep(PAUSE);
                    Vec::new()
                }
                Err(errno) => {
                    tracing::error!(%errno, "no connection is accepted or made any more");
                    let mut state = shared.state();
                    state.stopped = true;
                    state.connections.clear();
                    drop(state);
                    shared.notify();
                    return;
                }
            };
            let mut state = shared.state();
            if state.stopped {
                state.connections.clear();
                return;
            }
            for source in ready {
                match source {
                    // Resets the event descriptor.
                    Source::Kick => drop(rustix::io::read(shared.kicked(), &mut [0; 8])),
                    Source::Listener(at) => self.admit(&mut state, at),
                    Source::Connection(number) => handle_connection(&shared, &mut state, number),
                }
            }
            check_queue_pairs(&shared, &mut state);
            let now = Instant::now();
            self.admit_after = self.admit_after.filter(|&after| now < after);
            self.listening.try_again(now);
            state.missing = self.listening.missing();
            if let Some(more) = state.refusals.end_period(now) {
                tracing::warn!(
                    more,
                    "more incoming connections were refused in the last minute"
                );
            }
            if let Some(more) = self.lacks.end_period(now) {
                tracing::warn!(more, "accepting paused more often in the last minute");
            }
            state
                .connections
                .retain(|_, it| it.role.until().is_none_or(|until| now < until));
            drop(state);
            shared.notify();
        }
    }

    fn wait(&self) -> Result<Vec<Source>, Errno> {
        let (watched, deadline) = self.watched(self.shared.state());
        let mut fds = vec![PollFd::new(self.shared.kicked(), PollFlags::IN)];
        let mut sources = vec![Source::Kick];
        if self.admit_after.is_none() {
            for (at, listener) in self.listening.listeners().iter().enumerate() {
                fds.push(PollFd::new(listener, PollFlags::IN));
                sources.push(Source::Listener(at));
            }
        }
        for (number, stream, flags) in &watched {
            fds.push(PollFd::new(&**stream, *flags));
            sources.push(Source::Connection(*number));
        }
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        retry::repeat(|| rustix::event::poll(&mut fds, left.as_ref()))?;
        let each = sources.into_iter().zip(&fds);
        let ready = each.filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// Connections with what to poll for, and the first deadline.
    #[expect(clippy::type_complexity, reason = "of one use")]
    fn watched(
        &self,
        state: MutexGuard<'_, State>,
    ) -> (Vec<(u64, Arc<TcpStream>, PollFlags)>, Option<Instant>) {
        let mut deadline = self
            .admit_after
            .into_iter()
            .chain(self.listening.due())
            .chain(self.lacks.due())
            .chain(state.refusals.due())
            .min();
        let mut watched = Vec::new();
        for (&number, connection) in &state.connections {
            let flags = match connection.phase {
                Phase::Connecting => Some(PollFlags::OUT),
                Phase::Hello | Phase::Proof | Phase::Offer | Phase::Verdict => Some(PollFlags::IN),
                // Its frames wait for the queue pair.
                Phase::SettingUpPair => None,
            };
            let stream = || Arc::clone(&connection.stream);
            watched.extend(flags.map(|flags| (number, stream(), flags)));
            let ends = connection.role.until().into_iter();
            deadline = ends.chain(connection.path.deadline()).chain(deadline).min();
        }
        (watched, deadline)
    }

    fn admit(&mut self, state: &mut State, at: usize) {
        for _ in 0..ROUND_MAX {
            let admitted = self.listening.listeners()[at]
                .accept()
                .and_then(|(stream, _)| {
                    stream.set_nonblocking(true)?;
                    Ok(stream)
                });
            let stream = match admitted {
                Ok(stream) => stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted => continue,
                    _ => {
                        if self.lacks.admits(Instant::now()) {
                            tracing::warn!(%error, "accepting pauses for a moment");
                        }
                        self.admit_after = Some(Instant::now() + PAUSE);
                        return;
                    }
                },
            };
            let handshake = match Handshake::new(&self.shared.me, handshake::Role::Called) {
                Ok(handshake) => handshake,
                Err(error) => {
                    if self.lacks.admits(Instant::now()) {
                        tracing::error!(%error, "a caller is turned away");
                    }
                    continue;
                }
            };
            let is_stranger = |it: &PendingConnection| matches!(it.role, Role::Stranger { .. });
            let strangers = || state.connections.iter().filter(|(_, it)| is_stranger(it));
            let oldest = strangers().next().map(|(&number, _)| number);
            if strangers().count() >= STRANGERS_MAX
                && let Some(oldest) = oldest
            {
                state.connections.remove(&oldest);
            }
            let until = Instant::now() + STRANGER_WITHIN;
            state.add(PendingConnection {
                stream: Arc::new(stream),
                role: Role::Stranger { until },
                phase: Phase::Hello,
                handshake,
                path: PathSelection::default(),
                heard: Vec::new(),
            });
        }
    }
}

/// A connection is readable, or established.
fn handle_connection(shared: &Arc<Shared>, state: &mut State, number: u64) {
    if let Err(end) = go_on(shared, state, number) {
        stop(state, number, end);
    }
}

/// Checks all connections for progress of their queue pairs.
fn check_queue_pairs(shared: &Shared, state: &mut State) {
    let numbers: Vec<u64> = state.connections.keys().copied().collect();
    for number in numbers {
        let advanced = match state.connections.get_mut(&number) {
            Some(connection) => path_selection::advance(shared, connection),
            None => continue,
        };
        if let Err(end) = advanced.and_then(|()| settle(shared, state, number)) {
            stop(state, number, end);
        }
    }
}

/// Makes a peer of a connection on which both sides have given their verdicts.
fn settle(shared: &Shared, state: &mut State, number: u64) -> Result<(), Ending> {
    match state.connections.get(&number) {
        Some(connection) if path_selection::is_settled(connection) => {
            path_selection::connect(shared, state, number)
        }
        _ => Ok(()),
    }
}

fn stop(state: &mut State, number: u64, end: Ending) {
    let answer = match end {
        Ending::Quiet(answer) => answer,
        Ending::Refuse(refusal) => {
            tell_refusal(state, number, &refusal);
            if let Some(connection) = state.connections.get_mut(&number) {
                // Unread bytes would cause a reset, and the refusal might get lost.
                let _ = send_frame(connection, Frame::Refused(refusal.clone()).write());
                let _ = connection.stream.shutdown(Shutdown::Write);
                let _ = (&*connection.stream).read(&mut [0; 4096]);
            }
            CallOutcome::of_refusal(refusal)
        }
    };
    state.end(number, answer);
}

/// Refusals that another call may turn into success are everyday events.
fn tell_refusal(state: &mut State, number: u64, refusal: &HandshakeRefusal) {
    let Some(connection) = state.connections.get(&number) else {
        return;
    };
    let reason = &refusal.reason;
    let calls = matches!(connection.role, Role::Called { .. });
    if calls || refusal.kind == RefusalKind::Already {
        tracing::debug!(reason, "a connection is refused");
    } else if state.refusals.admits(Instant::now()) {
        let from = connection.stream.peer_addr().ok();
        tracing::warn!(?from, reason, "an incoming connection is refused");
    }
}

/// Drives a handshake as far as the received bytes allow.
fn go_on(shared: &Arc<Shared>, state: &mut State, number: u64) -> Result<(), Ending> {
    // It may have been removed in the same round.
    while let Some(connection) = state.connections.get_mut(&number) {
        if connection.phase == Phase::Connecting {
            let stream = &connection.stream;
            let failed = retry::repeat(|| stream.take_error()).unwrap_or_else(Some);
            // With no listener, a socket that got this very port connects to itself.
            let is_itself = stream.local_addr().ok() == stream.peer_addr().ok();
            let failed = failed.or_else(|| is_itself.then(|| Errno::CONNREFUSED.into()));
            if let Some(error) = failed {
                return Err(Ending::Quiet(CallOutcome::NotThere(no_answer(&error))));
            }
            send_bytes(connection, connection.handshake.hello())?;
            connection.phase = Phase::Hello;
        }
        if connection.phase == Phase::SettingUpPair {
            return Ok(());
        }
        let Some(bytes) = read(connection)? else {
            return Ok(());
        };
        match (Frame::read(&bytes), connection.phase) {
            (Some(Frame::Refused(refusal)), _) => {
                return Err(Ending::Quiet(CallOutcome::of_refusal(refusal)));
            }
            (Some(Frame::Hello(hello)), Phase::Hello) => {
                let is_authenticated = is_authenticated(state, hello.id);
                let Some(connection) = state.connections.get_mut(&number) else {
                    return Ok(());
                };
                handle_hello(shared, connection, &hello, bytes, is_authenticated)?;
            }
            (Some(proof @ (Frame::Proof(_) | Frame::KeyExchange(_))), Phase::Proof) => {
                let checked = connection.handshake.check(&shared.me, &proof);
                checked.map_err(Ending::Refuse)?;
                match connection.role {
                    Role::Called { .. } => connection.phase = Phase::Offer,
                    Role::Stranger { .. } | Role::Authenticated { .. } => {
                        accept_authenticated(shared, state, number)?;
                    }
                }
            }
            (Some(Frame::Offer(offer)), Phase::Offer) => {
                path_selection::receive_offer(shared, connection, number, offer)?;
            }
            (Some(Frame::Verdict(theirs)), Phase::Offer | Phase::Verdict) => {
                path_selection::receive_verdict(connection, theirs)?;
                settle(shared, state, number)?;
            }
            _ => return Err(Ending::Refuse(HandshakeRefusal::out_of_place())),
        }
    }
    Ok(())
}

/// Reads up to the end of a frame, and no further; `None` if it is incomplete.
fn read(connection: &mut PendingConnection) -> Result<Option<Vec<u8>>, Ending> {
    loop {
        let heard = connection.heard.len();
        let want = connection.handshake.received_len(&connection.heard);
        let want = want.map_err(no_frame)?;
        if heard == want {
            let frame = core::mem::take(&mut connection.heard);
            let frame = connection.handshake.open(frame).map_err(no_frame)?;
            return Ok(Some(frame));
        }
        connection.heard.resize(want, 0);
        let read = (&*connection.stream).read(&mut connection.heard[heard..]);
        connection
            .heard
            .truncate(heard + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(Ending::lost("it closed the connection without a word")),
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok(None),
                _ => return Err(Ending::Quiet(CallOutcome::Lost(error.to_string()))),
            },
        }
    }
}

fn no_frame(problem: FrameError) -> Ending {
    match problem {
        FrameError::Version(theirs) => {
            let reason = format!("that is version {theirs} of the protocol, here it is {VERSION}");
            Ending::Refuse(HandshakeRefusal::new(RefusalKind::Version, reason))
        }
        FrameError::ProtocolViolation => Ending::refuse("that is nothing of this protocol"),
        FrameError::NotOpened => {
            Ending::lost("it sent an encrypted frame that does not open: it was changed on its way")
        }
    }
}

/// Handles the other side's hello.
fn handle_hello(
    shared: &Shared,
    connection: &mut PendingConnection,
    hello: &Hello,
    frame: Vec<u8>,
    is_authenticated: bool,
) -> Result<(), Ending> {
    let me = &shared.me;
    connection
        .handshake
        .receive_hello(me, hello, frame)
        .map_err(Ending::Refuse)?;
    connection.phase = Phase::Proof;
    let Role::Called { expected } = connection.role else {
        return send_bytes(connection, connection.handshake.hello());
    };
    let id = hello.id;
    if let Some(expected) = expected.filter(|&expected| expected != id) {
        let mismatch = format!("member {id:032x} answers where member {expected:032x} was called");
        return Err(Ending::Quiet(CallOutcome::NotThere(mismatch.into())));
    }
    if id == me.id {
        return Err(Ending::Quiet(CallOutcome::Myself));
    }
    if let Some(address) = connection.handshake.other()
        && address.host == me.host
    {
        return Err(Ending::Quiet(CallOutcome::OnHost(address.clone())));
    }
    match shared.streams.fate_of(id) {
        None if is_authenticated => {
            let reason = format!("member {id:032x} has called, and is being connected");
            Err(Ending::Quiet(CallOutcome::Already(reason)))
        }
        None => {
            let proof = connection.handshake.prove();
            send_bytes(connection, &proof.map_err(|error| Ending::no_keys(&error))?)
        }
        Some(None) => Err(Ending::Quiet(CallOutcome::Connected(id))),
        Some(Some(cause)) => {
            let lost = format!("member {id:032x} was connected, and is lost: {cause}");
            Err(Ending::Quiet(CallOutcome::NotThere(lost.into())))
        }
    }
}

/// Handles a valid proof of a caller: it may become a peer, unless it is one.
fn accept_authenticated(
    shared: &Arc<Shared>,
    state: &mut State,
    number: u64,
) -> Result<(), Ending> {
    let callers = state.connections.values();
    let callers = callers.filter(|it| matches!(it.role, Role::Authenticated { .. }));
    let full = callers.count() >= AUTHENTICATED_MAX;
    let is_called = |id| is_calling(state, id);
    let Some(address) = state
        .connections
        .get(&number)
        .and_then(|it| it.handshake.other())
    else {
        return Ok(());
    };
    let (me, id) = (&shared.me, address.id);
    if id == me.id {
        return Err(Ending::refuse("that is this station itself"));
    }
    if address.host == me.host {
        let nearer = "it is on the same host, where one connects by shared memory";
        return Err(Ending::refuse(nearer));
    }
    match shared.streams.fate_of(id) {
        Some(None) => return Err(Ending::already(format!("member {id:032x} is connected"))),
        Some(Some(cause)) => {
            let lost = format!("member {id:032x} was connected, and is lost: {cause}");
            return Err(Ending::refuse(lost));
        }
        None if me.id < id && is_called(id) => {
            return Err(Ending::already(format!("member {id:032x} is being called")));
        }
        None if full || is_authenticated(state, id) => {
            return Err(Ending::already(format!(
                "member {id:032x} is being connected"
            )));
        }
        None => {}
    }
    let Some(connection) = state.connections.get_mut(&number) else {
        return Ok(());
    };
    let until = Instant::now() + AUTHENTICATED_WITHIN;
    connection.role = Role::Authenticated { until };
    path_selection::begin(shared, connection, number)
}

/// Whether this member has an authenticated incoming connection.
fn is_authenticated(state: &State, id: u128) -> bool {
    let mut callers = state.connections.values();
    callers.any(|it| {
        let callers = matches!(it.role, Role::Authenticated { .. });
        callers && it.handshake.other().is_some_and(|is| is.id == id)
    })
}

/// Whether this station has proved itself in a call to this member.
fn is_calling(state: &State, id: u128) -> bool {
    let mut calls = state.connections.values();
    calls.any(|it| {
        let called = matches!(it.role, Role::Called { .. });
        let hello = matches!(it.phase, Phase::Connecting | Phase::Hello);
        called && !hello && it.handshake.other().is_some_and(|is| is.id == id)
    })
}
