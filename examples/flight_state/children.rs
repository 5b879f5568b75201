//! The processes of a run: started, listened to, and never left behind.
//!
//! However this process ends, they end: on return, error and panic because dropping
//! [`Children`] kills them, and on a signal because each asks the kernel to be killed
//! with its parent.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The processes that this one has started, by the order of starting.
#[derive(Debug)]
pub(crate) struct Children {
    running: Vec<Option<Child>>,
    events: Receiver<(usize, Event)>,
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

    /// Starts this program once more with other arguments. The thread that calls
    /// this has to outlive the process.
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

    /// Ends the standard input of a process.
    pub(crate) fn end_input(&mut self, number: usize) {
        if let Some(child) = &mut self.running[number] {
            drop(child.stdin.take());
        }
    }

    /// Sends a signal to a process, unless it was seen to have ended.
    pub(crate) fn signal(&self, number: usize, signal: Signal) -> io::Result<()> {
        let child = self.running[number].as_ref();
        let pid = child.and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        match pid {
            Some(pid) => Ok(rustix::process::kill_process(pid, signal)?),
            None => Ok(()),
        }
    }

    /// The next event, or nothing if there is none until `deadline`.
    pub(crate) fn next_event(&self, deadline: Instant) -> Option<(usize, Event)> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    /// How a process ended, waiting a little for one that is about to; one that does
    /// not end is killed.
    pub(crate) fn reap(&mut self, number: usize) -> io::Result<ExitStatus> {
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

/// What is wrong with a process that ended this way, if anything.
pub(crate) fn complaint(status: ExitStatus) -> Option<String> {
    match (status.success(), status.signal()) {
        (true, _) => None,
        (false, Some(signal)) => Some(format!("was killed by signal {signal}")),
        (false, None) => Some(format!("ended with {status}")),
    }
}

/// In a process that was started: asks to be killed when the parent ends. False if
/// it has ended already.
pub(crate) fn die_with(parent: u32) -> bool {
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == parent
}

const REAP_WITHIN: Duration = Duration::from_secs(10);
