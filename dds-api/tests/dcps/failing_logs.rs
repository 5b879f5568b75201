//! Logs that are full or damaged, and topics of which not all participants log.

use std::fs;
use std::path::Path;

use spindle_dds::log::{LogLock, LogPlace, LogReader, LoggedRecord};
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, DurabilityKind, DurabilityService, HistoryKind, Reliability,
};
use spindle_dds::{DataWriter, DomainParticipant, Duration, Error, testing};
use tempfile::TempDir;

use crate::flight::State;
use crate::logged::{close, logger, persistent_reader, persistent_writer, take_data};
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, state, until, writer_with,
};
use crate::mounted::Mounted;

/// How long is waited for what does not come.
const SHORT: Duration = Duration::from_millis(20);

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}

fn place(directory: &Path) -> LogPlace {
    LogPlace::new(directory, 0, "State")
}

/// The records of a log of the topic.
fn records(directory: &Path) -> Vec<LoggedRecord> {
    let log = LogReader::open(&place(directory).path);
    log.map_or_else(
        |_| Vec::new(),
        |mut log| log.records(0).map_while(Result::ok).collect(),
    )
}

/// Logs of a reader each, which have a roster of all.
fn loggers(meeting: &Meeting, directories: &[TempDir]) -> Vec<DomainParticipant> {
    let loggers = directories.iter().map(|it| logger(meeting, it.path()));
    loggers.collect()
}

fn wait_for_roster(directories: &[TempDir]) {
    for directory in directories {
        until("all logs know all", || {
            let log = LogReader::open(&place(directory.path()).path).ok();
            let confirmed = log.and_then(|log| log.state().confirmed.clone());
            confirmed.is_some_and(|it| it.logs.len() == directories.len())
        });
    }
}

/// The text of a TIMEOUT, if it is one.
fn timeout<T>(result: Result<T, Error>) -> Option<String> {
    match result {
        Ok(_) => None,
        Err(Error::Timeout(text)) => Some(text),
        Err(other) => panic!("{other}"),
    }
}

/// Says that the log of the topic in a directory is full.
fn names_full(text: &str, directory: &Path) -> bool {
    let log = format!("the log of topic State in {}", directory.display());
    text.contains(&log) && text.contains("is full") && text.contains("No space left")
}

#[test]
fn a_full_log_is_named_and_nothing_is_lost() {
    let directories = [directory(), directory()];
    let Some(mounted) = Mounted::new(directories[0].path()) else {
        return;
    };
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let writes = meeting.builder().property("spindle.ring.messages", "256");
    let writes = writes.create().expect("a participant");
    let qos = DataWriterQos {
        reliability: Reliability::reliable(SHORT),
        ..persistent_writer()
    };
    let writer = writer_with(&writes, "State", qos);
    let readers = [0, 1].map(|at| reader_with(&logs[at], "State", persistent_reader()));
    enable(&[logs[0].clone(), logs[1].clone(), writes.clone()]);
    wait_for_roster(&directories);

    let mut written = 0;
    until("a write says which log is full", || {
        match timeout(writer.write(&state(1, written))) {
            None => {
                written += 1;
                false
            }
            Some(text) => names_full(&text, directories[0].path()),
        }
    });
    let text = timeout(writer.wait_for_acknowledgments(SHORT)).expect("it is not on disk");
    assert!(names_full(&text, directories[0].path()), "{text}");
    // Its participant is named, as the directory is one of its host.
    let name = format!("process {}", std::process::id());
    assert!(text.contains(&name), "{text}");
    assert!(!text.contains(&directories[1].path().display().to_string()));

    mounted.remount("size=16m");
    for _ in 0..100 {
        until("there is room", || {
            timeout(writer.write(&state(1, written))).is_none()
        });
        written += 1;
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    let all: Vec<u32> = (0..written).collect();
    for reader in &readers {
        assert_eq!(take_data(reader, all.len()), all);
    }
    until("both have all", || {
        directories
            .iter()
            .all(|it| records(it.path()).len() == all.len())
    });
    let [one, other] = [0, 1].map(|at| records(directories[at].path()));
    assert_eq!(one, other);
    drop((writer, readers));
    close(logs.into_iter().chain([writes]));
}

#[test]
fn a_reader_that_asks_for_less_gets_the_history_of_its_writer() {
    let directories = [directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let [writes, early, late] = meeting.participants();
    let writer = writer_with(&writes, "State", persistent_writer());
    let local = DataReaderQos {
        durability: DurabilityKind::TransientLocal.into(),
        ..keep_all_reader()
    };
    let readers = [
        reader_with(&early, "State", local.clone()),
        reader_with(&logs[0], "State", persistent_reader()),
    ];
    enable(&[logs[0].clone(), writes.clone(), early]);
    for number in 0..50 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    let last = reader_with(&late, "State", local);
    late.enable().expect("it is let in");
    last.wait_for_historical_data(PATIENCE)
        .expect("it has come");
    for number in 50..60 {
        writer.write(&state(1, number)).expect("taken");
    }
    let all: Vec<u32> = (0..60).collect();
    for reader in readers.iter().chain([&last]) {
        assert_eq!(take_data(reader, all.len()), all);
    }
}

/// The same as the one of logged topics, for those that are kept in memory.
fn transient_writer(participant: &DomainParticipant) -> DataWriter<State> {
    let qos = DataWriterQos {
        durability: DurabilityKind::Transient.into(),
        durability_service: DurabilityService {
            history_kind: HistoryKind::KeepAll,
            ..DurabilityService::default()
        },
        ..persistent_writer()
    };
    writer_with(participant, "State", qos)
}

#[test]
fn a_topic_of_transient_writers_may_become_logged() {
    let directories = [directory()];
    let meeting = Meeting::new();
    let [transient, late] = meeting.participants();
    let transient_reader = DataReaderQos {
        durability: DurabilityKind::Transient.into(),
        ..keep_all_reader()
    };
    let in_memory = transient_writer(&transient);
    let first = reader_with(&transient, "State", transient_reader.clone());
    enable(std::slice::from_ref(&transient));
    for number in 0..10 {
        in_memory.write(&state(1, number)).expect("taken");
    }
    let logs = loggers(&meeting, &directories);
    let logged = writer_with(&logs[0], "State", persistent_writer());
    enable(&[transient.clone(), logs[0].clone()]);
    for number in 0..10 {
        until("the topic is logged", || {
            timeout(logged.write(&state(2, number))).is_none()
        });
        in_memory.write(&state(1, 10 + number)).expect("taken");
    }
    logged.wait_for_acknowledgments(PATIENCE).expect("on disk");
    in_memory
        .wait_for_acknowledgments(PATIENCE)
        .expect("accepted");

    // Each gets what its DURABILITY promises, and the log has what was logged.
    let both = reader_with(&late, "State", transient_reader);
    let only = reader_with(&late, "State", persistent_reader());
    late.enable().expect("it is let in");
    for (reader, count) in [(&both, 30), (&only, 10), (&first, 30)] {
        reader
            .wait_for_historical_data(PATIENCE)
            .expect("it has come");
        let mut taken = Vec::new();
        while taken.len() < count {
            let samples = crate::meeting::take_some(reader, usize::MAX);
            let data = samples.iter().filter_map(|it| it.data().ok());
            taken.extend(data.map(|it| (it.icao, it.number)));
        }
        let of = |icao| taken.iter().filter(move |it| it.0 == icao).map(|it| it.1);
        let in_memory = if count == 30 { 20 } else { 0 };
        assert!(of(1).eq(0..in_memory), "{taken:?}");
        assert!(of(2).eq(0..10), "{taken:?}");
    }
    assert_eq!(records(directories[0].path()).len(), 10);
}

#[test]
fn damage_is_named_with_what_mends_it() {
    let directories = [directory(), directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let writer = writer_with(&logs[0], "State", persistent_writer());
    let reader = reader_with(&logs[1], "State", persistent_reader());
    enable(&logs);
    wait_for_roster(&directories);
    // What was synced before something else was written cannot be what a crash has left.
    for number in 0..50 {
        writer.write(&state(1, number)).expect("taken");
        writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    }
    drop((writer, reader));
    close(logs);

    let path = place(directories[0].path()).path;
    let segment = segment(&path);
    let mut bytes = fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, &bytes).expect("written");

    let meeting = Meeting::new();
    let participant = logger(&meeting, directories[0].path());
    let topic = participant
        .topic::<State>("State")
        .create()
        .expect("a topic");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let refused = subscriber.reader(&topic).qos(persistent_reader()).create();
    let text = match refused {
        Err(Error::Error(text)) => text,
        other => panic!("{other:?}"),
    };
    let own = directories[0].path().display().to_string();
    let file = segment.file_name().expect("a name").to_string_lossy();
    let repair = format!("spindle log repair {own} --topic State --from");
    for part in [&path.display().to_string(), &*file, "at byte", &repair] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // What it names is where the record begins.
    let (_, offset) = text.split_once("at byte ").expect("an offset");
    let (offset, _) = offset.split_once(':').expect("what is wrong there");
    let offset: usize = offset.parse().expect("a number");
    assert!((1..=middle).contains(&offset), "{offset} of {middle}");

    // The command that it names mends it, while the participant runs.
    let lock = LogLock::acquire(place(directories[0].path()).domain_directory());
    let lock = lock.expect("it can be locked").expect("it is not in use");
    let [mends, from] = [0, 1].map(|at| place(directories[at].path()));
    let mended = lock.mend(&mends, &from).expect("it is mended");
    assert_eq!(mended.len(), 1);
    drop(lock);
    let reader = subscriber.reader(&topic).qos(persistent_reader()).create();
    let _reader = reader.expect("it is whole");
    assert_eq!(records(directories[0].path()).len(), 50);
}

#[test]
fn what_a_participant_keeps_of_transient_writers_outlasts_that_its_log_opens() {
    let directories = [directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let [transient, late] = meeting.participants();
    let transient_reader = DataReaderQos {
        durability: DurabilityKind::Transient.into(),
        ..keep_all_reader()
    };
    let first = reader_with(&logs[0], "State", transient_reader.clone());
    let in_memory = transient_writer(&transient);
    enable(&[logs[0].clone(), transient]);
    for number in 0..10 {
        in_memory.write(&state(1, number)).expect("taken");
    }
    assert_eq!(take_data(&first, 10), (0..10).collect::<Vec<_>>());
    let logged = writer_with(&logs[0], "State", persistent_writer());
    for number in 10..20 {
        until("the topic is logged", || {
            timeout(logged.write(&state(2, number))).is_none()
        });
    }
    logged.wait_for_acknowledgments(PATIENCE).expect("on disk");
    // It asks the participant of lowest rank, which is the one that logs.
    let last = reader_with(&late, "State", transient_reader.clone());
    late.enable().expect("it is let in");
    last.wait_for_historical_data(PATIENCE)
        .expect("it has come");
    assert_eq!(take_data(&last, 20), (0..20).collect::<Vec<_>>());
    drop((first, last, in_memory, logged));
    close([late]);
    close(logs);

    // A PERSISTENT reader beside a TRANSIENT one has what is in the log.
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let _first = reader_with(&logs[0], "State", transient_reader);
    let second = reader_with(&logs[0], "State", persistent_reader());
    enable(&logs);
    second
        .wait_for_historical_data(PATIENCE)
        .expect("it has come");
    assert_eq!(take_data(&second, 10), (10..20).collect::<Vec<_>>());
}

#[test]
fn a_disk_that_stalls_holds_up_no_join() {
    let directories = [directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let writer = writer_with(&logs[0], "State", persistent_writer());
    testing::stall_log(&logs[0], "State", || enable(&logs)).expect("it is logged");
    for number in 0..10 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    assert_eq!(records(directories[0].path()).len(), 10);
}

#[test]
fn a_disk_that_stalls_holds_up_no_return_and_what_was_delivered_is_logged() {
    let directories = [directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let reader = reader_with(&logs[0], "State", persistent_reader());
    let writes = meeting.participant();
    let writer = writer_with(&writes, "State", persistent_writer());
    enable(&[logs[0].clone(), writes.clone()]);
    for number in 0..20 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    testing::stall_log(&logs[0], "State", || {
        for number in 20..30 {
            writer.write(&state(1, number)).expect("taken");
        }
        assert_eq!(take_data(&reader, 30), (0..30).collect::<Vec<_>>());
        testing::fail(&logs[0], "this is a test").expect("enabled");
        until("it is back", || {
            let status = logs[0].membership_status().expect("alive");
            status.is_member && status.total_count == 1
        });
        assert_eq!(records(directories[0].path()).len(), 20);
    })
    .expect("it is logged");
    for number in 30..40 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    let numbers = records(directories[0].path());
    assert_eq!(numbers.len(), 40);
    assert!(
        numbers
            .windows(2)
            .all(|it| it[0].record.position() < it[1].record.position())
    );
    // All that is logged is there for readers that come later.
    let late = meeting.participant();
    let last = reader_with(&late, "State", persistent_reader());
    late.enable().expect("it is let in");
    last.wait_for_historical_data(PATIENCE)
        .expect("it has come");
    assert_eq!(take_data(&last, 40), (0..40).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_came_before_the_logs_opened_gets_their_history() {
    let directories = [directory(), directory(), directory()];
    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let writer = writer_with(&logs[0], "State", persistent_writer());
    let _readers = [1, 2].map(|at| reader_with(&logs[at], "State", persistent_reader()));
    enable(&logs);
    wait_for_roster(&directories);
    for number in 0..30 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    // All at once: none goes on without the others.
    testing::fail(&logs[0], "this is a test").expect("enabled");
    drop(writer);
    let all_have = || directories.iter().all(|it| records(it.path()).len() >= 30);
    until("all logs have all", all_have);
    close(logs);

    let meeting = Meeting::new();
    let logs = loggers(&meeting, &directories);
    let early = reader_with(&logs[2], "State", persistent_reader());
    enable(&logs[2..]);
    let text = timeout(early.wait_for_historical_data(SHORT)).expect("the logs are shut");
    assert!(text.contains("logs of its roster are there"), "{text}");
    let second = reader_with(&logs[1], "State", persistent_reader());
    enable(&logs[1..]);
    for reader in [&early, &second] {
        reader
            .wait_for_historical_data(PATIENCE)
            .expect("it has come");
        assert_eq!(take_data(reader, 30), (0..30).collect::<Vec<_>>());
    }
}

/// The file with the records of a log.
fn segment(path: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(path).expect("a directory").flatten();
    let mut segments = files.filter(|it| it.path().extension().is_some_and(|it| it == "segment"));
    segments.next().expect("a segment").path()
}
