//! Deaths of peers, by the kernel's word.
//!
//! Every member hands the others a pidfd of itself, so there is no process id
//! that could be used again. One thread sleeps until one of them says that its
//! process has ended; it costs nothing until then.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::descriptor;
use super::error::JoinError;
use crate::event::write_event;
use crate::fabric::{Failure, FailureCause};
use crate::failures::Failures;
use crate::peers::Rank;

/// The watching thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// A child of a fork has this but not the thread.
    process: u32,
}

impl Watch {
    /// Watches `lifelines` (readable once their owner is dead); each death goes
    /// into `failures`, then `wake` is called.
    pub(super) fn start(
        lifelines: Vec<(Rank, OwnedFd)>,
        failures: Arc<Failures>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Self, JoinError> {
        let stop = Arc::new(descriptor::event()?);
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("spindle-watch".into())
            .spawn(move || watch(&stopped, lifelines, &failures, wake))
            .map_err(JoinError::system(
                "starting the thread that watches the peers",
            ))?;
        Ok(Self {
            stop,
            thread: Some(thread),
            process: std::process::id(),
        })
    }
}

fn watch(
    stop: &OwnedFd,
    mut lifelines: Vec<(Rank, OwnedFd)>,
    failures: &Failures,
    wake: impl Fn(),
) {
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        fds.extend(
            lifelines
                .iter()
                .map(|(_, fd)| PollFd::new(fd, PollFlags::IN)),
        );
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR | Errno::NOMEM) => continue,
            Err(errno) => {
                tracing::error!(%errno, "deaths of peers are no longer noticed");
                return;
            }
        }
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ended[0] {
            return;
        }
        let mut each = ended[1..].iter();
        lifelines.retain(|&(peer, _)| {
            let dead = each.next().is_some_and(|&dead| dead);
            if dead {
                let cause = FailureCause::ProcessEnded;
                failures.put(Failure { peer, cause });
            }
            !dead
        });
        wake();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        // An event descriptor at 0 takes a 1.
        let _ = write_event(&*self.stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
