//! A member in a process of its own: this test binary again, told by lines on its
//! standard input what to do, answering by lines that begin with `@`.

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

use crate::fork::{Heir, fork};
use crate::hostile;
use crate::warnings::Warnings;
use spindle_dds_test_types::flight::State;

const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
const NUMBER: &str = "SPINDLE_TEST_NUMBER";
pub(crate) const LIMIT: &str = "SPINDLE_TEST_LIMIT_MS";
/// Where it listens, and the first contact; none on one host.
const LISTEN: &str = "SPINDLE_TEST_LISTEN";
const CONTACT: &str = "SPINDLE_TEST_CONTACT";

/// A running member.
pub(crate) struct Member {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Member {
    /// Starts one, which takes silence for failure after so many milliseconds, and
    /// returns when it is in the group of the directory.
    pub(crate) fn start(directory: &Path, number: u32, limit_ms: u32) -> Self {
        Self::spawn(Self::command(directory, number, limit_ms))
    }

    /// The same on a host of its own, in truth a directory, which listens at an address
    /// and has one contact.
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
        assert_eq!(member.hear(), "ready");
        member
    }

    /// Members 1 to `N`, that know of each other.
    pub(crate) fn group<const N: usize>(directory: &Path, limit_ms: u32) -> [Self; N] {
        let mut all = std::array::from_fn(|at| Self::start(directory, at as u32 + 1, limit_ms));
        for member in &mut all {
            member.wait_for_members(N, Duration::from_secs(60));
        }
        all
    }

    /// Its next answer.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).expect("it speaks");
            assert!(read > 0, "process {} ended", self.child.id());
            // The first answer may stand behind what the test runner says.
            if let Some((_, answer)) = line.split_once('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it listens");
        self.hear()
    }

    /// A number that it is asked for.
    pub(crate) fn count(&mut self, line: &str) -> u64 {
        let answer = self.ask(line);
        answer
            .parse()
            .unwrap_or_else(|_| panic!("{line}: {answer}"))
    }

    /// Blocks until it is in a view of so many.
    pub(crate) fn wait_for_members(&mut self, members: usize, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.ask("members") != members.to_string() {
            let told = self.ask("members");
            assert!(Instant::now() < deadline, "{told} members, not {members}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Blocks until it has heard so many samples of a member.
    pub(crate) fn wait_for_samples(&mut self, of: u32, samples: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let heard = format!("heard {of}");
        while self.count(&heard) < samples {
            if Instant::now() >= deadline {
                let noticed = self.ask("noticed");
                let last = noticed.rsplit(" | ").next().unwrap_or_default();
                panic!("samples of {of} do not come: {last}");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// It gets a child that has all that it has open, and does nothing.
    pub(crate) fn fork(&mut self) -> Heir {
        Heir::of_pid(self.ask("fork").parse().expect("a process id"))
    }

    /// Whether it is in no group any more.
    pub(crate) fn is_out(&mut self) -> bool {
        !self.ask("failed").is_empty()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills it; it is not waited for, and so stays a zombie for now.
    pub(crate) fn kill(&self) {
        rustix::process::kill_process(self.pid(), Signal::KILL).expect("it is there");
    }

    /// Descriptors that it has.
    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(directory).expect("it runs").count()
    }

    /// Memory that it uses, in kB.
    pub(crate) fn memory_kb(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let mut words = line.expect("its memory").split_whitespace();
        words.nth(1).expect("a number").parse().expect("a number")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test by itself: what a member does.
#[test]
fn process() {
    let (Ok(directory), Ok(number), Ok(limit)) = (
        std::env::var(DIRECTORY),
        std::env::var(NUMBER),
        std::env::var(LIMIT),
    ) else {
        return;
    };
    let number = number.parse().expect("a number");
    let mut served = Served::new(&directory, number, &limit);
    println!("@ready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = served.answer(&line);
        println!("@{answer}");
    }
}

struct Served {
    number: u32,
    participant: DomainParticipant,
    writer: DataWriter<State>,
    _reader: DataReader<State>,
    heard: Arc<Mutex<Heard>>,
    reason: Arc<Mutex<Option<String>>>,
    warnings: Warnings,
    publishing: Option<(Arc<AtomicBool>, JoinHandle<u64>)>,
}

/// By writer: its member, the next number, and how many came.
#[derive(Default)]
struct Heard {
    writers: BTreeMap<InstanceHandle, (u32, u32, u64)>,
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
            ..DataWriterQos::default()
        };
        let writer = publisher.writer(&topic).qos(qos).create();
        let qos = DataReaderQos {
            reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let heard = Arc::new(Mutex::new(Heard::default()));
        let listener = Listener(heard.clone());
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let reader = subscriber
            .reader(&topic)
            .qos(qos)
            .listener(StatusMask::DATA_AVAILABLE, listener)
            .create();
        participant.enable().expect("it is let in");
        Self {
            number,
            participant,
            writer: writer.expect("a writer"),
            _reader: reader.expect("a reader"),
            heard,
            reason,
            warnings,
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
            ["heard", of] => {
                let heard = lock(&self.heard);
                let of: u32 = of.parse().expect("a number");
                let writers = heard.writers.values().filter(|it| it.0 == of);
                let count: u64 = writers.map(|it| it.2).sum();
                heard.wrong.clone().unwrap_or_else(|| count.to_string())
            }
            ["noticed"] => lock(&self.warnings.0).join(" | "),
            ["fork"] => fork().to_string(),
            ["leave"] => match self.participant.close() {
                Ok(()) => "left".to_owned(),
                Err(error) => error.to_string(),
            },
            ["failed"] => lock(&self.reason).clone().unwrap_or_default(),
            ["vandalise", ms, seed, how] => {
                let ms = Duration::from_millis(ms.parse().expect("a number"));
                hostile::vandalise(ms, seed.parse().expect("a number"), how)
            }
            _ => panic!("what is {line}?"),
        }
    }

    fn publish(&mut self) {
        let over = Arc::new(AtomicBool::new(false));
        let (told, writer, icao) = (over.clone(), self.writer.clone(), self.number);
        let thread = thread::spawn(move || {
            let mut number = 0;
            while !told.load(Ordering::Acquire) {
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
        self.publishing = Some((over, thread));
    }

    fn rest(&mut self) -> u64 {
        let (over, thread) = self.publishing.take().expect("it publishes");
        over.store(true, Ordering::Release);
        thread.join().expect("it publishes")
    }
}

struct Listener(Arc<Mutex<Heard>>);

impl DataReaderListener<State> for Listener {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        while let Ok(samples) = reader.take(256) {
            let mut heard = lock(&self.0);
            for sample in samples.iter().filter(|sample| sample.info().valid_data) {
                let state = match sample.data() {
                    Ok(state) => state,
                    Err(error) => {
                        heard.wrong.get_or_insert_with(|| error.to_string());
                        continue;
                    }
                };
                let handle = sample.info().publication_handle;
                let first = (state.icao, state.number, 0);
                let (member, next, count) = heard.writers.entry(handle).or_insert(first);
                let wanted = std::mem::replace(next, state.number.wrapping_add(1));
                *count += 1;
                let trusted = (1..=TRUSTED_MAX).contains(member);
                if trusted && (wanted, *member) != (state.number, state.icao) {
                    let text = format!("{} of {}, not {wanted}", state.number, state.icao);
                    heard.wrong.get_or_insert(text);
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Samples a millisecond.
const BURST: u32 = 20;
/// What members of other numbers say, from 1, may be anything.
const TRUSTED_MAX: u32 = 2;
