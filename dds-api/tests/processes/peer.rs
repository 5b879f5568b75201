//! A process of a test: this test binary, which runs one of its functions and is controlled by lines on
//! its standard input. It answers with lines that have `@` before the answer.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// It ends when this is dropped.
pub(crate) struct Peer {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Runs the test `function`, which finds the directory in this variable of its environment.
    pub(crate) fn start(function: &str, variable: &str, directory: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", function, "--nocapture"])
            .env(variable, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            input,
            output,
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("its input");
    }

    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("its output");
            assert!(read > 0, "process {} ended", self.child.id());
            if let Some((_, answer)) = line.split_once('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
