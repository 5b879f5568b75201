//! The one thread that serves all streams of a fabric; it sleeps in the kernel.

use core::time::Duration;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::links::LinkError;
use super::streams::{Fault, Link, Shared};
use crate::event::{create_event, write_event};
use crate::peers::{MEMBERS_MAX, Rank};

/// Most bytes that are taken from one stream before the next has its turn.
const BUFFER_LEN: usize = 1 << 18;

const EVENTS_MAX: usize = 64;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    From(Rank),
    To(Rank),
    Stop,
}

impl Source {
    fn token(self) -> EventData {
        EventData::new_u64(match self {
            Self::From(peer) => u64::from(peer.0) << 1,
            Self::To(peer) => u64::from(peer.0) << 1 | 1,
            Self::Stop => u64::MAX,
        })
    }

    fn of(token: EventData) -> Self {
        let token = token.u64();
        let peer = Rank((token >> 1) as u16);
        match token {
            u64::MAX => Self::Stop,
            _ if token & 1 == 0 => Self::From(peer),
            _ => Self::To(peer),
        }
    }
}

const _: () = assert!(MEMBERS_MAX <= 1 << 16);

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct IoThread {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// A child of a fork has this but not the thread.
    process: u32,
}

impl IoThread {
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, LinkError> {
        let stop = create_event()
            .map(Arc::new)
            .map_err(LinkError::system("making an event descriptor"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(LinkError::system("making an epoll descriptor"))?;
        watch_all(&epoll, &stop, &shared).map_err(LinkError::system("watching a stream"))?;
        let stopped = Arc::clone(&stop);
        let serve = move || {
            if let Err(errno) = serve(&epoll, &shared) {
                let fault = Fault::NoThread(errno.into());
                (0..shared.links.len()).for_each(|peer| shared.fail(Rank(peer as u16), &fault));
            }
            drop(stopped);
        };
        let thread = thread::Builder::new()
            .name("spindle-tcp".into())
            .spawn(serve)
            .map_err(LinkError::system(
                "starting the thread that serves the streams",
            ))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            process: std::process::id(),
        })
    }

    /// Whether this is the process that started it.
    pub(super) fn is_mine(&self) -> bool {
        self.process == std::process::id()
    }
}

fn watch_all(epoll: &OwnedFd, stop: &OwnedFd, shared: &Shared) -> Result<(), Errno> {
    epoll::add(epoll, stop, Source::Stop.token(), EventFlags::IN)?;
    for (peer, link) in shared.links.iter().enumerate() {
        let Some(link) = link else { continue };
        let peer = Rank(peer as u16);
        let (from, to) = (Source::From(peer).token(), Source::To(peer).token());
        epoll::add(epoll, &link.incoming.stream, from, EventFlags::IN)?;
        // Told once when it takes bytes again, so that nobody has to ask.
        let edges = EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(epoll, &link.outgoing.stream, to, edges)?;
    }
    Ok(())
}

fn serve(epoll: &OwnedFd, shared: &Shared) -> Result<(), Errno> {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut ending = Ending::default();
    loop {
        events.clear();
        let timeout = ending.tell_overdue(shared);
        match epoll::wait(epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        for event in &events {
            let (flags, source) = (event.flags, Source::of(event.data));
            match source {
                Source::Stop => return Ok(()),
                Source::From(peer) => with_link(shared, peer, |link| {
                    shared.receive(peer, link, &mut buffer);
                    if link.incoming.is_closed() {
                        epoll::delete(epoll, &link.incoming.stream)?;
                    }
                    Ok(())
                })?,
                Source::To(peer) => with_link(shared, peer, |link| {
                    let ends = EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP;
                    if shared.go_on(peer, link, flags.intersects(ends)) {
                        ending.add(peer, shared.patience);
                    }
                    Ok(())
                })?,
            }
        }
    }
}

/// Peers to which my stream has ended, with the time by which theirs must have.
#[derive(Debug, Default)]
struct Ending(Vec<(Instant, Rank)>);

impl Ending {
    fn add(&mut self, peer: Rank, patience: Duration) {
        let by = Instant::now().checked_add(patience);
        let known = self.0.iter().any(|&(_, known)| known == peer);
        self.0.extend(by.filter(|_| !known).map(|by| (by, peer)));
    }

    /// Tells of those whose time is over; returns how long the others have.
    fn tell_overdue(&mut self, shared: &Shared) -> Option<Timespec> {
        if self.0.is_empty() {
            return None;
        }
        let now = Instant::now();
        self.0.retain(|&(by, peer)| {
            let overdue = by <= now;
            if overdue {
                shared.fail(peer, &Fault::Ended);
            }
            !overdue
        });
        let next = self.0.iter().map(|(by, _)| *by).min()?;
        Timespec::try_from(next - now).ok()
    }
}

/// Tokens are of links that exist.
fn with_link(
    shared: &Shared,
    peer: Rank,
    serve: impl FnOnce(&Link) -> Result<(), Errno>,
) -> Result<(), Errno> {
    shared.links[peer.index()].as_ref().map_or(Ok(()), serve)
}

impl Drop for IoThread {
    fn drop(&mut self) {
        if !self.is_mine() {
            return;
        }
        // An event descriptor at 0 takes a 1.
        let _ = write_event(&self.stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_sources() {
        let ranks = [0, 1, MEMBERS_MAX as u16 - 1, u16::MAX].map(Rank);
        let sources = ranks.map(|rank| [Source::From(rank), Source::To(rank)]);
        for source in sources.into_iter().flatten().chain([Source::Stop]) {
            assert_eq!(Source::of(source.token()), source);
        }
    }
}
