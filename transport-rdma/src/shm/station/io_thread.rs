//! The background thread: lets in, reads, writes, and watches deaths. It waits
//! for nobody: what a peer does not take waits in that peer's queue.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::packet::Packet;
use super::packet_io;
use super::shared::{Shared, say};
use super::state::{Connection, Life, Role, State};
use crate::fabric::FailureCause;
use crate::shm::socket::{self, Deadline};

/// How long a connection may stay silent before it is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// Most connections that have not said hello yet; the oldest gives way.
const STRANGERS_MAX: usize = 64;

/// Pause after the system ran out of descriptors.
const REST: Duration = Duration::from_millis(5);

/// Most packets of one connection, and new connections, in one turn.
const TURN: usize = 64;

/// What is polled, and for what.
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
    /// Nobody is let in before: no descriptors were left.
    admit_after: Option<Instant>,
}

impl IoThread {
    pub(super) fn new(shared: Arc<Shared>, listener: OwnedFd) -> Self {
        Self {
            shared,
            listener: Arc::new(listener),
            admit_after: None,
        }
    }

    /// Until the station is dropped.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let (sources, deadline) = self.sources();
            let ready = match self.wait(sources, deadline) {
                Ok(ready) => ready,
                Err(errno) => {
                    self.give_up(errno);
                    return;
                }
            };
            let mut state = shared.state();
            if state.stopped {
                farewell(&mut state);
                return;
            }
            for (source, flags) in ready {
                self.attend(&mut state, source, flags);
            }
            self.look_at_the_clock(&mut state);
            drop(state);
            shared.notify();
        }
    }

    /// What to wait for, and until when.
    fn sources(&self) -> (Vec<Watched>, Option<Instant>) {
        let mut deadline = self.admit_after;
        let mut until = |end: Option<Instant>| {
            deadline = match (deadline, end) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        };
        let mut sources = Vec::new();
        let mut watch = |source, fd: &Arc<OwnedFd>, flags| {
            let fd = Arc::clone(fd);
            sources.push(Watched { source, fd, flags });
        };
        if self.admit_after.is_none() {
            watch(Source::Listener, &self.listener, PollFlags::IN);
        }
        let state = self.shared.state();
        for (&number, link) in &state.links {
            let mut flags = PollFlags::IN;
            if link.rest_until.is_none() && !link.out.is_empty() {
                flags |= PollFlags::OUT;
            }
            until(link.rest_until);
            if let Role::Stranger { until: end } = link.role {
                until(Some(end));
            }
            watch(Source::Connection(number), &link.socket, flags);
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

    fn attend(&mut self, state: &mut State, source: Source, flags: PollFlags) {
        match source {
            Source::Kick => {
                // Drawn empty, or it was.
                let _ = rustix::io::read(self.shared.kicked(), &mut [0; 8]);
            }
            Source::Listener => self.admit(state),
            Source::Connection(number) => {
                if flags.contains(PollFlags::OUT) {
                    packet_io::write(state, number);
                }
                if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    packet_io::read(&self.shared, state, number, TURN);
                }
            }
            Source::Lifeline(id) => {
                // What it said before is heard first.
                let link = match state.peers.get(&id).map(|peer| &peer.life) {
                    Some(Life::Open { link }) => Some(*link),
                    _ => None,
                };
                if let Some(link) = link {
                    packet_io::read(&self.shared, state, link, 64 * TURN);
                }
                state.close_peer(id, FailureCause::ProcessEnded, &self.shared.sleep);
            }
        }
    }

    /// Lets in who is of the same user.
    fn admit(&mut self, state: &mut State) {
        let user = rustix::process::geteuid().as_raw();
        for _ in 0..TURN {
            let connection = match socket::accept(&self.listener) {
                Ok(Some(connection)) => connection,
                Ok(None) => return,
                Err(errno) => {
                    tracing::warn!(%errno, "nobody is let in for a moment");
                    self.admit_after = Some(Instant::now() + REST);
                    return;
                }
            };
            let Ok((pid, uid)) = socket::peer(&connection) else {
                continue;
            };
            if uid != user {
                tracing::warn!(pid, uid, "a process of another user called");
                continue;
            }
            let strangers = state.links.iter();
            let mut strangers =
                strangers.filter(|(_, link)| matches!(link.role, Role::Stranger { .. }));
            let oldest = strangers.next().map(|(&number, _)| number);
            if strangers.count() + 1 >= STRANGERS_MAX
                && let Some(oldest) = oldest
            {
                state.links.remove(&oldest);
            }
            let until = Instant::now() + HELLO_WITHIN;
            state.add_link(Connection::new(connection, pid, Role::Stranger { until }));
        }
    }

    fn look_at_the_clock(&mut self, state: &mut State) {
        let now = Instant::now();
        if self.admit_after.is_some_and(|after| after <= now) {
            self.admit_after = None;
        }
        state
            .links
            .retain(|_, link| !matches!(link.role, Role::Stranger { until } if until <= now));
        for link in state.links.values_mut() {
            if link.rest_until.is_some_and(|until| until <= now) {
                link.rest_until = None;
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

    /// This thread cannot go on: nobody is reached any more.
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

/// Those who are there are told that this station closes.
fn farewell(state: &mut State) {
    let numbers: Vec<_> = state.links.keys().copied().collect();
    for number in numbers {
        packet_io::write(state, number);
        if let Some(link) = state.links.get(&number)
            && matches!(link.role, Role::Member(_))
        {
            say(&link.socket, &Packet::Bye);
        }
    }
    state.links.clear();
}
