//! The one thread that serves all streams of a station; it sleeps in the kernel.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::shared::{Fault, Shared};
use crate::shm::SetupError;
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
    thread: Mutex<Option<JoinHandle<()>>>,
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
            .map_err(SetupError::system(
                "starting the thread that serves the streams",
            ))?;
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    /// Ends it once its peers have been told, or have had their time. Once is enough.
    pub(super) fn stop(&self) {
        if self.process != std::process::id() {
            return;
        }
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.shared.stop();
        // It has nothing to say if it panicked.
        let _ = thread.join();
    }
}

fn serve(shared: &Shared) -> Result<(), Errno> {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        let next = shared.remove_overdue();
        if shared.is_over() {
            return Ok(());
        }
        events.clear();
        let timeout = next.and_then(|left| Timespec::try_from(left).ok());
        match epoll::wait(&shared.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        for event in &events {
            let (flags, source) = (event.flags, Source::of(event.data));
            match source {
                Source::Kick => {
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
                    if let Some(link) = shared.link(number) {
                        shared.go_on(&link, flags.intersects(ends));
                    }
                }
            }
        }
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        self.stop();
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
