//! The processes that a command starts: listened to, signalled, and never left behind.
//!
//! They end however this process ends: on return, error and panic because dropping
//! [`Children`] kills them, and on a signal because each has asked the kernel to be killed
//! with its parent.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The processes that this one has started, numbered in the order of starting.
#[derive(Debug)]
pub(crate) struct Children {
    /// `None` once a process has been reaped.
    running: Vec<Option<Child>>,
    events: Receiver<(usize, Event)>,
    /// Cloned for the thread that reads the output of each process.
    sender: Sender<(usize, Event)>,
}

/// Something that a process did.
#[derive(Debug)]
pub(crate) enum Event {
    /// It printed a line.
    Line(String),
    /// It closed its output: it has ended or is about to.
    Closed,
}

impl Children {
    pub(crate) fn new() -> Self {
        let (sender, events) = channel();
        Self {
            running: Vec::new(),
            events,
            sender,
        }
    }

    /// Starts this program once more with other arguments. The calling thread has to outlive
    /// the process: the kernel takes the end of that thread for the end of the parent.
    pub(crate) fn start(&mut self, arguments: Vec<OsString>) -> io::Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
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

    /// Closes the standard input of a process.
    pub(crate) fn close_input(&mut self, number: usize) {
        if let Some(child) = &mut self.running[number] {
            drop(child.stdin.take());
        }
    }

    /// Sends a signal to a process, unless it has been reaped.
    pub(crate) fn signal(&self, number: usize, signal: Signal) -> io::Result<()> {
        let child = self.running[number].as_ref();
        let pid = child.and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        match pid {
            Some(pid) => Ok(rustix::process::kill_process(pid, signal)?),
            None => Ok(()),
        }
    }

    /// The next event with the number of its process; `None` if there is none until `deadline`.
    pub(crate) fn next_event(&self, deadline: Instant) -> Option<(usize, Event)> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    /// The exit status of a process that has closed its output. It is killed if it does not
    /// end soon.
    pub(crate) fn reap(&mut self, number: usize) -> io::Result<ExitStatus> {
        let Some(mut child) = self.running[number].take() else {
            return Ok(ExitStatus::default());
        };
        let deadline = Instant::now() + REAP_WITHIN;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(POLL_EVERY);
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

/// How a process failed, in words; `None` if it succeeded.
pub(crate) fn describe_failure(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal()) {
        (true, _) => None,
        (false, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (false, None) => Some(format!("ended with {status}")),
    }
}

/// Called by a process that was started: asks the kernel to kill it when the parent ends.
/// False if the parent has ended already.
pub(crate) fn die_with_parent(parent: u32) -> bool {
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == parent
}

const REAP_WITHIN: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(1);
