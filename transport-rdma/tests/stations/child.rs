//! A participant in another process: this test binary again. It reads commands, one a line,
//! from its standard input, and answers by lines that begin with `@`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, setrlimit};
use spindle_dds_transport::shm::{
    DomainRegistry, DoorbellChoice, EnterOutcome, HostOptions, MemberEntry, SegmentKey,
    SegmentRequest, ShmSegment, Station, StationEvent, ViewDecision,
};
use spindle_dds_transport::{FABRIC_AREA, Fabric, Park, PeerSet, Rank, WakeInterest, WakeReason};

use crate::broadcast;
use crate::fork::{Heir, fork};

const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
const ID: &str = "SPINDLE_TEST_ID";
const EVENT: &str = "SPINDLE_TEST_EVENT";
pub(crate) const DOMAIN: u32 = 7;
const WORD: usize = FABRIC_AREA;
/// Far above what a participant opens by itself.
const DESCRIPTORS_MAX: u64 = 64;

/// The id of participant `number`.
pub(crate) fn options(directory: &Path, id: u128) -> HostOptions {
    HostOptions {
        directory: Some(directory.into()),
        ..HostOptions::new(DOMAIN, id)
    }
}

/// A running participant.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u128,
    /// Address of its station.
    pub(crate) address: String,
}

impl Process {
    /// Its number decides how it sleeps: odd ones on an event descriptor.
    pub(crate) fn start(directory: &Path, id: u128) -> Self {
        Self::start_by(&[], directory, id)
    }

    /// Started by a program that runs it with the arguments that follow.
    pub(crate) fn start_by(starter: &[&str], directory: &Path, id: u128) -> Self {
        let this = std::env::current_exe().expect("this program");
        let mut words = starter
            .iter()
            .map(std::ffi::OsStr::new)
            .chain([this.as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command
            .args(words)
            .args(["--exact", "child::process", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(ID, id.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if id % 2 == 1 {
            command.env(EVENT, "1");
        }
        let mut child = command.spawn().expect("a process");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut process = Self {
            child,
            input,
            output,
            id,
            address: String::new(),
        };
        process.address = process.hear();
        process
    }

    /// Participants 1 to `count`, all connected.
    pub(crate) fn connected(directory: &Path, count: usize) -> Vec<Self> {
        let ids = 1..=count as u128;
        let mut all: Vec<_> = ids.map(|id| Self::start(directory, id)).collect();
        Self::connect_all(&mut all);
        all
    }

    /// Each with each.
    pub(crate) fn connect_all(all: &mut [Self]) {
        for at in 1..all.len() {
            let (before, rest) = all.split_at_mut(at);
            for other in &*before {
                let answer = rest[0].ask(&format!("connect {}", other.address));
                assert_eq!(answer, format!("connected {}", other.id));
            }
        }
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
            assert!(read > 0, "process {} ended", self.child.id());
            // The first answer may follow output of the test runner.
            if let Some((_, answer)) = line.split_once('@') {
                return answer.trim_end().to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hear()
    }

    /// Forks a child that keeps all its descriptors, and does nothing.
    pub(crate) fn fork(&mut self) -> Heir {
        Heir::of_pid(number(&self.ask("fork")))
    }

    /// Number of its descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(directory).expect("it runs").count()
    }

    /// From now on it cannot write to files.
    pub(crate) fn forbid_writing(&self) {
        let pid = Some(Pid::from_child(&self.child));
        let none = Rlimit {
            current: Some(0),
            maximum: None,
        };
        rustix::process::prlimit(pid, Resource::Fsize, none).expect("limited");
    }

    /// Stops it, and returns once it is stopped.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let stands = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.expect("a task").path().join("stat"));
            stat.expect("its state").contains(") T ")
        };
        while !std::fs::read_dir(&tasks).expect("its tasks").all(stands) {
            thread::yield_now();
        }
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends all commands first, then reads the answers.
pub(crate) fn ask_all(processes: &mut [Process], line: impl Fn(usize) -> String) -> Vec<String> {
    let each = processes.iter_mut().enumerate();
    each.for_each(|(at, process)| process.tell(&line(at)));
    processes.iter_mut().map(Process::hear).collect()
}

/// The child's side; without its environment variable it is a test that does nothing.
#[test]
fn process() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let id = std::env::var(ID).expect("an id").parse().expect("a number");
    let mut options = options(directory.as_ref(), id);
    if std::env::var_os(EVENT).is_some() {
        options.doorbell = DoorbellChoice::Event;
    }
    let station = Station::open(&options).expect("a station");
    say(&hex(&station.address()));
    let mut participant = Participant {
        directory: directory.into(),
        station,
        segments: BTreeMap::new(),
        worker: None,
        register: None,
        files: Vec::new(),
    };
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let words: Vec<_> = line.split(' ').collect();
        say(&participant.obey(&words));
    }
}

fn say(answer: &str) {
    println!("@{answer}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word} is no number"))
}

struct Participant {
    directory: std::path::PathBuf,
    station: Station,
    /// By epoch.
    segments: BTreeMap<u64, Arc<ShmSegment>>,
    worker: Option<JoinHandle<String>>,
    /// With its domain.
    register: Option<(u32, DomainRegistry)>,
    /// Files that are open to use up descriptors.
    files: Vec<File>,
}

impl Participant {
    fn obey(&mut self, words: &[&str]) -> String {
        match words {
            ["connect", address] => {
                let soon = Instant::now() + Duration::from_secs(20);
                match self.station.connect(&unhex(address), soon) {
                    Ok(id) => format!("connected {id}"),
                    Err(error) => error.to_string(),
                }
            }
            ["send", to, len] => {
                let bytes: Vec<_> = (0..number(len)).map(|at: usize| at as u8).collect();
                let sent = self.station.send(number(to), &bytes);
                sent.map_or_else(|error| error.to_string(), |()| "sent".into())
            }
            ["event"] => self.event(),
            ["drop_peer", id] => {
                self.station.drop_peer(number(id));
                "dropped".into()
            }
            ["make", epoch, members, rest @ ..] => self.make(number(epoch), members, rest),
            ["cycle", times, members] => self.cycle(number(times), members),
            ["forget", epoch] => {
                self.station.forget(key(number(epoch)));
                "forgotten".into()
            }
            ["drop", epoch] => {
                self.segments.remove(&number(epoch));
                "dropped".into()
            }
            ["leave_descriptors", free] => self.leave_descriptors(number(free)),
            ["free_descriptors"] => {
                self.files.clear();
                "freed".into()
            }
            ["spare"] => format!("{:?}", spare()),
            ["close"] => {
                self.station.close();
                "closed".into()
            }
            ["fork"] => fork().to_string(),
            ["join"] => self.worker.take().expect("at work").join().expect("done"),
            ["enter" | "leave" | "decide" | "entry", ..] => self.record(words),
            [what, epoch, rest @ ..] => {
                let segment = Arc::clone(&self.segments[&number(epoch)]);
                let rest: Vec<u64> = rest.iter().map(|word| number(word)).collect();
                match *what {
                    "write" | "watch" => {
                        let other = Arc::clone(&self.segments[&rest[0]]);
                        let work = if *what == "write" { write } else { watch };
                        self.worker = Some(thread::spawn(move || work(&segment, &other, rest[1])));
                        "working".into()
                    }
                    what => in_segment(&segment, what, &rest),
                }
            }
            other => panic!("what is {other:?}?"),
        }
    }

    /// Opens files until no more than this many descriptors are left.
    fn leave_descriptors(&mut self, free: usize) -> String {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let current = Some(DESCRIPTORS_MAX);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("limited");
        while let Ok(file) = File::open("/dev/null") {
            self.files.push(file);
        }
        let kept = self.files.len() - free;
        self.files.truncate(kept);
        "left".into()
    }

    fn event(&self) -> String {
        match self.station.next_event(Duration::from_secs(20)) {
            Some(StationEvent::Connected { id }) => format!("connected {id}"),
            Some(StationEvent::Message { from, bytes }) => {
                let good = (0..)
                    .zip(&bytes)
                    .all(|(at, &byte): (usize, _)| byte == at as u8);
                format!("message {from} {} {good}", bytes.len())
            }
            Some(StationEvent::Closed { id, cause }) => format!("closed {id} {cause}"),
            None => "nothing".into(),
        }
    }

    fn request(&self, epoch: u64, members: &str, row_len: usize) -> SegmentRequest {
        let members: Vec<u128> = members.split(',').map(number).collect();
        let me = members.iter().position(|&id| id == self.station.id());
        SegmentRequest {
            key: key(epoch),
            me: Rank(me.expect("a member") as u16),
            row_lens: vec![row_len; members.len()],
            members,
            control: true,
        }
    }

    /// `make <epoch> <members> [<deadline in ms> [<row length>]]`
    fn make(&mut self, epoch: u64, members: &str, rest: &[&str]) -> String {
        let within = rest.first().map_or(20_000, |word| number(word));
        let row_len = rest.get(1).map_or(8192, |word| number(word));
        let request = self.request(epoch, members, row_len);
        let deadline = Instant::now() + Duration::from_millis(within);
        match self.station.segment(&request, deadline) {
            Ok(segment) => {
                let answer = format!("made, without {:?}", segment.absent());
                self.segments.insert(epoch, Arc::new(segment));
                answer
            }
            Err(error) => error.to_string(),
        }
    }

    /// Makes, uses and drops segments; returns spare resources before and after.
    fn cycle(&mut self, times: u64, members: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut before = None;
        for epoch in 1000..1000 + times {
            let indices = [0, 1].map(|index| SegmentRequest {
                key: SegmentKey { epoch, index },
                control: index == 0,
                ..self.request(epoch, members, 20_000)
            });
            let made = self.station.segments(&indices, deadline).expect("segments");
            for segment in &made {
                assert!(
                    segment.absent().is_empty(),
                    "{epoch}: {:?}",
                    segment.absent()
                );
                segment.push_word(WORD, epoch, &PeerSet::EMPTY);
            }
            if epoch % 7 == 0 {
                made[0].fence(Rank(u16::from(made[0].me() == Rank(0))));
            }
            drop(made);
            // Not the first: some things are created once.
            if epoch == 1010 {
                before = Some(spare());
            }
        }
        format!("{before:?} {:?}", Some(spare()))
    }

    /// Entries are written as `id:pid:start:address`; the host of all is 1.
    fn record(&mut self, words: &[&str]) -> String {
        let id = self.station.id();
        match words {
            ["entry"] => {
                let me = MemberEntry::here(id, 1, self.station.address()).expect("a process");
                format!("{}:{}:{}:{}", me.id, me.pid, me.start, hex(&me.address))
            }
            ["enter", domain, at_ns] => {
                let domain = number(domain);
                // That of an earlier attempt is used again: dropped, it would take this member out
                // of the record.
                if self.register.as_ref().is_none_or(|it| it.0 != domain) {
                    let me = MemberEntry::here(id, 1, self.station.address()).expect("a process");
                    let register = DomainRegistry::open(domain, Some(&self.directory), me);
                    self.register = Some((domain, register.expect("a register")));
                }
                let (_, register) = self.register.as_ref().expect("opened");
                wait_until(number(at_ns));
                match register.enter() {
                    Ok(EnterOutcome::Founded) => "founded".into(),
                    Ok(EnterOutcome::Present(living)) => {
                        let ids: Vec<_> = living.iter().map(|entry| entry.id).collect();
                        format!("present {ids:?}")
                    }
                    Err(error) => error.to_string(),
                }
            }
            ["leave"] => {
                self.register = None;
                "left".into()
            }
            ["decide", from, view, digest, members, at_ns] => {
                let members = members.split(',').map(entry).collect();
                let next = ViewDecision {
                    view: number(view),
                    digest: number(digest),
                    members,
                };
                wait_until(number(at_ns));
                let (_, register) = self.register.as_ref().expect("entered");
                let decided = register.decide(number(from), &next, true);
                decided.map_or_else(|refusal| refusal.to_string(), |()| "decided".into())
            }
            other => panic!("what is {other:?}?"),
        }
    }
}

fn entry(text: &str) -> MemberEntry {
    let fields: Vec<_> = text.split(':').collect();
    MemberEntry {
        id: number(fields[0]),
        host: 1,
        pid: number(fields[1]),
        start: number(fields[2]),
        address: unhex(fields[3]),
    }
}

/// Nanoseconds of the monotonic clock, which is common to all processes.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn wait_until(ns: u64) {
    while now_ns() < ns {
        thread::yield_now();
    }
}

fn key(epoch: u64) -> SegmentKey {
    SegmentKey { epoch, index: 0 }
}

/// Numbers of open descriptors and of mapped rows.
fn spare() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("mine").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("mine");
    (descriptors, maps.matches("spindle-dds-row").count())
}

fn in_segment(segment: &ShmSegment, what: &str, rest: &[u64]) -> String {
    match what {
        "push" => {
            let all: PeerSet = (0..segment.members() as u16).map(Rank).collect();
            segment.push_word(WORD, rest[0], &all);
            segment.wake(&all, WakeReason::Data);
            "pushed".into()
        }
        "publish" => broadcast::publish(segment, rest[0]),
        "receive" => broadcast::receive(segment, rest[0]),
        "read" => segment.row(Rank(rest[0] as u16)).load(WORD).to_string(),
        "await" => {
            say("waiting");
            let there = || segment.row(Rank(rest[0] as u16)).load(WORD) >= rest[1];
            sleep_until(segment, there);
            "seen".into()
        }
        "mourn" => {
            say("waiting");
            let mut failure = None;
            sleep_until(segment, || {
                failure = segment.poll();
                failure.is_some()
            });
            failure.map_or_else(String::new, |f| format!("{}: {}", f.peer, f.cause))
        }
        "poll" => format!("{:?}", segment.poll()),
        other => panic!("what is {other}?"),
    }
}

fn sleep_until(segment: &ShmSegment, mut done: impl FnMut() -> bool) {
    while !done() {
        segment.announce_sleep(WakeInterest::Data);
        let found = done();
        if !found {
            segment.park(None);
        }
        segment.announce_awake();
        if found {
            return;
        }
    }
}

/// Each value in one segment, then in the other.
fn write(first: &ShmSegment, second: &ShmSegment, last: u64) -> String {
    for value in 1..=last {
        first.push_word(WORD, value, &PeerSet::EMPTY);
        second.push_word(WORD, value, &PeerSet::EMPTY);
    }
    "written".into()
}

/// The values of the member of rank 0, read in that order.
fn watch(first: &ShmSegment, second: &ShmSegment, last: u64) -> String {
    loop {
        let late = second.row(Rank(0)).load(WORD);
        let early = first.row(Rank(0)).load(WORD);
        if early < late {
            return format!("{early} after {late}");
        }
        if late == last {
            return "in order".into();
        }
        thread::yield_now();
    }
}
