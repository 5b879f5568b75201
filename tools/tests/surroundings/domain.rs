//! Domains that run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_dds::DomainParticipant;
use spindle_dds::qos::DataReaderQos;

use crate::{doctor, expect, is_root, of, private};

spindle_dds::include_idl!("perf");
use perf::Probe;

const DIRECTORY: &str = "SPINDLE_TEST_DOCTOR_DIRECTORY";
const TOPICS: &str = "SPINDLE_TEST_DOCTOR_TOPICS";
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a program as the first process of a new pid namespace, which ends with the starter.
const NEW_PIDS: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// This program once more, as another participant; ended with the test.
struct Part(Child);

impl Part {
    /// `by`: programs that start it.
    fn start(by: &[&str], directory: &Path, topics: u32) -> Self {
        let this = std::env::current_exe().expect("this program");
        let this = this.to_str().expect("text");
        let words = [by, &[this]].concat();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(["--exact", "domain::a_part_of_the_test", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(TOPICS, topics.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("it starts"))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No test but in a process that was started for it.
#[test]
fn a_part_of_the_test() {
    let (Ok(directory), Ok(topics)) = (std::env::var(DIRECTORY), std::env::var(TOPICS)) else {
        return;
    };
    // The test holds the other end for as long as it lives.
    thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let topics: u32 = topics.parse().expect("a number");
    let mut builder = DomainParticipant::builder(0).property("spindle.directory", &directory);
    for number in 0..topics {
        let subgroup = format!("spindle.topic.T{number}.subgroup");
        builder = builder.property(&subgroup, &(number + 1).to_string());
    }
    let participant = builder.disabled().create().expect("a participant");
    let publisher = participant.publisher().create().expect("a publisher");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let endpoints: Vec<_> = (0..topics)
        .map(|number| {
            let topic = participant.topic::<Probe>(&format!("T{number}")).create();
            let topic = topic.expect("a topic");
            let reader = subscriber
                .reader(&topic)
                .qos(DataReaderQos::default())
                .create();
            let writer = publisher.writer(&topic).create();
            (reader.expect("a reader"), writer.expect("a writer"))
        })
        .collect();
    participant.enable().expect("it is let in");
    while endpoints.len() == topics as usize {
        thread::sleep(PATIENCE);
    }
}

/// Reports of the directory until one has so many members and topics.
fn doctor_once_there(directory: &Path, members: u64, topics: u64) -> Value {
    let directory = directory.to_str().expect("text");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let report = doctor(&["--directory", directory]);
        let seen = &report["members"];
        // Members are looked at twice, and may come in between.
        let recorded = of(&report, "domain")[0]["figures"]["members"].as_u64();
        let counts = [recorded, seen["recorded"].as_u64(), seen["topics"].as_u64()];
        if counts == [members, members, topics].map(Some) {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_domain_in_two_directories_is_told() {
    let (first, second) = (private(), private());
    let _here = Part::start(&[], first.path(), 1);
    let there = Part::start(&[], second.path(), 1);
    doctor_once_there(second.path(), 1, 1);
    let report = doctor_once_there(first.path(), 1, 1);
    let pid = there.0.id();
    expect(
        &report,
        "second-directory",
        "warning",
        second.path().to_str().expect("text"),
    );
    expect(&report, "second-directory", "warning", &pid.to_string());
    // Another domain there is none of this one's business.
    let directory = first.path().to_str().expect("text");
    let report = doctor(&["--directory", directory, "--domain", "3"]);
    let findings = of(&report, "second-directory");
    let names = |it: &&Value| it["what"].as_str().is_some_and(|it| it.contains(directory));
    assert!(!findings.iter().any(names), "{findings:#?}");
}

#[test]
fn limits_are_compared_for_the_running_domain() {
    let directory = private();
    let parts = [0, 1].map(|_| Part::start(&[], directory.path(), 3));
    let report = doctor_once_there(directory.path(), 2, 3);
    expect(
        &report,
        "open-files",
        "ok",
        "2 peers and 3 topics (the running domain and one more)",
    );
    expect(&report, "domain", "ok", "2 members in the record");
    expect(&report, "member-limits", "ok", "2 processes have room");
    // One of them has used up nearly all.
    let pid = parts[1].0.id();
    let used = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("files")
        .count();
    let limit = Command::new("prlimit")
        .args([
            "--pid",
            &pid.to_string(),
            &format!("--nofile={}:", used + 1),
        ])
        .status();
    assert!(limit.expect("prlimit (util-linux) runs").success());
    let report = doctor_once_there(directory.path(), 2, 3);
    let words = format!("process {pid} ");
    expect(&report, "member-limits", "error", &words);
}

#[test]
fn members_in_other_namespaces_are_told() {
    if !is_root() {
        return;
    }
    let directory = private();
    let _contained = Part::start(&NEW_PIDS, directory.path(), 1);
    let report = doctor_once_there(directory.path(), 1, 1);
    let level = of(&report, "namespaces");
    let pid = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("another pid"))
    };
    assert!(level.iter().any(|it| pid(&it)), "{level:#?}");
    expect(&report, "namespaces", "warning", "another mnt namespace");
    // From inside of another container, the process itself is not seen.
    let output = Command::new(NEW_PIDS[0])
        .args(&NEW_PIDS[1..])
        .arg(env!("CARGO_BIN_EXE_spindle"))
        .args(["doctor", "--json", "--directory"])
        .arg(directory.path())
        .output()
        .expect("unshare (util-linux) runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = of(&report, "namespaces");
    let hidden = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("not seen here"))
    };
    assert!(findings.iter().any(|it| hidden(&it)), "{findings:#?}");
}

/// Counts of a process: open files, threads, mappings.
fn counts(pid: u32) -> [u64; 3] {
    let entries = |name: &str| {
        let entries = std::fs::read_dir(PathBuf::from(format!("/proc/{pid}")).join(name));
        entries.expect("a process").count() as u64
    };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    [entries("fd"), entries("task"), maps.lines().count() as u64]
}

/// What doctor says that participants need is what they need: no less, and not much more.
#[test]
fn what_is_needed_is_what_participants_take() {
    let directory = private();
    let mut parts = Vec::new();
    for members in 1..=4 {
        parts.push(Part::start(&[], directory.path(), 8));
        doctor_once_there(directory.path(), members, 8);
    }
    let path = directory.path().to_str().expect("text");
    let report = doctor(&["--directory", path, "--peers", "3", "--topics", "8"]);
    let needed = |check: &str| {
        let needed = &of(&report, check)[0]["figures"]["needed"];
        needed.as_u64().expect("a figure")
    };
    // Of threads, those of the one participant that is missing at least.
    let needed = [
        needed("open-files"),
        needed("user-threads"),
        needed("mappings"),
    ];
    for part in &parts {
        let counts = counts(part.0.id());
        for (count, needed) in counts.iter().zip(needed) {
            assert!(*count <= needed, "{counts:?} of {needed:?}");
            assert!(needed <= 4 * count, "{counts:?} of {needed:?}");
        }
    }
}
