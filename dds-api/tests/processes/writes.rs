//! What writes do while processes start together, and while a reader's process stands still. Each
//! process is this test binary, controlled by lines on its standard input.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability, ResourceLimits};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, testing};
use spindle_dds_test_types::flight::State;

use crate::peer::Peer;

const DIRECTORY: &str = "SPINDLE_TEST_WRITES";
const TOPICS: u32 = 20;
const PROCESSES: u32 = 12;

fn start(directory: &Path) -> Peer {
    Peer::start("writes::process", DIRECTORY, directory)
}

fn signal(peer: &Peer, signal: Signal) {
    kill_process(Pid::from_child(&peer.child), signal).expect("it is there");
}

/// Not a test by itself: the main function of a process.
#[test]
fn process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let mut served = None;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match (words[0], &mut served) {
            ("start_together", _) => start_together(&directory),
            ("enter", _) => {
                served = Some(Served::new(&directory));
                "entered".to_owned()
            }
            (_, None) => panic!("it has not entered"),
            ("members", Some(served)) => {
                let others = served.participant.discovered_participants();
                (others.expect("alive").len() + 1).to_string()
            }
            ("write", Some(served)) => served.write(words[1].parse().expect("milliseconds")),
            ("take", Some(served)) => served.take(),
            (other, _) => panic!("{other}?"),
        };
        println!("@{answer}");
    }
}

fn participant(directory: &str) -> DomainParticipant {
    DomainParticipant::builder(0)
        .property("spindle.directory", directory)
        .property("spindle.join.timeout_ms", "60000")
        .create()
        .expect("it joins")
}

/// A participant that writes each of its topics at once after it has made a writer and a reader of
/// it, with the default QoS: RELIABLE, 100 ms. Says how many writes failed, how often one waited,
/// how many microseconds the longest took, and the first error.
fn start_together(directory: &str) -> String {
    let participant = participant(directory);
    let publisher = participant.publisher().create().expect("a publisher");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let mut writes = Writes::default();
    let mut endpoints = Vec::new();
    for number in 0..TOPICS {
        let topic = participant.topic::<State>(&format!("Topic {number}"));
        let topic = topic.create().expect("a topic");
        let writer = publisher.writer(&topic).create().expect("a writer");
        let reader = subscriber.reader(&topic).create().expect("a reader");
        writes.write(&writer, 0, 0);
        endpoints.push((writer, reader));
    }
    for number in 1..100 {
        for (writer, _) in &endpoints {
            writes.write(writer, 0, number);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let waits = testing::waits_for_room(&participant).expect("alive");
    let (count, first) = (writes.failed, writes.error.unwrap_or_default());
    format!("{count} {waits} {} {first}", writes.longest.as_micros())
}

/// What has become of writes.
#[derive(Default)]
struct Writes {
    failed: u32,
    error: Option<String>,
    longest: Duration,
}

impl Writes {
    fn write(&mut self, writer: &DataWriter<State>, icao: u32, number: u32) {
        let begun = Instant::now();
        let written = writer.write(&State {
            icao,
            number,
            ..State::default()
        });
        self.longest = self.longest.max(begun.elapsed());
        if let Err(error) = written {
            self.failed += 1;
            self.error.get_or_insert_with(|| error.to_string());
        }
    }
}

/// A participant with a writer that replaces, and a reader that takes when it is asked to.
struct Served {
    participant: DomainParticipant,
    writer: DataWriter<State>,
    reader: DataReader<State>,
    written: u32,
}

impl Served {
    fn new(directory: &str) -> Self {
        let participant = participant(directory);
        let topic = participant.topic::<State>("State").create();
        let topic = topic.expect("a topic");
        let qos = DataWriterQos {
            history: History::keep_last(4),
            resource_limits: ResourceLimits {
                max_samples_per_instance: 16.into(),
                ..ResourceLimits::default()
            },
            ..DataWriterQos::default()
        };
        let publisher = participant.publisher().create().expect("a publisher");
        let writer = publisher.writer(&topic).qos(qos).create();
        let qos = DataReaderQos {
            reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
            history: History::keep_all(),
            ..DataReaderQos::default()
        };
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let reader = subscriber.reader(&topic).qos(qos).create();
        Self {
            writer: writer.expect("a writer"),
            reader: reader.expect("a reader"),
            participant,
            written: 0,
        }
    }

    /// Writes at 50 Hz. Says how many failed, the last number, and the first error.
    fn write(&mut self, ms: u64) -> String {
        let mut writes = Writes::default();
        let until = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < until {
            self.written += 1;
            writes.write(&self.writer, std::process::id(), self.written);
            thread::sleep(Duration::from_millis(20));
        }
        let error = writes.error.unwrap_or_default();
        format!("{} {} {error}", writes.failed, self.written)
    }

    /// Takes all. Says the last number of each writer, and what was out of order.
    fn take(&self) -> String {
        let mut last: HashMap<u32, u32> = HashMap::new();
        let mut wrong = Vec::new();
        while let Ok(samples) = self.reader.take(1000) {
            for sample in samples.iter().filter(|it| it.info().valid_data) {
                let State { icao, number, .. } = sample.data().expect("data");
                let before = last.insert(icao, number).unwrap_or(0);
                if before >= number {
                    wrong.push(format!("{number} of {icao} after {before}"));
                }
            }
        }
        let last = last.iter().map(|(icao, number)| format!("{icao}={number}"));
        let parts: Vec<String> = last.chain(wrong).collect();
        parts.join(" ")
    }
}

#[test]
fn no_first_write_fails_or_waits_where_processes_start_together() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let mut peers: Vec<Peer> = (0..PROCESSES).map(|_| start(&directory)).collect();
    for peer in &mut peers {
        peer.tell("start_together");
    }
    let answers: Vec<String> = peers.iter_mut().map(Peer::answer).collect();
    let longest = answers.iter().map(|it| {
        let longest = it.split(' ').nth(2).expect("a number");
        longest.parse::<u64>().expect("a number")
    });
    println!("the longest write took {} us", longest.max().expect("some"));
    let is_wrong = |it: &&String| !it.starts_with("0 0 ");
    let wrong: Vec<_> = answers.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A reader's process stands still for so long; then the writers write on.
fn check_frozen(frozen_ms: u64) {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let mut peers: Vec<Peer> = (0..4).map(|_| start(&directory)).collect();
    for peer in &mut peers {
        assert_eq!(peer.ask("enter"), "entered");
    }
    let mut frozen = peers.pop().expect("the last");
    for peer in peers.iter_mut().chain([&mut frozen]) {
        while peer.ask("members") != "4" {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let write = |peers: &mut [Peer], ms: u64| {
        for peer in &mut *peers {
            peer.tell(&format!("write {ms}"));
        }
        let answers: Vec<String> = peers.iter_mut().map(Peer::answer).collect();
        let written = answers.iter().map(|it| {
            let mut words = it.split(' ');
            assert_eq!(words.next(), Some("0"), "a write failed: {it}");
            words.next().expect("a number").to_owned()
        });
        written.collect::<Vec<_>>()
    };
    write(&mut peers, 100);
    signal(&frozen, Signal::STOP);
    write(&mut peers, frozen_ms);
    signal(&frozen, Signal::CONT);
    let written = write(&mut peers, 300);
    let expected: Vec<String> = peers
        .iter()
        .zip(&written)
        .map(|(peer, last)| format!("{}={last}", peer.child.id()))
        .collect();
    for peer in &mut peers {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut has_last = vec![false; expected.len()];
        while has_last.contains(&false) {
            let taken = peer.ask("take");
            assert!(!taken.contains("after"), "{taken}");
            for (at, last) in expected.iter().enumerate() {
                has_last[at] |= taken.split(' ').any(|it| it == last);
            }
            assert!(Instant::now() < deadline, "{expected:?} do not come");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_frozen_reader_stops_no_writer_that_keeps_the_last() {
    check_frozen(1_500);
}

#[test]
fn a_frozen_reader_that_is_expelled_stops_no_writer_either() {
    check_frozen(5_000);
}
