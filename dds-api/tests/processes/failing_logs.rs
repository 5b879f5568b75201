//! A log whose disk fails to sync: it is written no more, and the other logs of the topic go on without
//! it. Its participant is a process of its own, this test binary, whose calls of fdatasync(2) fail
//! from some time on.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use libc::{sock_filter, sock_fprog};
use spindle_dds::log::{LogPlace, LogReader, LoggedRecord};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, DurabilityService, History, HistoryKind,
    Reliability,
};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Error, Topic, testing};
use spindle_dds_test_types::flight::State;
use tempfile::TempDir;
use tracing::subscriber::set_global_default;

use crate::peer::Peer;
use crate::warnings::Warnings;

const DIRECTORY: &str = "SPINDLE_TEST_FAILING_LOGS";
const PATIENCE: spindle_dds::Duration = spindle_dds::Duration::from_secs(60);
/// How long is waited for what does not come.
const SHORT: spindle_dds::Duration = spindle_dds::Duration::from_millis(20);

/// A participant that logs, in a process of its own.
fn start(directory: &Path) -> Peer {
    Peer::start("failing_logs::process", DIRECTORY, directory)
}

/// Not a test by itself: the main function of a process.
#[test]
fn process() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let warnings = Warnings::default();
    set_global_default(warnings.clone()).expect("it is the only one");
    let participant = participant(Path::new(&directory), "peer");
    let reader = reader(&participant);
    participant.enable().expect("it joins");
    let mut taken = 0;
    for line in io::stdin().lines().map_while(Result::ok) {
        let answer = match &*line {
            "fail" => match fail_syncs() {
                Ok(()) => "they fail".to_owned(),
                Err(error) => error.to_string(),
            },
            "taken" => {
                taken += reader.take(usize::MAX).map_or(0, |it| it.len());
                taken.to_string()
            }
            "warnings" => warnings.0.lock().expect("no panic").join(" | "),
            other => panic!("{other}?"),
        };
        println!("@{answer}");
    }
}

fn participant(directory: &Path, name: &str) -> DomainParticipant {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    DomainParticipant::builder(0)
        .property("spindle.directory", &text(&directory.join("domains")))
        .property("spindle.log.directory", &text(&directory.join(name)))
        .property("spindle.log.ack", "all")
        .disabled()
        .create()
        .expect("a participant")
}

fn topic_of(participant: &DomainParticipant) -> Topic<State> {
    let known = participant.lookup_topic("State").expect("alive");
    match known {
        Some(topic) => topic.downcast().expect("the same type"),
        None => participant.topic("State").create().expect("a topic"),
    }
}

fn reader(participant: &DomainParticipant) -> DataReader<State> {
    let topic = topic_of(participant);
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let qos = DataReaderQos {
        durability: DurabilityKind::Persistent.into(),
        reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
        history: History::keep_all(),
        ..DataReaderQos::default()
    };
    let reader = subscriber.reader(&topic).qos(qos).create();
    reader.expect("a reader")
}

fn writer(participant: &DomainParticipant) -> DataWriter<State> {
    let topic = topic_of(participant);
    let publisher = participant.publisher().create().expect("a publisher");
    let qos = DataWriterQos {
        durability: DurabilityKind::Persistent.into(),
        durability_service: DurabilityService {
            history_kind: HistoryKind::KeepAll,
            ..DurabilityService::default()
        },
        reliability: Reliability::reliable(SHORT),
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    let writer = publisher.writer(&topic).qos(qos).create();
    writer.expect("a writer")
}

/// From now on no thread of this process can sync a file's data.
fn fail_syncs() -> io::Result<()> {
    let instruction = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let ret = |action| instruction(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(equals, libc::SYS_fdatasync as u32, 0, 1),
        ret(libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
        ret(libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: prctl reads its integer arguments alone.
    let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the kernel reads `program` and the instructions behind it, which both live until the
    // call returns, and keeps a copy.
    let installed = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    match (set, installed) {
        (0, 0) => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: never");
        thread::sleep(Duration::from_millis(1));
    }
}

fn write(writer: &DataWriter<State>, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let state = State {
            number,
            ..State::default()
        };
        until("it is written", || match writer.write(&state) {
            Ok(_) => true,
            Err(Error::Timeout(_)) => false,
            Err(error) => panic!("{error}"),
        });
    }
}

fn log(directory: &Path, name: &str) -> Option<LogReader> {
    LogReader::open(&LogPlace::new(&directory.join(name), 0, "State").path).ok()
}

fn records(directory: &Path, name: &str) -> Vec<LoggedRecord> {
    let log = log(directory, name);
    log.map_or_else(Vec::new, |mut log| {
        log.records(0).map_while(Result::ok).collect()
    })
}

/// Each of these logs knows that the topic has so many.
fn wait_for_roster(directory: &Path, names: &[&str], logs: usize) {
    until("all know all", || {
        names.iter().all(|name| {
            let confirmed = log(directory, name).and_then(|it| it.state().confirmed.clone());
            confirmed.is_some_and(|it| it.logs.len() == logs)
        })
    });
}

#[test]
fn a_log_that_fails_to_sync_is_left_out_and_comes_back_in_another_process() {
    let folder = TempDir::new().expect("a directory");
    let directory = folder.path();
    let own = ["one", "two"].map(|name| participant(directory, name));
    let writer = writer(&own[0]);
    let readers = [reader(&own[0]), reader(&own[1])];
    for participant in &own {
        participant.enable().expect("it joins");
    }
    let mut peer = start(directory);
    let all = ["one", "two", "peer"];
    wait_for_roster(directory, &all, 3);
    write(&writer, 0..50);
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    let failing = peer.ask("fail");
    if failing != "they fail" {
        // In a sandbox that allows no filters.
        return eprintln!("skipped: {failing}");
    }

    // The other two go on: a majority of three.
    write(&writer, 50..100);
    let loggers = |count| {
        until(&format!("{count} loggers"), || {
            testing::loggers(&own[0], "State").expect("alive").0 == count
        });
    };
    loggers(2);
    write(&writer, 100..150);
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    wait_for_roster(directory, &["one", "two"], 2);
    until("its reader goes on", || peer.ask("taken") == "150");
    let warnings = peer.ask("warnings");
    assert!(warnings.contains("Input/output error"), "{warnings}");

    // With one of them alone, what is in the way is named: the one that has left, and the one that failed.
    own[1].close().expect("it leaves");
    loggers(1);
    let state = State::default();
    let mut text = String::new();
    until("the topic is shut", || match writer.write(&state) {
        Err(Error::Timeout(why)) => {
            text = why;
            text.contains("1 of 2 logs")
        }
        other => panic!("{other:?}"),
    });
    let path = LogPlace::new(&directory.join("peer"), 0, "State").path;
    let failed = format!("the log of topic State in {} has failed", path.display());
    for part in [&*failed, "Input/output error", "at participant"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    // Its process begins anew, and the log takes what it lacks.
    drop(peer);
    let two = participant(directory, "two");
    let _reader = reader(&two);
    two.enable().expect("it joins");
    loggers(2);
    let mut peer = start(directory);
    wait_for_roster(directory, &all, 3);
    write(&writer, 150..200);
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    assert!(peer.ask("taken").parse::<usize>().expect("a number") > 0);
    let [one, other, third] = all.map(|name| records(directory, name));
    assert_eq!(one.len(), 200);
    assert_eq!(one, other);
    assert_eq!(one, third);
    drop(readers);
}
