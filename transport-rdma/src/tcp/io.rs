//! The one thread that serves all streams of a station; it sleeps in the kernel.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::shared::{Fault, Shared};
use crate::shm::JoinError;
use crate::station_error::StationError;

/// Most bytes that are taken from one stream before the next has its turn.
const BUFFER_LEN: usize = 1 << 18;

const EVENTS_MAX: usize = 64;

/// What an event is about: a link, by its number, or the station itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    From(u64),
    To(u64),
    Kick,
}

impl Source {
    pub(super) fn token(self) -> EventData {
        EventData::new_u64(match self {
            Self::From(link) => link << 1,
            Self::To(link) => link << 1 | 1,
            Self::Kick => u64::MAX,
        })
    }

    fn of(token: EventData) -> Self {
        match token.u64() {
            u64::MAX => Self::Kick,
            token if token & 1 == 0 => Self::From(token >> 1),
            token => Self::To(token >> 1),
        }
    }
}

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct IoThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// A child of a fork has this but not the thread.
    process: u32,
}

impl IoThread {
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Self, StationError> {
        let served = Arc::clone(shared);
        let serve = move || {
            if let Err(errno) = serve(&served) {
                let fault = Fault::NoThread(errno.into());
                let links: Vec<_> = served.state().links.values().cloned().collect();
                links.iter().for_each(|link| served.fail(link, &fault));
            }
        };
        let thread = thread::Builder::new()
            .name("spindle-tcp".into())
            .spawn(serve)
            .map_err(JoinError::system(
                "starting the thread that serves the streams",
            ))?;
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Some(thread),
            process: std::process::id(),
        })
    }

    /// Whether this is the process that started it.
    pub(super) fn is_mine(&self) -> bool {
        self.process == std::process::id()
    }
}

fn serve(shared: &Shared) -> Result<(), Errno> {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut ending = Ending::default();
    loop {
        events.clear();
        let timeout = ending.tell_overdue(shared);
        match epoll::wait(&shared.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        for event in &events {
            let (flags, source) = (event.flags, Source::of(event.data));
            match source {
                Source::Kick => {
                    if shared.stopped.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    // Before it looks: who kicks from now on is heard again.
                    let _ = rustix::io::read(&shared.kick, &mut [0; 8]);
                    shared.resume();
                }
                Source::From(number) => {
                    if let Some(link) = shared.link(number) {
                        shared.receive(&link, &mut buffer);
                    }
                }
                Source::To(number) => {
                    let ends = EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP;
                    if let Some(link) = shared.link(number)
                        && shared.go_on(&link, flags.intersects(ends))
                    {
                        ending.add(number, shared.patience);
                    }
                }
            }
        }
    }
}

/// Peers to which my stream has ended, with the time by which theirs must have.
#[derive(Debug, Default)]
struct Ending(Vec<(Instant, u64)>);

impl Ending {
    fn add(&mut self, link: u64, patience: Duration) {
        let by = Instant::now().checked_add(patience);
        let known = self.0.iter().any(|&(_, known)| known == link);
        self.0.extend(by.filter(|_| !known).map(|by| (by, link)));
    }

    /// Tells of those whose time is over; returns how long the others have.
    fn tell_overdue(&mut self, shared: &Shared) -> Option<Timespec> {
        if self.0.is_empty() {
            return None;
        }
        let now = Instant::now();
        self.0.retain(|&(by, number)| {
            let overdue = by <= now;
            if overdue && let Some(link) = shared.link(number) {
                shared.fail(&link, &Fault::Ended);
            }
            !overdue
        });
        let next = self.0.iter().map(|(by, _)| *by).min()?;
        Timespec::try_from(next - now).ok()
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        if !self.is_mine() {
            return;
        }
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.kick();
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
        let sources = [0, 1, 1 << 40].map(|link| [Source::From(link), Source::To(link)]);
        for source in sources.into_iter().flatten().chain([Source::Kick]) {
            assert_eq!(Source::of(source.token()), source);
        }
    }
}
