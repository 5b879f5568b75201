//! The processes of a measurement.
//!
//! They end with this process: on return, error and panic because dropping [`Children`] kills
//! them, and on a signal because each asks the kernel to be killed with its parent.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The processes that this one has started, in that order.
#[derive(Debug)]
pub(super) struct Children {
    running: Vec<Option<Child>>,
    events: Receiver<(usize, Event)>,
    sender: Sender<(usize, Event)>,
}

/// An event of a process.
#[derive(Debug)]
pub(super) enum Event {
    /// It printed a line.
    Line(String),
    /// It closed its output: it has ended, or ends now.
    Closed,
}

impl Children {
    pub(super) fn new() -> Self {
        let (sender, events) = channel();
        Self {
            running: Vec::new(),
            events,
            sender,
        }
    }

    /// Starts this program again with other arguments. The calling thread has to outlive the
    /// process: the kernel kills a child when the thread that started it ends.
    pub(super) fn start(&mut self, arguments: Vec<OsString>) -> io::Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take();
        let number = self.running.len();
        self.running.push(Some(child));
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let _ = sender.send((number, Event::Line(line)));
            }
            let _ = sender.send((number, Event::Closed));
        });
        Ok(())
    }

    /// The next event; `None` if there is none before `deadline`.
    pub(super) fn next_event(&self, deadline: Instant) -> Option<(usize, Event)> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    /// The exit status of a process. Waits a while for it to end, then kills it.
    pub(super) fn reap(&mut self, number: usize) -> io::Result<ExitStatus> {
        let Some(mut child) = self.running[number].take() else {
            return Ok(ExitStatus::default());
        };
        let deadline = Instant::now() + REAP_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill()?;
        child.wait()
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill();
        }
        for child in self.running.iter_mut().flatten() {
            let _ = child.wait();
        }
    }
}

/// What is wrong with an exit status, if anything.
pub(super) fn complaint(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal()) {
        (true, _) => None,
        (false, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (false, None) => Some(format!("ended with {status}")),
    }
}

/// In a worker: asks the kernel to kill this process when the parent ends. False if the parent
/// has ended already.
pub(super) fn die_with(parent: u32) -> bool {
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == parent
}

const REAP_WITHIN: Duration = Duration::from_secs(10);
