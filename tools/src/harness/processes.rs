//! Processes that are started, listened to, and never left behind.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What each of them prints, if all end well, and in time.
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
                let told = process.complaint(status);
                failure.get_or_insert(told);
                // The others have a while left to notice it too.
                deadline = deadline.min(Instant::now() + GRACE);
            }
        }
        if Instant::now() > deadline {
            // Dropping them kills them.
            let seconds = limit.as_secs();
            return Err(failure.unwrap_or_else(|| format!("killed after {seconds} s")));
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(processes.into_iter().map(Process::said).collect()),
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
            out: child.stdout.take().map(listen),
            err: child.stderr.take().map(listen),
            child,
            status: None,
        })
    }

    /// How it has ended, if it has since this was last asked.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            return Ok(self.status);
        }
        Ok(None)
    }

    fn complaint(&mut self, status: ExitStatus) -> String {
        let said = self.err.take().and_then(|err| err.join().ok());
        let said = said.unwrap_or_default();
        match said.trim().lines().last() {
            Some(last) => format!("{status}: {last}"),
            None => status.to_string(),
        }
    }

    fn said(mut self) -> String {
        let said = self.out.take().and_then(|out| out.join().ok());
        said.unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            // One that has ended meanwhile needs neither.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn listen(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before it broke off counts.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);
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
    fn what_they_say_is_told_apart() {
        let said = check(&["echo a", "echo b; echo c"], Duration::from_secs(60));
        assert_eq!(said, Ok(vec!["a\n".to_owned(), "b\nc\n".to_owned()]));
    }

    #[test]
    fn one_that_fails_ends_all() {
        let scripts = ["exec sleep 1000", "echo oh >&2; exit 3"];
        let error = check(&scripts, Duration::from_secs(1000)).expect_err("a failure");
        assert_eq!(error, "exit status: 3: oh");
    }

    #[test]
    fn one_that_hangs_is_killed() {
        let error = check(&["exec sleep 1000"], Duration::ZERO).expect_err("a failure");
        assert_eq!(error, "killed after 0 s");
    }
}
