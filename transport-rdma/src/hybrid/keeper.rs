//! The thread at the door: lets in, leads the handshakes, hands over who has passed.
//!
//! Both may call each other at the same moment. Then the call of the lower id counts:
//! who has proved itself in a call of its own and has the lower id refuses the other's.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::calling::no_answer;
use super::door::{Answer, Connection, Phase, Role, Shared, State};
use super::handshake::{self, Frame, HEADER_LEN, Hello, NoFrame, Talk, VERSION};
use super::listening::Listening;
use super::way::{self, Way};

/// How long a stranger has for all of the handshake.
const STRANGER_WITHIN: Duration = Duration::from_secs(2);

/// How long who has proved itself has for the rest.
const GUEST_WITHIN: Duration = Duration::from_secs(5);

/// Most of those at once; one more has to call again.
const GUESTS_MAX: usize = 64;

/// Most strangers at once; the oldest gives way.
const STRANGERS_MAX: usize = 64;

/// Pause after the system ran out of descriptors.
const REST: Duration = Duration::from_millis(5);

/// Most new connections in one turn.
const TURN: usize = 64;

/// What is ready.
#[derive(Debug, Clone, Copy)]
enum Source {
    Kick,
    Listener(usize),
    Connection(u64),
}

/// Why a connection ends here.
pub(super) enum End {
    /// It is told why.
    Refuse { already: bool, reason: String },
    /// It is told nothing.
    Quiet(Answer),
}

impl End {
    pub(super) fn refuse(reason: String) -> Self {
        Self::Refuse {
            already: false,
            reason,
        }
    }

    fn already(reason: String) -> Self {
        Self::Refuse {
            already: true,
            reason,
        }
    }

    fn lost(reason: &str) -> Self {
        Self::Quiet(Answer::Lost(reason.into()))
    }
}

#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    listening: Listening,
    /// Nobody is let in before: no descriptors were left.
    admit_after: Option<Instant>,
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>, listening: Listening) -> Self {
        Self {
            shared,
            listening,
            admit_after: None,
        }
    }

    /// Until the door is closed.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(errno) => {
                    tracing::error!(%errno, "nobody is let in or called any more");
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
                    // Drawn empty, or it was.
                    Source::Kick => drop(rustix::io::read(shared.kicked(), &mut [0; 8])),
                    Source::Listener(at) => self.admit(&mut state, at),
                    Source::Connection(number) => attend(&shared, &mut state, number),
                }
            }
            look(&shared, &mut state);
            let now = Instant::now();
            self.admit_after = self.admit_after.filter(|&after| now < after);
            self.listening.try_again(now);
            state.missing = self.listening.missing();
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
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        }
        let each = sources.into_iter().zip(&fds);
        let ready = each.filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }

    /// Connections, what each is to do, and when the first has no more time.
    #[expect(clippy::type_complexity, reason = "of one use")]
    fn watched(
        &self,
        state: MutexGuard<'_, State>,
    ) -> (Vec<(u64, Arc<TcpStream>, PollFlags)>, Option<Instant>) {
        let mut deadline = self
            .admit_after
            .into_iter()
            .chain(self.listening.due())
            .min();
        let mut watched = Vec::new();
        for (&number, connection) in &state.connections {
            let flags = match connection.phase {
                Phase::Connecting => Some(PollFlags::OUT),
                Phase::Hello | Phase::Proof | Phase::Offer | Phase::Verdict => Some(PollFlags::IN),
                // What it says has to wait.
                Phase::Pair => None,
            };
            let stream = || Arc::clone(&connection.stream);
            watched.extend(flags.map(|flags| (number, stream(), flags)));
            let ends = connection.role.until().into_iter();
            deadline = ends.chain(connection.way.deadline()).chain(deadline).min();
        }
        (watched, deadline)
    }

    fn admit(&mut self, state: &mut State, at: usize) {
        for _ in 0..TURN {
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
                        tracing::warn!(%error, "nobody is let in for a moment");
                        self.admit_after = Some(Instant::now() + REST);
                        return;
                    }
                },
            };
            let talk = match Talk::new(&self.shared.me, handshake::Role::Called) {
                Ok(talk) => talk,
                Err(error) => {
                    tracing::error!(%error, "a caller is turned away");
                    continue;
                }
            };
            let is_stranger = |it: &Connection| matches!(it.role, Role::Stranger { .. });
            let strangers = || state.connections.iter().filter(|(_, it)| is_stranger(it));
            let oldest = strangers().next().map(|(&number, _)| number);
            if strangers().count() >= STRANGERS_MAX
                && let Some(oldest) = oldest
            {
                state.connections.remove(&oldest);
            }
            let until = Instant::now() + STRANGER_WITHIN;
            state.add(Connection {
                stream: Arc::new(stream),
                role: Role::Stranger { until },
                phase: Phase::Hello,
                talk,
                way: Way::default(),
                heard: Vec::new(),
            });
        }
    }
}

/// Something has come on a connection, or it is one by now.
fn attend(shared: &Arc<Shared>, state: &mut State, number: u64) {
    if let Err(end) = go_on(shared, state, number) {
        stop(state, number, end);
    }
}

/// Those whose queue pairs have come further.
fn look(shared: &Shared, state: &mut State) {
    let numbers: Vec<u64> = state.connections.keys().copied().collect();
    for number in numbers {
        let looked = match state.connections.get_mut(&number) {
            Some(connection) => way::look(shared, connection),
            None => continue,
        };
        if let Err(end) = looked.and_then(|()| settle(shared, state, number)) {
            stop(state, number, end);
        }
    }
}

/// Peers, if both have given their verdicts.
fn settle(shared: &Shared, state: &mut State, number: u64) -> Result<(), End> {
    match state.connections.get(&number) {
        Some(connection) if way::is_settled(connection) => way::connect(shared, state, number),
        _ => Ok(()),
    }
}

fn stop(state: &mut State, number: u64, end: End) {
    let answer = match end {
        End::Quiet(answer) => answer,
        End::Refuse { already, reason } => {
            tracing::debug!(reason, "a connection is refused");
            if let Some(connection) = state.connections.get(&number) {
                let reason = reason.clone();
                // It is closed in any case; what is unread then would reset it.
                let _ = say(connection, &Frame::Refused { already, reason }.write());
                let _ = connection.stream.shutdown(Shutdown::Write);
                let _ = (&*connection.stream).read(&mut [0; 4096]);
            }
            match already {
                true => Answer::Already(reason),
                false => Answer::Refused(reason),
            }
        }
    };
    state.end(number, answer);
}

/// As far as it goes.
fn go_on(shared: &Arc<Shared>, state: &mut State, number: u64) -> Result<(), End> {
    // Ended by another in the same turn.
    while let Some(connection) = state.connections.get_mut(&number) {
        if connection.phase == Phase::Connecting {
            let stream = &connection.stream;
            let failed = stream.take_error().unwrap_or_else(Some);
            // Where nobody listens, a socket of the same port connects to itself.
            let is_itself = stream.local_addr().ok() == stream.peer_addr().ok();
            let failed = failed.or_else(|| is_itself.then(|| Errno::CONNREFUSED.into()));
            if let Some(error) = failed {
                return Err(End::Quiet(Answer::Nobody(no_answer(error))));
            }
            say(connection, connection.talk.hello())?;
            connection.phase = Phase::Hello;
        }
        if connection.phase == Phase::Pair {
            return Ok(());
        }
        let Some(bytes) = read(connection)? else {
            return Ok(());
        };
        match (Frame::read(&bytes), connection.phase) {
            (Some(Frame::Refused { already, reason }), _) => {
                return Err(End::Quiet(match already {
                    true => Answer::Already(reason),
                    false => Answer::Refused(reason),
                }));
            }
            (Some(Frame::Hello(hello)), Phase::Hello) => {
                let is_guest = is_guest(state, hello.id);
                let Some(connection) = state.connections.get_mut(&number) else {
                    return Ok(());
                };
                greet(shared, connection, &hello, bytes, is_guest)?;
            }
            (Some(Frame::Proof(proof)), Phase::Proof) => {
                let checked = connection.talk.check(&shared.me, &proof);
                checked.map_err(End::refuse)?;
                match connection.role {
                    Role::Called { .. } => connection.phase = Phase::Offer,
                    Role::Stranger { .. } | Role::Guest { .. } => {
                        admit_guest(shared, state, number)?;
                    }
                }
            }
            (Some(Frame::Offer(offer)), Phase::Offer) => {
                way::hear_offer(shared, connection, number, offer)?;
            }
            (Some(Frame::Verdict(theirs)), Phase::Offer | Phase::Verdict) => {
                way::hear_verdict(connection, theirs)?;
                settle(shared, state, number)?;
            }
            _ => return Err(End::refuse("it sent what does not belong here".into())),
        }
    }
    Ok(())
}

/// Reads on to the end of a frame, and no further; `None` if it has not come.
fn read(connection: &mut Connection) -> Result<Option<Vec<u8>>, End> {
    loop {
        let heard = connection.heard.len();
        let want = match connection.heard.first_chunk() {
            None => HEADER_LEN,
            Some(&header) => HEADER_LEN + handshake::body_len(header).map_err(no_frame)?,
        };
        if heard >= HEADER_LEN && heard == want {
            return Ok(Some(core::mem::take(&mut connection.heard)));
        }
        connection.heard.resize(want, 0);
        let read = (&*connection.stream).read(&mut connection.heard[heard..]);
        connection
            .heard
            .truncate(heard + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(End::lost("it closed the connection without a word")),
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok(None),
                _ => return Err(End::Quiet(Answer::Lost(error.to_string()))),
            },
        }
    }
}

fn no_frame(problem: NoFrame) -> End {
    End::refuse(match problem {
        NoFrame::Version(theirs) => {
            format!("that is version {theirs} of the protocol, here it is {VERSION}")
        }
        NoFrame::Nonsense => "that is nothing of this protocol".to_owned(),
    })
}

/// Both know who the other says it is.
fn greet(
    shared: &Shared,
    connection: &mut Connection,
    hello: &Hello,
    frame: Vec<u8>,
    is_guest: bool,
) -> Result<(), End> {
    let me = &shared.me;
    connection
        .talk
        .hear(me, hello, frame)
        .map_err(End::refuse)?;
    connection.phase = Phase::Proof;
    let Role::Called { expected } = connection.role else {
        return say(connection, connection.talk.hello());
    };
    let id = hello.id;
    if let Some(expected) = expected.filter(|&expected| expected != id) {
        let who = format!("member {id:032x} answers where member {expected:032x} was called");
        return Err(End::Quiet(Answer::Nobody(who)));
    }
    if id == me.id {
        return Err(End::Quiet(Answer::Myself));
    }
    if let Some(address) = connection.talk.other()
        && address.host == me.host
    {
        return Err(End::Quiet(Answer::OnHost(address.clone())));
    }
    match shared.streams.fate_of(id) {
        None if is_guest => {
            let reason = format!("member {id:032x} has called, and is being let in");
            Err(End::Quiet(Answer::Already(reason)))
        }
        None => say(connection, &connection.talk.proof(me)),
        Some(None) => Err(End::Quiet(Answer::Connected(id))),
        Some(Some(cause)) => {
            let lost = format!("member {id:032x} was connected, and is lost: {cause}");
            Err(End::Quiet(Answer::Nobody(lost)))
        }
    }
}

/// The caller has proved who it is: it may be a peer, unless it is one already.
fn admit_guest(shared: &Arc<Shared>, state: &mut State, number: u64) -> Result<(), End> {
    let guests = state.connections.values();
    let guests = guests.filter(|it| matches!(it.role, Role::Guest { .. }));
    let full = guests.count() >= GUESTS_MAX;
    let is_called = |id| is_calling(state, id);
    let Some(address) = state
        .connections
        .get(&number)
        .and_then(|it| it.talk.other())
    else {
        return Ok(());
    };
    let (me, id) = (&shared.me, address.id);
    if id == me.id {
        return Err(End::refuse("that is this station itself".into()));
    }
    if address.host == me.host {
        let nearer = "it is on the same host, where one connects by shared memory";
        return Err(End::refuse(nearer.into()));
    }
    match shared.streams.fate_of(id) {
        Some(None) => return Err(End::already(format!("member {id:032x} is connected"))),
        Some(Some(cause)) => {
            let lost = format!("member {id:032x} was connected, and is lost: {cause}");
            return Err(End::refuse(lost));
        }
        None if me.id < id && is_called(id) => {
            return Err(End::already(format!("member {id:032x} is being called")));
        }
        None if full || is_guest(state, id) => {
            return Err(End::already(format!("member {id:032x} is being let in")));
        }
        None => {}
    }
    let Some(connection) = state.connections.get_mut(&number) else {
        return Ok(());
    };
    let until = Instant::now() + GUEST_WITHIN;
    connection.role = Role::Guest { until };
    way::begin(shared, connection, number)
}

/// Whether it has called, and proved itself.
fn is_guest(state: &State, id: u128) -> bool {
    let mut guests = state.connections.values();
    guests.any(|it| {
        let guest = matches!(it.role, Role::Guest { .. });
        guest && it.talk.other().is_some_and(|is| is.id == id)
    })
}

/// Whether I have proved who I am in a call of mine.
fn is_calling(state: &State, id: u128) -> bool {
    let mut calls = state.connections.values();
    calls.any(|it| {
        let called = matches!(it.role, Role::Called { .. });
        let hello = matches!(it.phase, Phase::Connecting | Phase::Hello);
        called && !hello && it.talk.other().is_some_and(|is| is.id == id)
    })
}

/// All of it at once: so little always fits.
pub(super) fn say(connection: &Connection, bytes: &[u8]) -> Result<(), End> {
    match (&*connection.stream).write(bytes) {
        Ok(len) if len == bytes.len() => Ok(()),
        Ok(_) => Err(End::lost("it takes nothing")),
        Err(error) => Err(End::Quiet(Answer::Lost(error.to_string()))),
    }
}
