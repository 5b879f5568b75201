//! `spindle top` looks at processes that really publish.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, History, Reliability, ResourceLimits,
};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Error};

spindle_dds::include_idl!("perf");
use perf::Probe;

const PART: &str = "SPINDLE_TEST_TOP_PART";
const DIRECTORY: &str = "SPINDLE_TEST_TOP_DIRECTORY";
const LIMIT_MS: &str = "SPINDLE_TEST_TOP_LIMIT_MS";
const PATIENCE: Duration = Duration::from_secs(120);

/// This program once more, as another participant; ended with the test.
struct Part(Child);

impl Part {
    fn start(part: &str, directory: &Path) -> Self {
        Self::start_with(part, directory, &[])
    }

    fn start_with(part: &str, directory: &Path, variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["--exact", "a_part_of_the_test", "--nocapture"])
            .env(PART, part)
            .env(DIRECTORY, directory)
            .envs(variables.iter().copied())
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
    let (Ok(part), Ok(directory)) = (std::env::var(PART), std::env::var(DIRECTORY)) else {
        return;
    };
    // The test holds the other end for as long as it lives.
    thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let limit_ms = std::env::var(LIMIT_MS).unwrap_or_else(|_| "10000".to_owned());
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", &directory)
        .property("spindle.failure.limit_ms", &limit_ms)
        .property("spindle.topic.Flow.subgroup", "1")
        .property("spindle.topic.Held.subgroup", "2")
        .disabled()
        .create()
        .expect("a participant");
    match part.as_str() {
        "writer" => write(&participant),
        "keeper" => keep(&participant),
        "joiner" => join(&participant),
        _ => read(&participant),
    }
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Probe> {
    let topic = participant.topic(topic).create().expect("a topic");
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
        // Others replace samples that find no room.
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    qos.property.set("spindle.ring.messages", "16");
    let publisher = participant.publisher().create().expect("a publisher");
    publisher
        .writer(&topic)
        .qos(qos)
        .create()
        .expect("a writer")
}

/// Of Flow some hundred samples a second, of Held as many as there is room for.
fn write(participant: &DomainParticipant) {
    let [flow, held] = ["Flow", "Held"].map(|topic| writer(participant, topic));
    participant.enable().expect("it is let in");
    let sample = Probe {
        payload: vec![0; 100],
        ..Probe::default()
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                held.write(&sample).expect("a long time");
            }
        });
        loop {
            flow.write(&sample).expect("room");
            thread::sleep(Duration::from_millis(2));
        }
    });
}

fn reader(
    participant: &DomainParticipant,
    topic: &str,
    limits: ResourceLimits,
) -> DataReader<Probe> {
    let topic = participant.topic(topic).create().expect("a topic");
    let qos = DataReaderQos {
        reliability: Reliability::reliable(spindle_dds::Duration::ZERO),
        history: History::keep_all(),
        resource_limits: limits,
        ..DataReaderQos::default()
    };
    let subscriber = participant.subscriber().create().expect("a subscriber");
    subscriber
        .reader(&topic)
        .qos(qos)
        .create()
        .expect("a reader")
}

/// Takes from Flow, and nothing from Held.
fn read(participant: &DomainParticipant) {
    let few = ResourceLimits {
        max_samples: 4.into(),
        ..ResourceLimits::default()
    };
    let flow = reader(participant, "Flow", ResourceLimits::default());
    let _held = reader(participant, "Held", few);
    participant.enable().expect("it is let in");
    loop {
        match flow.take(100) {
            Ok(_) | Err(Error::NoData(_)) => thread::sleep(Duration::from_millis(2)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// What the keeper keeps: more than a donor sends before the reader accepts some, in samples and in bytes.
const KEPT: u64 = 256;
const KEPT_PAYLOAD: usize = 16 << 10;

/// Writes so many samples to Kept, and stays.
fn keep(participant: &DomainParticipant) {
    let topic = participant
        .topic::<Probe>("Kept")
        .create()
        .expect("a topic");
    let qos = DataWriterQos {
        durability: Durability::from(DurabilityKind::TransientLocal),
        reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
        history: History::keep_all(),
        ..DataWriterQos::default()
    };
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher.writer(&topic).qos(qos).create();
    let writer = writer.expect("a writer");
    participant.enable().expect("it is let in");
    let sample = Probe {
        payload: vec![0; KEPT_PAYLOAD],
        ..Probe::default()
    };
    for _ in 0..KEPT {
        writer.write(&sample).expect("room");
    }
    loop {
        thread::park();
    }
}

/// Reads Kept, has room for one sample, and does not take it: its transfer stays under way.
fn join(participant: &DomainParticipant) {
    let topic = participant
        .topic::<Probe>("Kept")
        .create()
        .expect("a topic");
    let qos = DataReaderQos {
        durability: Durability::from(DurabilityKind::TransientLocal),
        reliability: Reliability::reliable(spindle_dds::Duration::INFINITE),
        history: History::keep_all(),
        resource_limits: ResourceLimits {
            max_samples: 1.into(),
            ..ResourceLimits::default()
        },
        ..DataReaderQos::default()
    };
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let _reader = subscriber.reader(&topic).qos(qos).create();
    participant.enable().expect("it is let in");
    loop {
        thread::park();
    }
}

fn top(directory: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["top", "--directory"])
        .arg(directory)
        .args(arguments)
        .args(match arguments.contains(&"--patience-ms") {
            true => &[][..],
            false => &["--patience-ms", "20000"],
        })
        .stdin(Stdio::null())
        .output()
        .expect("spindle starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn once(directory: &Path) -> Value {
    let (done, out, said) = top(directory, &["--once", "--json", "--interval", "0.5"]);
    assert!(done, "{said}");
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).expect("JSON")
}

/// The writer has samples in its rings that its reader has read there, and that wait for it.
fn holds_memory(participants: &[Value], writer: &str, reader: &str) -> Option<()> {
    let held = |name: &str, kind: &str| {
        let one = participants.iter().find(|one| one["name"] == name)?;
        one["pss_bytes"].as_u64().filter(|bytes| *bytes > 0)?;
        let mut kinds = one["figures"]["memory"].as_array()?.iter();
        let told = kinds.find(|it| it["kind"] == kind)?;
        let (all, used) = (told["bytes"].as_u64()?, told["resident_bytes"].as_u64()?);
        assert!(used <= all, "{name} {told}");
        (used > 0).then_some(used)
    };
    let page = 4096;
    held(writer, "own_payload").filter(|used| *used >= page)?;
    held(writer, "own_headers")?;
    assert_eq!(held(reader, "own_payload"), None, "it writes nothing");
    held(reader, "peer_rows").filter(|used| *used >= 2 * page)?;
    held(reader, "bookkeeping")?;
    held(reader, "reader_caches")?;
    held(reader, "arrival_queues")?;
    held(writer, "writers")?;
    [writer, reader]
        .iter()
        .try_for_each(|name| held(name, "own_control_row").map(drop))
}

/// What is to be seen in the end. `None` if it is not there yet.
fn seen(scene: &Value, [writer, reader]: [u32; 2]) -> Option<()> {
    let participants = scene["participants"].as_array()?;
    let name = |pid: u32| {
        let mut all = participants.iter();
        let one = all.find(|one| one["pid"] == pid)?;
        one["name"].as_str()
    };
    let (writer, reader) = (name(writer)?, name(reader)?);
    let topics = scene["topics"].as_array()?;
    let rate = |participant: &str, way: &str| {
        let mut topics = topics.iter();
        let topic = topics.find(|it| it["topic"] == "Flow" && it["participant"] == participant)?;
        topic[way].as_f64().filter(|rate| *rate > 0.0)
    };
    rate(writer, "out_per_s")?;
    rate(writer, "out_bytes_per_s")?;
    rate(reader, "in_per_s")?;
    let others = participants.iter().find(|one| one["name"] == reader)?;
    others["figures"]["latency_others"]["p50_ns"].as_u64()?;
    holds_memory(participants, writer, reader)?;
    let mut blocked = scene["blocked"].as_array()?.iter();
    let entry = blocked.find(|entry| entry["what"] == "room")?;
    let named = entry["participant"] == writer && entry["by"] == serde_json::json!([reader]);
    let why = entry["why"].as_str()?;
    let mut late = scene["late"].as_array()?.iter();
    let holds = late.find(|it| it["with"] == "release" && it["member"] == reader)?;
    holds["for_s"].as_f64().filter(|for_s| *for_s >= 0.5)?;
    (named && why.contains("does not take from its reader of Held")).then_some(())
}

#[test]
fn rates_of_writers_and_readers_that_block_them_are_shown() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("domains");
    let parts = ["writer", "reader"].map(|part| Part::start(part, &directory));
    let pids = parts.each_ref().map(|part| part.0.id());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let scene = once(&directory);
        if seen(&scene, pids).is_some() {
            assert_eq!(scene["view"]["members"].as_array().map(Vec::len), Some(2));
            break;
        }
        assert!(Instant::now() < deadline, "{scene:#}");
    }
    let (done, page, said) = top(&directory, &["--once", "--interval", "0.1"]);
    assert!(
        done && page.contains("waits for room (Held)"),
        "{page}{said}"
    );
    // The monitor leaves nothing behind.
    let sockets = || {
        let files = std::fs::read_dir(&directory)
            .expect("a directory")
            .flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".station")).count()
    };
    assert_eq!(sockets(), 2);
    drop(parts);
    let scene = once(&directory);
    assert_eq!(scene["participants"], serde_json::json!([]));
}

/// Looks at scenes until one has what is looked for.
fn until<R>(directory: &Path, found: impl Fn(&Value) -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let scene = once(directory);
        if let Some(found) = found(&scene) {
            return found;
        }
        assert!(Instant::now() < deadline, "{scene:#}");
    }
}

#[test]
fn history_that_is_kept_and_transferred_is_shown() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("domains");
    let _keeper = Part::start("keeper", &directory);
    let keeper = until(&directory, |scene| {
        let topic = scene["topics"].as_array()?.first()?.clone();
        (topic["kept"] == KEPT).then_some(topic)
    });
    let bytes = keeper["kept_bytes"].as_u64().expect("a number");
    assert!(bytes >= KEPT * KEPT_PAYLOAD as u64, "{keeper:#}");
    let joiner = Part::start("joiner", &directory);
    let transfer = until(&directory, |scene| {
        let mut transfers = scene["transfers"].as_array()?.iter();
        transfers.find(|it| it["samples"] != 0).cloned()
    });
    assert_eq!(transfer["topic"], "Kept");
    assert_eq!(
        transfer["donors"],
        serde_json::json!([keeper["participant"]])
    );
    let name = transfer["participant"].as_str().expect("a name");
    assert!(
        name.ends_with(&format!("/{}", joiner.0.id())),
        "{transfer:#}"
    );
    let samples = transfer["samples"].as_u64().expect("a number");
    assert!(samples < KEPT, "the reader holds it up: {transfer:#}");
    let (done, page, said) = top(&directory, &["--once", "--interval", "0.1"]);
    assert!(done && page.contains("History under way"), "{page}{said}");
}

/// A stopped process sends no heartbeats: it is named before it is suspected.
#[test]
fn a_member_without_heartbeats_is_shown_as_late() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("domains");
    let limit = [(LIMIT_MS, "15000")];
    let parts = ["writer", "reader"].map(|part| Part::start_with(part, &directory, &limit));
    let [writer, reader] = parts.each_ref().map(|part| part.0.id());
    let deadline = Instant::now() + PATIENCE;
    while seen(&once(&directory), [writer, reader]).is_none() {
        assert!(Instant::now() < deadline, "they do not meet");
    }
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &reader.to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    };
    signal("-STOP");
    let arguments = [
        "--once",
        "--json",
        "--interval",
        "0.1",
        "--patience-ms",
        "500",
    ];
    let late = loop {
        let (done, out, said) = top(&directory, &arguments);
        assert!(done && Instant::now() < deadline, "{out}{said}");
        let scene: Value = serde_json::from_str(&out).expect("JSON");
        let mut late = scene["late"].as_array().expect("a list").iter();
        if let Some(late) = late.find(|it| it["with"] == "heartbeat") {
            break late.clone();
        }
    };
    signal("-CONT");
    let names = |name: &Value, pid: u32| {
        let name = name.as_str().unwrap_or_default();
        name.ends_with(&format!("/{pid}"))
    };
    assert!(names(&late["member"], reader), "{late:#}");
    assert!(names(&late["seen_by"][0], writer), "{late:#}");
    assert!(
        late["why"]
            .as_str()
            .is_some_and(|why| why.contains("no heartbeat for")),
        "{late:#}"
    );
    // Two intervals of a third of the limit.
    assert!(
        late["for_s"].as_f64().is_some_and(|for_s| for_s > 10.0),
        "{late:#}"
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    for arguments in [
        &["--interval", "0"][..],
        &["--patience-ms", "0"],
        &["--domain", "a"],
    ] {
        let (done, out, said) = top(home.path(), arguments);
        assert!(
            !done && out.is_empty() && said.contains(arguments[0]),
            "{said}"
        );
    }
    // A record that is none.
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(home.path(), mode).expect("set");
    std::fs::write(home.path().join("domain-0.record"), "nonsense").expect("written");
    let (done, out, said) = top(home.path(), &["--once"]);
    assert!(
        !done && out.is_empty() && said.contains("cannot be understood"),
        "{said}"
    );
}
