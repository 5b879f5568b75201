//! Counts the system calls of a participant, and lets one of them fail.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};

use super::calls::{Call, Errno};
use super::place::Place;
use super::seccomp::{Listener, Notification};

/// A part of a run, in which positions are counted anew.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(super) enum Phase {
    /// C joins, and reads what B writes.
    Join,
    /// C creates a writer, writes, and deletes it.
    Change,
    /// C leaves.
    Leave,
    /// Where topics are logged: C joins again, with the log that it has left.
    Return,
    /// B leaves, and A, which is then alone.
    End,
}

/// Where calls are counted: a phase, a kind of call by its name, and a place.
pub(super) type Site = (Phase, &'static str, Place);

/// The call that fails: the `position`-th of its kind at the place in the phase, from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) phase: Phase,
    pub(super) call: &'static Call,
    pub(super) place: Place,
    pub(super) position: usize,
    pub(super) errno: Errno,
}

/// How many calls there are.
pub(super) type Counts = BTreeMap<Site, usize>;

/// Answers the calls of one process, in a thread of its own, until that process ends.
#[derive(Debug)]
pub(super) struct Injector {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that have to do with logs, and no others.
    logs_only: bool,
    /// Positions are counted, and a call fails, within a phase alone.
    phase: Option<Phase>,
    counts: Counts,
    target: Option<Target>,
    /// For so long after that call all of its kind fail.
    lasting: Duration,
    /// Which call has failed, and when, once it has.
    failed: Option<(String, Instant)>,
}

impl Injector {
    /// Begins to answer calls.
    pub(super) fn start(
        listener: OwnedFd,
        logs_only: bool,
        target: Option<Target>,
        lasting: Duration,
    ) -> Self {
        let state = Arc::new(Mutex::new(State {
            logs_only,
            target,
            lasting,
            ..State::default()
        }));
        let shared = state.clone();
        let listener = Listener::of(listener);
        let thread = std::thread::spawn(move || answer_calls(&listener, &shared));
        Self {
            state,
            thread: Some(thread),
        }
    }

    /// From now on calls are counted in this phase, or in none.
    pub(super) fn set_phase(&self, phase: Option<Phase>) {
        lock(&self.state).phase = phase;
    }

    /// Which call has failed: thread and arguments.
    pub(super) fn failed(&self) -> Option<String> {
        let state = lock(&self.state);
        state.failed.as_ref().map(|(call, _)| call.clone())
    }

    pub(super) fn counts(&self) -> Counts {
        lock(&self.state).counts.clone()
    }

    /// After the end of the process.
    pub(super) fn join(&mut self) -> io::Result<()> {
        let thread = self.thread.take().map(JoinHandle::join);
        match thread {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the injector has panicked")),
            None => Ok(()),
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer_calls(listener: &Listener, state: &Mutex<State>) -> io::Result<()> {
    loop {
        let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        let found = polled[0].revents();
        if found.contains(PollFlags::IN) {
            if let Some(call) = listener.receive()? {
                let errno = lock(state).handle_call(&call);
                listener.answer(&call, errno)?;
            }
        } else if found.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(());
        }
    }
}

impl State {
    /// Counts the call. Its errno, if it is the one that fails.
    fn handle_call(&mut self, found: &Notification) -> Option<i32> {
        let phase = self.phase?;
        let thread = found.thread;
        let link = |descriptor: u64| {
            let link = std::fs::read_link(format!("/proc/{thread}/fd/{descriptor}"));
            Some(link.ok()?.to_string_lossy().into_owned())
        };
        let call = Call::of(found.number, &found.arguments, link)?;
        let place = Place::of(found, link);
        if self.logs_only && !call.has_to_do_with_logs(place) {
            return None;
        }
        if let (Some((_, since)), Some(target)) = (&self.failed, self.target) {
            let fails = since.elapsed() < self.lasting && target.call.name == call.name;
            return fails.then_some(target.errno.code);
        }
        let count = self.counts.entry((phase, call.name, place)).or_default();
        let position = *count;
        *count += 1;
        let target = self.target?;
        let hit = target.phase == phase
            && target.call.name == call.name
            && target.place == place
            && target.position == position;
        if !hit {
            return None;
        }
        let arguments: Vec<String> = found
            .arguments
            .iter()
            .map(|it| format!("{it:#x}"))
            .collect();
        let about = link(found.arguments[0]).unwrap_or_default();
        let text = format!("{}({}) {about} at {place}", call.name, arguments.join(", "));
        self.failed = Some((text, Instant::now()));
        Some(target.errno.code)
    }
}
