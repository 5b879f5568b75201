//! The thread that serves all queue pairs of a station. It blocks in poll only.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::error::RdmaError;
use super::shared::Shared;
use crate::fork::OwnerProcess;
use crate::library_thread::LibraryThread;
use crate::sleep::eventfd::signal_eventfd;
use crate::thread_settings::ThreadSettings;

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct CompletionThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A child of a fork has this value, but not the thread.
    owner: OwnerProcess,
}

impl CompletionThread {
    pub(super) fn start(
        shared: &Arc<Shared>,
        settings: &ThreadSettings,
    ) -> Result<Self, RdmaError> {
        let served = Arc::clone(shared);
        let serve = move || {
            if let Err(errno) = serve(&served) {
                for link in served.links().iter() {
                    let reason = format!("the thread that serves queue pairs has ended: {errno}");
                    served.fail(link, reason);
                }
            }
        };
        let thread = LibraryThread::named("spindle-verbs");
        let thread = thread
            .spawn_with(settings, serve)
            .map_err(|source| RdmaError::System {
                what: "starting the thread that serves queue pairs",
                source,
            })?;
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Mutex::new(Some(thread)),
            owner: OwnerProcess::this(),
        })
    }

    fn stop(&self) {
        if self.owner.is_inherited() {
            return;
        }
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        // A full event descriptor is readable already.
        let _ = signal_eventfd(&self.shared.kick);
        // A panic was reported by its hook.
        let _ = thread.join();
        self.shared.stop();
    }
}

fn serve(shared: &Shared) -> Result<(), Errno> {
    loop {
        let (channel, device) = (shared.channel.as_fd(), shared.device.context.as_fd());
        let mut fds = [channel, device, shared.kick.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match rustix::event::poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let [channel, device, kick] = fds.map(|fd| !fd.revents().is_empty());
        if kick {
            return Ok(());
        }
        if channel {
            while let Some(number) = shared.channel.next() {
                shared.handle_completions(number);
            }
        }
        if device {
            shared.handle_device_events();
        }
    }
}

impl Drop for CompletionThread {
    fn drop(&mut self) {
        self.stop();
    }
}
