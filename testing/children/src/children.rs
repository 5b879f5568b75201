//! Processes that are started, signalled, reported on, and never left behind.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The processes that this one has started, numbered in the order of starting. Dropping it kills
/// them.
#[derive(Debug)]
pub struct Children {
    /// `None` once a process has been reaped.
    running: Vec<Option<Child>>,
    events: Receiver<(usize, ChildEvent)>,
    /// Cloned for the thread that reads the output of each process.
    sender: Sender<(usize, ChildEvent)>,
}

/// Something that a process did.
#[derive(Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// It printed a line.
    Line(String),
    /// It closed its output: it has ended or is about to.
    Closed,
}

impl Default for Children {
    fn default() -> Self {
        let (sender, events) = channel();
        Self {
            running: Vec::new(),
            events,
            sender,
        }
    }
}

impl Children {
    /// Starts a process with empty input. The calling thread has to outlive it: the kernel takes
    /// the end of that thread for the end of the parent.
    pub fn start(&mut self, command: Command) -> io::Result<()> {
        self.spawn(command, Stdio::null())
    }

    /// Like [`start`](Self::start), with input that stays open until
    /// [`close_input`](Self::close_input).
    pub fn start_with_input(&mut self, command: Command) -> io::Result<()> {
        self.spawn(command, Stdio::piped())
    }

    fn spawn(&mut self, mut command: Command, stdin: Stdio) -> io::Result<()> {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let number = self.running.len();
        self.running.push(Some(child));
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let lines = stdout
                .into_iter()
                .flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let _ = sender.send((number, ChildEvent::Line(line)));
            }
            let _ = sender.send((number, ChildEvent::Closed));
        });
        Ok(())
    }

    /// Closes the standard input of a process.
    pub fn close_input(&mut self, number: usize) {
        if let Some(child) = &mut self.running[number] {
            drop(child.stdin.take());
        }
    }

    /// Writes a line to the standard input of a process, unless that is closed.
    ///
    /// # Errors
    /// The process does not read: it has ended.
    pub fn write_line(&mut self, number: usize, line: &str) -> io::Result<()> {
        let child = self.running[number].as_mut();
        match child.and_then(|child| child.stdin.as_mut()) {
            Some(stdin) => stdin.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }

    /// The id of a process; `None` once it has been reaped.
    pub fn id(&self, number: usize) -> Option<u32> {
        self.running[number].as_ref().map(Child::id)
    }

    /// Sends a signal to a process, unless it has been reaped.
    pub fn signal(&self, number: usize, signal: Signal) -> io::Result<()> {
        let id = self.id(number).and_then(|id| i32::try_from(id).ok());
        match id.and_then(Pid::from_raw) {
            Some(pid) => Ok(rustix::process::kill_process(pid, signal)?),
            None => Ok(()),
        }
    }

    /// The next event with the number of its process; `None` if there is none until `deadline`.
    pub fn next_event(&self, deadline: Instant) -> Option<(usize, ChildEvent)> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left).ok()
    }

    /// The exit status of a process that has closed its output. It is killed if it does not
    /// end soon.
    pub fn reap(&mut self, number: usize) -> io::Result<ExitStatus> {
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

/// Called by a process that was started: asks the kernel to kill it when the parent ends.
/// False if the parent has ended already.
pub fn die_with_parent(parent: u32) -> bool {
    let parent = i32::try_from(parent).ok().and_then(Pid::from_raw);
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == parent
}

const REAP_WITHIN: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn next(children: &Children) -> (usize, ChildEvent) {
        let deadline = Instant::now() + Duration::from_secs(600);
        children.next_event(deadline).expect("an event")
    }

    #[test]
    fn input_stays_open_until_it_is_closed() {
        let mut children = Children::default();
        let script = "echo started; cat; echo ended";
        children.start_with_input(shell(script)).expect("a process");
        assert_eq!(next(&children), (0, ChildEvent::Line("started".to_owned())));
        assert_eq!(children.next_event(Instant::now()), None);
        children.write_line(0, "said").expect("it reads");
        assert_eq!(next(&children), (0, ChildEvent::Line("said".to_owned())));
        children.close_input(0);
        children.write_line(0, "too late").expect("it is closed");
        assert_eq!(next(&children), (0, ChildEvent::Line("ended".to_owned())));
        assert_eq!(next(&children), (0, ChildEvent::Closed));
        assert!(children.reap(0).expect("a status").success());
    }

    #[test]
    fn a_process_has_no_input_of_its_parent() {
        let mut children = Children::default();
        children.start(shell("cat")).expect("a process");
        assert_eq!(next(&children), (0, ChildEvent::Closed));
    }

    #[test]
    fn a_signal_reaches_its_process_alone() {
        let mut children = Children::default();
        children
            .start_with_input(shell("exec cat"))
            .expect("a process");
        children
            .start_with_input(shell("exec cat"))
            .expect("a process");
        let is_there = |id: u32| std::path::Path::new(&format!("/proc/{id}")).exists();
        assert!(children.id(1).is_some_and(is_there));
        children.signal(1, Signal::KILL).expect("a signal");
        assert_eq!(next(&children), (1, ChildEvent::Closed));
        let status = children.reap(1).expect("a status");
        assert_eq!(children.id(1), None);
        let failure = crate::describe_failure(status);
        assert_eq!(failure.as_deref(), Some("was killed by signal 9"));
        children.close_input(0);
        assert_eq!(next(&children), (0, ChildEvent::Closed));
        assert!(children.reap(0).expect("a status").success());
    }
}
