//! A member in a process of its own: this test binary, controlled by lines on its standard
//! input. Its answers are lines that begin with `@`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{
    DataReader, DataReaderListener, DataWriter, DomainParticipant, DomainParticipantListener,
    InstanceHandle, StatusMask,
};
use tracing::subscriber::set_global_default;

use crate::clocks;
use crate::fork::{Heir, fork};
use crate::warnings::Warnings;
use crate::{hostile, resources};
use spindle_dds_test_types::flight::State;

const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
const NUMBER: &str = "SPINDLE_TEST_NUMBER";
pub(crate) const LIMIT: &str = "SPINDLE_TEST_LIMIT_MS";
/// The user as which it runs; unset: that of the tests.
const USER: &str = "SPINDLE_TEST_USER";
/// The address at which it listens, and the first contact; unset if all are on one host.
const LISTEN: &str = "SPINDLE_TEST_LISTEN";
const CONTACT: &str = "SPINDLE_TEST_CONTACT";

/// A running member.
pub(crate) struct Member {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Member {
    /// Starts a member with a heartbeat timeout of `limit_ms`. Returns when it has joined the
    /// group of the directory.
    pub(crate) fn start(directory: &Path, number: u32, limit_ms: u32) -> Self {
        Self::spawn(Self::command(directory, number, limit_ms))
    }

    /// The same, started by a program that runs it with the arguments that follow.
    pub(crate) fn start_by(starter: &[&str], directory: &Path, number: u32, limit_ms: u32) -> Self {
        let this = Self::command(directory, number, limit_ms);
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(this.get_program());
        command.args(this.get_args());
        for (name, value) in this.get_envs() {
            command.env(name, value.expect("set"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command)
    }

    /// The same, as another user.
    pub(crate) fn start_as(user: u32, directory: &Path, number: u32, limit_ms: u32) -> Self {
        let mut command = Self::command(directory, number, limit_ms);
        command.env(USER, user.to_string());
        Self::spawn(command)
    }

    /// The same on another host, simulated by a directory of its own. The member listens at
    /// `listen`, and has one contact.
    pub(crate) fn start_on_host(
        (directory, listen): (&Path, &str),
        contact: &str,
        number: u32,
        limit_ms: u32,
    ) -> Self {
        let mut command = Self::command(directory, number, limit_ms);
        command.env(LISTEN, listen).env(CONTACT, contact);
        Self::spawn(command)
    }

    fn command(directory: &Path, number: u32, limit_ms: u32) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "member::process", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(NUMBER, number.to_string())
            .env(LIMIT, limit_ms.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut member = Self {
            child,
            input,
            output,
        };
        assert_eq!(member.read_answer(), "ready");
        member
    }

    /// Starts members 1 to `N`, and waits until all are in one view.
    pub(crate) fn group<const N: usize>(directory: &Path, limit_ms: u32) -> [Self; N] {
        let mut all = std::array::from_fn(|at| Self::start(directory, at as u32 + 1, limit_ms));
        for member in &mut all {
            member.wait_for_members(N, Duration::from_secs(60));
        }
        all
    }

    /// Its next answer.
    fn read_answer(&mut self) -> String {
        let answer = self.read_answer_or_end();
        answer.unwrap_or_else(|| panic!("process {} ended", self.child.id()))
    }

    /// Its next answer; `None` if it ends before.
    fn read_answer_or_end(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line).expect("its output") == 0 {
                return None;
            }
            // The first answer may follow output of the test runner on the same line.
            if let Some((_, answer)) = line.split_once('@') {
                return Some(answer.trim_end().to_owned());
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("its input");
        self.read_answer()
    }

    /// Asks it something that may end it: then there is no answer.
    pub(crate) fn ask_in_danger(&mut self, line: &str) -> Option<String> {
        writeln!(self.input, "{line}").expect("its input");
        self.read_answer_or_end()
    }

    /// Asks for a number.
    pub(crate) fn count(&mut self, line: &str) -> u64 {
        let answer = self.ask(line);
        answer
            .parse()
            .unwrap_or_else(|_| panic!("{line}: {answer}"))
    }

    /// Blocks until its view has this number of members.
    pub(crate) fn wait_for_members(&mut self, members: usize, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.ask("members") != members.to_string() {
            let current = self.ask("members");
            assert!(
                Instant::now() < deadline,
                "{current} members, not {members}"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Blocks until it has received this number of samples of member `of`.
    pub(crate) fn wait_for_samples(&mut self, of: u32, samples: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let received = format!("received {of}");
        while self.count(&received) < samples {
            if Instant::now() >= deadline {
                let warnings = self.ask("warnings");
                let last = warnings.rsplit(" | ").next().unwrap_or_default();
                panic!("samples of {of} do not arrive: {last}");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes it fork a child that inherits its descriptors and does nothing.
    pub(crate) fn fork(&mut self) -> Heir {
        Heir::of_pid(self.ask("fork").parse().expect("a process id"))
    }

    /// From now on it cannot write to files.
    pub(crate) fn forbid_writing(&mut self) {
        self.limit("file size", 0);
    }

    /// From now on it gets no more of a resource than this.
    pub(crate) fn limit(&mut self, resource: &str, limit: u64) {
        let line = format!("limit {limit} {resource}");
        assert_eq!(self.ask(&line), "limited");
    }

    /// It gets what it may have at most of a resource.
    pub(crate) fn unlimit(&mut self, resource: &str) {
        self.limit(resource, u64::MAX);
    }

    /// Why its group has failed; empty if it has not.
    pub(crate) fn failure(&mut self) -> String {
        self.ask("failed")
    }

    /// Whether it was expelled, or its group has failed.
    pub(crate) fn is_out(&mut self) -> bool {
        !self.ask("failed").is_empty()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills it without waiting for it, so that it stays a zombie for now.
    pub(crate) fn kill(&self) {
        rustix::process::kill_process(self.pid(), Signal::KILL).expect("it is there");
    }

    /// The number of its open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(directory).expect("it runs").count()
    }

    /// Its resident memory in kB.
    pub(crate) fn memory_kb(&self) -> u64 {
        self.kb("VmRSS")
    }

    /// A size in its status.
    pub(crate) fn kb(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name));
        let mut words = line.expect("its memory").split_whitespace();
        words.nth(1).expect("a number").parse().expect("a number")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: the main function of a member.
#[test]
fn process() {
    let (Ok(directory), Ok(number), Ok(limit)) = (
        std::env::var(DIRECTORY),
        std::env::var(NUMBER),
        std::env::var(LIMIT),
    ) else {
        return;
    };
    if let Ok(user) = std::env::var(USER) {
        become_user(user.parse().expect("a number"));
    }
    let number = number.parse().expect("a number");
    let mut served = Served::new(&directory, number, &limit);
    println!("@ready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = served.answer(&line);
        println!("@{answer}");
    }
}

/// Goes on as another user, and as one that may look at itself in `/proc`.
fn become_user(user: u32) {
    // SAFETY: it changes this process alone, and touches no memory.
    let group = unsafe { libc::setresgid(user, user, user) };
    // SAFETY: the same.
    let changed = unsafe { libc::setresuid(user, user, user) };
    assert_eq!((group, changed), (0, 0), "root becomes another user");
    let dumpable = rustix::process::DumpableBehavior::Dumpable;
    rustix::process::set_dumpable_behavior(dumpable).expect("its own");
}

struct Served {
    number: u32,
    participant: DomainParticipant,
    writer: DataWriter<State>,
    _reader: DataReader<State>,
    received: Arc<Mutex<Received>>,
    /// Why its group has failed, if it has.
    reason: Arc<Mutex<Option<String>>>,
    warnings: Warnings,
    /// Another participant of this process, in another directory.
    other: Option<DomainParticipant>,
    /// The flag that stops publishing, and the thread, which returns the number of samples.
    publishing: Option<(Arc<AtomicBool>, JoinHandle<u64>)>,
}

/// What the reader has received.
#[derive(Default)]
struct Received {
    /// By writer: its member, the number expected next, and the count of samples.
    writers: BTreeMap<InstanceHandle, (u32, u32, u64)>,
    /// The first wrong sample.
    wrong: Option<String>,
}

struct Reason(Arc<Mutex<Option<String>>>);

impl DomainParticipantListener for Reason {
    fn on_failed(&mut self, _: &DomainParticipant, reason: &str) {
        *lock(&self.0) = Some(reason.to_owned());
    }
}

impl Served {
    fn new(directory: &str, number: u32, limit: &str) -> Self {
        let warnings = Warnings::default();
        set_global_default(warnings.clone()).expect("the only one");
        let reason = Arc::new(Mutex::new(None));
        let mut builder = DomainParticipant::builder(0);
        for (name, variable) in [("listen", LISTEN), ("contacts", CONTACT)] {
            if let Ok(value) = std::env::var(variable) {
                builder = builder.property(&format!("spindle.{name}"), &value);
            }
        }
        let participant = builder
            .property("spindle.directory", directory)
            .property("spindle.failure.limit_ms", limit)
            .property("spindle.rejoin", "off")
            .property("spindle.join.timeout_ms", "60000")
            .property("spindle.ring.messages", "256")
            .property("spindle.ring.bytes", "65536")
            .listener(StatusMask::NONE, Reason(reason.clone()))
            .disabled()
            .create()
            .expect("a participant");
        let topic = participant.topic("State").create().expect("a topic");
        let publisher = participant.publisher().create().expect("a publisher");
        let qos = DataWriterQos {
            reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        let writer = publisher.writer(&topic).qos(qos).create();
        let qos = DataReaderQos {
            reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let received = Arc::new(Mutex::new(Received::default()));
        let listener = Listener(received.clone());
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let reader = subscriber
            .reader(&topic)
            .qos(qos)
            .listener(StatusMask::DATA_AVAILABLE, listener)
            .create();
        participant.enable().expect("it joins");
        Self {
            number,
            participant,
            writer: writer.expect("a writer"),
            _reader: reader.expect("a reader"),
            received,
            reason,
            warnings,
            other: None,
            publishing: None,
        }
    }

    fn answer(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["members"] => match self.participant.discovered_participants() {
                Ok(others) => (others.len() + 1).to_string(),
                Err(error) => error.to_string(),
            },
            ["publish"] => {
                self.publish();
                "publishing".to_owned()
            }
            ["rest"] => self.rest().to_string(),
            ["received", of] => {
                let received = lock(&self.received);
                let of: u32 = of.parse().expect("a number");
                let writers = received.writers.values().filter(|it| it.0 == of);
                let count: u64 = writers.map(|it| it.2).sum();
                received.wrong.clone().unwrap_or_else(|| count.to_string())
            }
            ["warnings"] => lock(&self.warnings.0).join(" | "),
            ["fork"] => fork().to_string(),
            ["leave"] => match self.participant.close() {
                Ok(()) => "left".to_owned(),
                Err(error) => error.to_string(),
            },
            ["join", directory, ref properties @ ..] => {
                match resources::join(directory, properties) {
                    Ok(participant) => {
                        self.other = Some(participant);
                        "joined".to_owned()
                    }
                    Err(error) => format!("{error:?}"),
                }
            }
            ["quit"] => match self.other.take().map(|it| it.close()) {
                Some(Ok(())) => "quit".to_owned(),
                other => format!("{other:?}"),
            },
            ["limit", limit, ref resource @ ..] => {
                resources::limit(&resource.join(" "), limit.parse().expect("a number"));
                "limited".to_owned()
            }
            ["use_up_descriptors"] => resources::use_up_descriptors(),
            ["free_descriptors"] => resources::free_descriptors(),
            ["step_clock", seconds] => clocks::step(seconds.parse().expect("a number")),
            ["failed"] => lock(&self.reason).clone().unwrap_or_default(),
            ["vandalise", ms, seed, how] => {
                let ms = Duration::from_millis(ms.parse().expect("a number"));
                hostile::vandalise(ms, seed.parse().expect("a number"), how)
            }
            _ => panic!("what is {line}?"),
        }
    }

    fn publish(&mut self) {
        let is_over = Arc::new(AtomicBool::new(false));
        let (stop, writer, icao) = (is_over.clone(), self.writer.clone(), self.number);
        let thread = thread::spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Acquire) {
                for _ in 0..BURST {
                    let state = State {
                        icao,
                        number,
                        ..State::default()
                    };
                    if writer.write(&state).is_err() {
                        return u64::from(number);
                    }
                    number += 1;
                }
                thread::sleep(Duration::from_millis(1));
            }
            u64::from(number)
        });
        self.publishing = Some((is_over, thread));
    }

    fn rest(&mut self) -> u64 {
        let (is_over, thread) = self.publishing.take().expect("it publishes");
        is_over.store(true, Ordering::Release);
        thread.join().expect("it publishes")
    }
}

struct Listener(Arc<Mutex<Received>>);

impl DataReaderListener<State> for Listener {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        while let Ok(samples) = reader.take(256) {
            let mut received = lock(&self.0);
            for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                let state = match sample.data() {
                    Ok(state) => state,
                    Err(error) => {
                        received.wrong.get_or_insert_with(|| error.to_string());
                        continue;
                    }
                };
                let handle = sample.info().publication_handle;
                let first = (state.icao, state.number, 0);
                let (member, next, count) = received.writers.entry(handle).or_insert(first);
                let expected = std::mem::replace(next, state.number.wrapping_add(1));
                *count += 1;
                let trusted = (1..=TRUSTED_MAX).contains(member);
                if trusted && (expected, *member) != (state.number, state.icao) {
                    let text = format!("{} of {}, not {expected}", state.number, state.icao);
                    received.wrong.get_or_insert(text);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Samples written each millisecond.
const BURST: u32 = 20;
/// Members with higher numbers may be vandals, and their samples are not checked.
const TRUSTED_MAX: u32 = 2;
