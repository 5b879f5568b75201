//! A process under test: started, given ample time to end, and killed if it does not.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process that was started.
pub(crate) struct Started {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Started {
    /// Starts a program whose participants meet below this directory.
    pub(crate) fn new(program: &str, arguments: &[&str], directory: &Path) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env("SPINDLE_DDS_DIR", directory.join("domains"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = read_all(child.stdout.take().expect("piped"));
        let stderr = read_all(child.stderr.take().expect("piped"));
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// Waits for the end. A process that hangs is killed, and fails.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + TIME_LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if Instant::now() > deadline {
                self.child.kill().expect("it can be killed");
                break self.child.wait().expect("it can be waited for");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Ended {
            success: status.success(),
            stdout: self.stdout.join().expect("its output is text"),
            stderr: self.stderr.join().expect("its output is text"),
        }
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).expect("its output is text");
        text
    })
}

const TIME_LIMIT: Duration = Duration::from_secs(240);
