//! The thread that serves all streams of a station. It blocks in epoll only.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::due_links::link_numbers;
use super::fault::Fault;
use super::shared::Shared;
use super::source::Source;
use crate::fork::OwnerProcess;
use crate::library_thread::LibraryThread;
use crate::shm::error::SetupError;
use crate::station::error::StationError;
use crate::thread_settings::ThreadSettings;

/// Most bytes that are read from one stream before the next one is served.
const BUFFER_LEN: usize = 1 << 18;

const EVENTS_MAX: usize = 64;

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct IoThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this value, but not the thread.
    owner: OwnerProcess,
}

impl IoThread {
    pub(super) fn start(
        shared: &Arc<Shared>,
        settings: &ThreadSettings,
    ) -> Result<Self, StationError> {
        let served = Arc::clone(shared);
        let serve = move || {
            if let Err(errno) = serve(&served) {
                let fault = Fault::NoThread(errno.into());
                let links: Vec<_> = served.state().links.values().cloned().collect();
                links.iter().for_each(|link| served.fail(link, &fault));
            }
        };
        let thread = LibraryThread::named("spindle-tcp")
            .spawn_with(settings, serve)
            .map_err(SetupError::system(
                "starting the thread that serves the streams",
            ))?;
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Mutex::new(Some(thread)),
            owner: OwnerProcess::this(),
        })
    }

    /// Ends the thread once the peers have been told, or their time is over. Idempotent.
    pub(super) fn stop(&self) {
        if self.owner.is_inherited() {
            return;
        }
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.shared.stop();
        // A panic was reported by its hook.
        let _ = thread.join();
    }
}

fn serve(shared: &Shared) -> Result<(), Errno> {
    let mut buffer = vec![0; BUFFER_LEN];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    let mut due = link_numbers();
    loop {
        shared.send_due(&mut due);
        let (overdue, stalled) = (shared.remove_overdue(), shared.send_stalled());
        let next = overdue.into_iter().chain(stalled).min();
        if shared.is_over() {
            return Ok(());
        }
        events.clear();
        let timeout = match shared.due.begin_sleep() {
            true => next.and_then(|left| Timespec::try_from(left).ok()),
            false => Some(Timespec::default()),
        };
        let waited = epoll::wait(&shared.epoll, spare_capacity(&mut events), timeout.as_ref());
        shared.due.end_sleep();
        match waited {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        }
        for event in &events {
            let (flags, source) = (event.flags, Source::of(event.data));
            match source {
                Source::Kick => {
                    // Reset before the work is looked for: a later kick is seen again.
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
