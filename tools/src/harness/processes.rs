//! The processes of a run. None of them outlives it.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs all commands together. Returns the output of each, if all succeed within `limit`.
pub fn run(commands: Vec<Command>, limit: Duration) -> Result<Vec<String>, String> {
    let mut processes = Vec::new();
    for mut command in commands {
        let name = command.get_program().to_string_lossy().into_owned();
        let process = Process::start(&mut command).map_err(|error| format!("{name}: {error}"))?;
        processes.push(process);
    }
    let mut deadline = Instant::now() + limit;
    let mut failure = None;
    while processes.iter().any(|process| process.status.is_none()) {
        for process in &mut processes {
            let ended = process.ended().map_err(|error| error.to_string())?;
            if let Some(status) = ended.filter(|status| !status.success()) {
                let complaint = process.complaint(status);
                failure.get_or_insert(complaint);
                // The others get some time to notice it too.
                deadline = deadline.min(Instant::now() + GRACE);
            }
        }
        if Instant::now() > deadline {
            // Dropping them kills them.
            let seconds = limit.as_secs();
            return Err(failure.unwrap_or_else(|| format!("killed after {seconds} s")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(processes.into_iter().map(Process::output).collect()),
    }
}

/// A process. Dropping it kills it.
struct Process {
    child: Child,
    status: Option<ExitStatus>,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

impl Process {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self {
            out: child.stdout.take().map(read_all),
            err: child.stderr.take().map(read_all),
            child,
            status: None,
        })
    }

    /// Its exit status, if it has ended since the last call.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            return Ok(self.status);
        }
        Ok(None)
    }

    fn complaint(&mut self, status: ExitStatus) -> String {
        let text = self.err.take().and_then(|err| err.join().ok());
        let text = text.unwrap_or_default();
        match text.trim().lines().last() {
            Some(last) => format!("{status}: {last}"),
            None => status.to_string(),
        }
    }

    fn output(mut self) -> String {
        let text = self.out.take().and_then(|out| out.join().ok());
        text.unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Both fail if it has ended meanwhile.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // The output before an error counts.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

const POLL_INTERVAL: Duration = Duration::from_millis(5);
const GRACE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scripts: &[&str], limit: Duration) -> Result<Vec<String>, String> {
        let commands = scripts.iter().map(|script| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        });
        run(commands.collect(), limit)
    }

    #[test]
    fn each_process_has_its_own_output() {
        let output = check(&["echo a", "echo b; echo c"], Duration::from_secs(60));
        assert_eq!(output, Ok(vec!["a\n".to_owned(), "b\nc\n".to_owned()]));
    }

    #[test]
    fn a_failure_ends_all_processes() {
        let scripts = ["exec sleep 1000", "echo oh >&2; exit 3"];
        let error = check(&scripts, Duration::from_secs(1000)).expect_err("a failure");
        assert_eq!(error, "exit status: 3: oh");
    }

    #[test]
    fn a_process_that_hangs_is_killed() {
        let error = check(&["exec sleep 1000"], Duration::ZERO).expect_err("a failure");
        assert_eq!(error, "killed after 0 s");
    }
}
