//! The I/O thread of a station: accepts, reads, writes, and watches processes end. It never
//! waits for a peer: what a peer does not read waits in that peer's queue. Every few seconds it
//! looks whether the domain's files are still there.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::Shutdown;

use super::looks::Looks;
use super::packet::Packet;
use super::packet_io;
use super::shared::Shared;
use super::state::{Connection, Life, Role, State, try_send};
use crate::fabric::FailureCause;
use crate::retry::{self, Classified};
use crate::shm::socket::{self, Deadline};

/// How long a new connection may stay silent before it is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// Most connections that have not said hello yet; beyond that the oldest is closed.
const STRANGERS_MAX: usize = 64;

/// Pause in accepting, or in polling, after the system ran out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(5);

/// Most packets of one connection, and most new connections, handled in one round.
const ROUND_MAX: usize = 64;

/// A descriptor to poll, and for what.
struct Watched {
    source: Source,
    fd: Arc<OwnedFd>,
    flags: PollFlags,
}

enum Source {
    Kick,
    Listener,
    Connection(u64),
    Lifeline(u128),
}

pub(super) struct IoThread {
    shared: Arc<Shared>,
    listener: Arc<OwnedFd>,
    /// No connection is accepted before this time: there were no descriptors left.
    admit_after: Option<Instant>,
    /// When to look for the domain's files.
    looks: Looks,
    /// Given up for a moment when no descriptors are left, so that a caller is told why it is
    /// turned away.
    spare: Option<OwnedFd>,
}

impl IoThread {
    pub(super) fn new(shared: Arc<Shared>, listener: OwnedFd) -> Self {
        let spare = spare_descriptor(&shared);
        Self {
            shared,
            listener: Arc::new(listener),
            admit_after: None,
            looks: Looks::new(Instant::now()),
            spare,
        }
    }

    /// Runs until the station is closed.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let (sources, deadline) = self.sources();
            let ready = match self.wait(sources, deadline) {
                Ok(ready) => ready,
                Err(errno) if errno.may_pass() => {
                    tracing::warn!(%errno, "reaching peers pauses for a moment");
                    thread::sleep(PAUSE);
                    Vec::new()
                }
                Err(errno) => {
                    self.give_up(errno);
                    return;
                }
            };
            let mut state = shared.state();
            if state.stopped {
                send_byes(&mut state);
                return;
            }
            for (source, flags) in ready {
                self.handle(&mut state, source, flags);
            }
            self.expire_deadlines(&mut state);
            drop(state);
            shared.notify();
            let is_missing = shared.is_socket_missing();
            if self.looks.is_due(is_missing, Instant::now()) {
                self.look();
            }
        }
    }

    /// What to wait for, and until when.
    fn sources(&self) -> (Vec<Watched>, Option<Instant>) {
        let mut deadline = Some(self.looks.next);
        let mut until = |end: Option<Instant>| {
            deadline = match (deadline, end) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        };
        until(self.admit_after);
        let mut sources = Vec::new();
        let mut watch = |source, fd: &Arc<OwnedFd>, flags| {
            let fd = Arc::clone(fd);
            sources.push(Watched { source, fd, flags });
        };
        if self.admit_after.is_none() {
            watch(Source::Listener, &self.listener, PollFlags::IN);
        }
        let state = self.shared.state();
        for (&number, connection) in &state.connections {
            let mut flags = match connection.paused_until {
                None => PollFlags::IN,
                Some(_) => PollFlags::empty(),
            };
            if connection.paused_until.is_none() && !connection.out.is_empty() {
                flags |= PollFlags::OUT;
            }
            until(connection.paused_until);
            if let Role::Stranger { until: end } = connection.role {
                until(Some(end));
            }
            watch(Source::Connection(number), &connection.socket, flags);
        }
        for (&id, peer) in &state.peers {
            match peer.life {
                Life::Open { .. } => {}
                Life::Closing { until: end } => until(Some(end)),
                Life::Closed(_) => continue,
            }
            watch(Source::Lifeline(id), &peer.lifeline, PollFlags::IN);
        }
        (sources, deadline)
    }

    fn wait(
        &self,
        sources: Vec<Watched>,
        deadline: Option<Instant>,
    ) -> Result<Vec<(Source, PollFlags)>, Errno> {
        let mut fds = vec![PollFd::new(self.shared.kicked(), PollFlags::IN)];
        let rest = sources.iter();
        fds.extend(rest.map(|watched| PollFd::new(&watched.fd, watched.flags)));
        socket::wait(&mut fds, Deadline::at(deadline))?;
        let flags: Vec<_> = fds.iter().map(PollFd::revents).collect();
        let sources = sources.into_iter().map(|watched| watched.source);
        let each = core::iter::once(Source::Kick).chain(sources).zip(flags);
        Ok(each.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn handle(&mut self, state: &mut State, source: Source, flags: PollFlags) {
        match source {
            Source::Kick => {
                // Resets the event descriptor.
                let _ = rustix::io::read(self.shared.kicked(), &mut [0; 8]);
            }
            Source::Listener => self.accept_connections(state),
            Source::Connection(number) => {
                if flags.contains(PollFlags::OUT) {
                    packet_io::write(state, number);
                }
                if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    packet_io::read(&self.shared, state, number, ROUND_MAX);
                }
            }
            Source::Lifeline(id) => {
                // Packets that it sent before its end are read first.
                let connection = match state.peers.get(&id).map(|peer| &peer.life) {
                    Some(Life::Open { connection }) => Some(*connection),
                    _ => None,
                };
                if let Some(connection) = connection {
                    packet_io::read(&self.shared, state, connection, 64 * ROUND_MAX);
                }
                state.close_peer(id, FailureCause::ProcessEnded, &self.shared.sleep);
            }
        }
    }

    /// Accepts connections from processes of the same user.
    fn accept_connections(&mut self, state: &mut State) {
        let user = rustix::process::geteuid().as_raw();
        for _ in 0..ROUND_MAX {
            let connection = match socket::accept(&self.listener) {
                Ok(Some(connection)) => connection,
                Ok(None) => return,
                Err(errno @ (Errno::MFILE | Errno::NFILE)) if self.spare.is_some() => {
                    match self.turn_away(errno) {
                        true => continue,
                        false => return,
                    }
                }
                Err(errno) => {
                    tracing::warn!(%errno, "accepting pauses for a moment");
                    self.admit_after = Some(Instant::now() + PAUSE);
                    return;
                }
            };
            let (pid, uid) = match retry::repeat(|| socket::peer(&connection)) {
                Ok(peer) => peer,
                Err(errno) => {
                    let pid = std::process::id();
                    let reason = format!("process {pid} cannot look at its caller: {errno}");
                    refuse_unheard(&connection, reason);
                    continue;
                }
            };
            if uid != user {
                tracing::warn!(pid, uid, "a process of another user called");
                continue;
            }
            let strangers = state.connections.iter();
            let mut strangers = strangers
                .filter(|(_, connection)| matches!(connection.role, Role::Stranger { .. }));
            let oldest = strangers.next().map(|(&number, _)| number);
            if strangers.count() + 1 >= STRANGERS_MAX
                && let Some(oldest) = oldest
            {
                state.connections.remove(&oldest);
            }
            let until = Instant::now() + HELLO_WITHIN;
            state.add_connection(Connection::new(connection, pid, Role::Stranger { until }));
        }
    }

    /// Accepts a caller by the spare descriptor, and refuses it. False if there is none.
    fn turn_away(&mut self, errno: Errno) -> bool {
        self.spare = None;
        let caller = socket::accept(&self.listener).ok().flatten();
        if let Some(caller) = &caller {
            let pid = std::process::id();
            let reason = format!("process {pid} has no descriptors left (ulimit -n): {errno}");
            refuse_unheard(caller, reason);
        }
        let was_there = caller.is_some();
        drop(caller);
        self.spare = spare_descriptor(&self.shared);
        if !was_there {
            self.admit_after = Some(Instant::now() + PAUSE);
        }
        was_there
    }

    /// Looks whether the domain's record and this station's socket are still at their paths.
    fn look(&mut self) {
        self.shared.domain.look();
        self.looks = Looks::new(Instant::now());
        match self.shared.listen_again() {
            Ok(Some(listener)) => {
                // Calls that have come to the one before are taken first.
                self.accept_connections(&mut self.shared.clone().state());
                self.listener = Arc::new(listener);
                let domain = &self.shared.domain;
                let file = domain.file_name(&self.shared.address.file());
                let path = domain.path().join(file);
                tracing::warn!(
                    path = %path.display(),
                    "the socket of a station was removed: it is made anew"
                );
            }
            Ok(None) => {}
            // The lock is held, or the directory is not there, which the domain has logged.
            Err(error) => {
                tracing::debug!(%error, "the socket of a station is not made anew");
                self.looks.failed(Instant::now());
            }
        }
    }

    fn expire_deadlines(&mut self, state: &mut State) {
        let now = Instant::now();
        if self.admit_after.is_some_and(|after| after <= now) {
            self.admit_after = None;
        }
        state.connections.retain(
            |_, connection| !matches!(connection.role, Role::Stranger { until } if until <= now),
        );
        for connection in state.connections.values_mut() {
            if connection.paused_until.is_some_and(|until| until <= now) {
                connection.paused_until = None;
            }
        }
        let over = |life: &Life| matches!(life, Life::Closing { until } if *until <= now);
        let peers = state.peers.iter().filter(|(_, peer)| over(&peer.life));
        for id in peers.map(|(&id, _)| id).collect::<Vec<_>>() {
            let cause =
                FailureCause::Unreachable("its connection broke, and its process lives".into());
            state.close_peer(id, cause, &self.shared.sleep);
        }
    }

    /// Polling has failed: no peer can be reached any more.
    fn give_up(&self, errno: Errno) {
        tracing::error!(%errno, "peers are no longer reached");
        let mut state = self.shared.state();
        for id in state.peers.keys().copied().collect::<Vec<_>>() {
            let cause = FailureCause::Unreachable(format!("polling failed: {errno}"));
            state.close_peer(id, cause, &self.shared.sleep);
        }
        drop(state);
        self.shared.notify();
    }
}

/// A descriptor that can be given up.
fn spare_descriptor(shared: &Shared) -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(shared.kicked(), 0).ok()
}

/// Refuses a connection whose first packet is not handled.
fn refuse_unheard(connection: &OwnedFd, reason: String) {
    tracing::warn!(reason, "a caller is refused");
    // Unread packets would cause a reset, and the refusal would get lost.
    let _ = rustix::net::shutdown(connection, Shutdown::Read);
    let _ = socket::receive(connection);
    let already = false;
    try_send(connection, &Packet::Refused { already, reason });
}

/// Tells all peers that this station closes.
fn send_byes(state: &mut State) {
    let numbers: Vec<_> = state.connections.keys().copied().collect();
    for number in numbers {
        packet_io::write(state, number);
        if let Some(connection) = state.connections.get(&number)
            && matches!(connection.role, Role::Member(_))
        {
            try_send(&connection.socket, &Packet::Bye);
        }
    }
    state.connections.clear();
}
