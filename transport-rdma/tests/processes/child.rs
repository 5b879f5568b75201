//! A member in a process of its own: this test binary again, told by lines on
//! its standard input what to do, answering by lines that begin with `@`.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spindle_dds_transport::shm::{DoorbellChoice, Formation, JoinOptions, ShmFabric, join};
use spindle_dds_transport::{FABRIC_AREA, Fabric, Park, PeerSet, Rank, Want};

const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
const SIZE: &str = "SPINDLE_TEST_SIZE";
const EVENT: &str = "SPINDLE_TEST_EVENT";
const TIMEOUT_MS: &str = "SPINDLE_TEST_TIMEOUT_MS";
pub(crate) const DOMAIN: u32 = 7;
const ROW_LEN: usize = 8192;
const WORD: usize = FABRIC_AREA;

pub(crate) fn options(directory: &Path, size: usize) -> JoinOptions {
    JoinOptions {
        directory: Some(directory.into()),
        ..JoinOptions::new(DOMAIN, size)
    }
}

fn child_options(directory: &Path, size: usize) -> JoinOptions {
    let timeout = std::env::var(TIMEOUT_MS)
        .ok()
        .and_then(|text| text.parse().ok());
    let event = std::env::var_os(EVENT).is_some();
    JoinOptions {
        doorbell: if event {
            DoorbellChoice::Event
        } else {
            DoorbellChoice::Auto
        },
        timeout: timeout.map(Duration::from_millis),
        ..options(directory, size)
    }
}

/// A running member.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(directory: &Path, size: usize) -> Self {
        Self::spawn(&mut Self::command(directory, size))
    }

    /// One that gives up after a while.
    pub(crate) fn start_patient(directory: &Path, size: usize, timeout_ms: u64) -> Self {
        let mut command = Self::command(directory, size);
        Self::spawn(command.env(TIMEOUT_MS, timeout_ms.to_string()))
    }

    fn command(directory: &Path, size: usize) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "child::process", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(SIZE, size.to_string());
        command
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
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

    /// Several at the same moment; every other one sleeps on an event descriptor.
    pub(crate) fn start_many(count: usize, directory: &Path, size: usize) -> Vec<Self> {
        let start = |index: usize| match index % 2 {
            0 => Self::start(directory, size),
            _ => Self::spawn(Self::command(directory, size).env(EVENT, "1")),
        };
        (0..count).map(start).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it listens");
    }

    /// Its next answer.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("it speaks");
            assert!(read > 0, "process {} ended", self.pid());
            // The first answer may stand behind what the test runner says.
            if let Some((_, answer)) = line.split_once('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(answer: &str) {
    println!("@{answer}");
}

/// The child's side; without its environment it is a test that does nothing.
#[test]
fn process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let size = std::env::var(SIZE)
        .expect("a size")
        .parse()
        .expect("a number");
    let announcement = std::process::id().to_string();
    let joined = join(
        &child_options(directory.as_ref(), size),
        announcement.as_bytes(),
    );
    match joined {
        Ok(formation) => member(formation),
        Err(error) => say(&format!("error {error}")),
    }
    // Stays until its input ends, so that it is alive while others look.
    while std::io::stdin()
        .read_line(&mut String::new())
        .is_ok_and(|read| read > 0)
    {}
}

fn member(formation: Formation) {
    let announced = formation
        .announcements()
        .iter()
        .map(|text| String::from_utf8_lossy(text));
    let announced: Vec<_> = announced.collect();
    say(&format!(
        "joined {} {:x} {}",
        formation.me(),
        formation.group_id(),
        announced.join(",")
    ));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    if let Some(what) = line.trim().strip_prefix("starve ") {
        match what.strip_prefix("descriptors ") {
            Some(spare) => leave_descriptors(spare.parse().expect("a number")),
            None => leave_no_stack(),
        }
        line.clear();
        std::io::stdin().read_line(&mut line).expect("a line");
    }
    assert_eq!(line.trim(), "build");
    let rows = vec![ROW_LEN; announced.len()];
    match formation.build(&rows) {
        Ok(fabric) => serve(&fabric),
        Err(error) => say(&format!("error {error}")),
    }
}

/// Lets this process open so many descriptors more, and no further one.
fn leave_descriptors(spare: usize) {
    // Numbers are given out from the lowest that is free.
    let open = |_| rustix::io::dup(std::io::stdin()).expect("a descriptor");
    let taken: Vec<_> = (0..=spare).map(open).collect();
    let end = taken.last().map(|fd| fd.as_raw_fd() as u64);
    limit_to(Resource::Nofile, end);
}

/// Lets this process map rows, but not the stack of another thread.
fn leave_no_stack() {
    let status = std::fs::read_to_string("/proc/self/status").expect("my status");
    let mut lines = status.lines();
    let size = lines.find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB"));
    let kib: u64 = size.expect("a size").trim().parse().expect("a number");
    limit_to(Resource::As, Some((kib + 1024) * 1024));
}

fn limit_to(resource: Resource, current: Option<u64>) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current, maximum }).expect("a lower limit");
}

fn serve(fabric: &ShmFabric) {
    say("built");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "push" => {
                let all: PeerSet = (0..fabric.members())
                    .map(|rank| Rank(rank as u16))
                    .collect();
                fabric.push_word(WORD, number(1), &all);
                fabric.ring(&all, &PeerSet::EMPTY);
                say("pushed");
            }
            "await" => {
                let (rank, value) = (Rank(number(1) as u16), number(2));
                say("waiting");
                sleep_until(fabric, || fabric.row(rank).load(WORD) >= value);
                say("seen");
            }
            "mourn" => {
                let mut failure = None;
                say("waiting");
                sleep_until(fabric, || {
                    failure = fabric.poll();
                    failure.is_some()
                });
                say(&failure.map_or_else(String::new, |f| format!("{}: {}", f.peer, f.cause)));
            }
            "read" => say(&fabric.row(Rank(number(1) as u16)).load(WORD).to_string()),
            "leave" => {
                fabric.leave();
                fabric.leave();
                say("left");
            }
            other => panic!("what is {other}?"),
        }
    }
}

fn sleep_until(fabric: &ShmFabric, mut done: impl FnMut() -> bool) {
    while !done() {
        fabric.announce_sleep(Want::Data);
        let found = done();
        if !found {
            fabric.park(None);
        }
        fabric.announce_awake();
        if found {
            return;
        }
    }
}
