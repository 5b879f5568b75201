//! PERSISTENT topics whose participants log.

use std::path::Path;

use crate::flight::State;
use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, DurabilityService, History,
    Reliability, WriterDataLifecycle,
};
use spindle_dds::{DataReader, DomainParticipant, Error};
use tempfile::TempDir;

use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, reliable_writer, state, take_some,
    until, writer_with,
};

pub(crate) const PERSISTENT: Durability = Durability {
    kind: DurabilityKind::Persistent,
};

pub(crate) fn persistent_writer() -> DataWriterQos {
    let all = History::keep_all();
    DataWriterQos {
        durability: PERSISTENT,
        durability_service: DurabilityService {
            history_kind: all.kind,
            ..DurabilityService::default()
        },
        history: all,
        reliability: Reliability::reliable(PATIENCE),
        // What it has written outlasts it.
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: false,
        },
        ..reliable_writer()
    }
}

pub(crate) fn persistent_reader() -> DataReaderQos {
    DataReaderQos {
        durability: PERSISTENT,
        ..keep_all_reader()
    }
}

/// A participant that logs to this directory.
pub(crate) fn logger(meeting: &Meeting, directory: &Path) -> DomainParticipant {
    let builder = meeting.builder();
    let builder = builder.property("spindle.log.directory", directory.to_str().expect("UTF-8"));
    builder.create().expect("a participant")
}

/// The numbers of so many samples; what only tells of a change of state is left out.
pub(crate) fn take_data(reader: &DataReader<State>, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let samples = take_some(reader, usize::MAX);
        let data = samples.iter().filter_map(|it| it.data().ok());
        numbers.extend(data.map(|it| it.number));
    }
    numbers
}

pub(crate) fn close(participants: impl IntoIterator<Item = DomainParticipant>) {
    for participant in participants {
        participant.close().expect("it leaves");
    }
}

#[test]
fn samples_outlast_all_participants() {
    let logs = TempDir::new().expect("a directory");
    for round in 0..3 {
        let meeting = Meeting::new();
        let participants = [logger(&meeting, logs.path())];
        let writer = writer_with(&participants[0], "State", persistent_writer());
        let reader = reader_with(&participants[0], "State", persistent_reader());
        enable(&participants);
        for number in 0..10 {
            writer.write(&state(1, 10 * round + number)).expect("taken");
        }
        writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
        reader
            .wait_for_historical_data(PATIENCE)
            .expect("it has come");
        let count = 10 * (round as usize + 1);
        let taken = take_data(&reader, count);
        assert_eq!(taken, (0..count as u32).collect::<Vec<_>>());
        drop((writer, reader));
        close(participants);
    }
}

#[test]
fn a_directory_has_one_participant() {
    let logs = TempDir::new().expect("a directory");
    let meeting = Meeting::new();
    let participants = [logger(&meeting, logs.path()), logger(&meeting, logs.path())];
    let _writer = writer_with(&participants[0], "State", persistent_writer());
    let publisher = participants[1].publisher().create().expect("a publisher");
    let topic = participants[1].topic::<State>("State").create();
    let refused = publisher
        .writer(&topic.expect("a topic"))
        .qos(persistent_writer())
        .create();
    match refused {
        Err(Error::PreconditionNotMet(text)) => {
            let directory = logs.path().display().to_string();
            assert!(text.contains(&directory), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn logs_that_come_later_catch_up_and_open_alone_as_a_majority() {
    let logs: [TempDir; 3] = std::array::from_fn(|_| TempDir::new().expect("a directory"));
    let meeting = Meeting::new();
    let participants: [DomainParticipant; 3] =
        std::array::from_fn(|at| logger(&meeting, logs[at].path()));
    let writer = writer_with(&participants[0], "State", persistent_writer());
    enable(&participants[..1]);
    for number in 0..100 {
        writer.write(&state(1, number)).expect("taken");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("on disk");
    let readers = [1, 2].map(|at| reader_with(&participants[at], "State", persistent_reader()));
    enable(&participants);
    for reader in &readers {
        reader
            .wait_for_historical_data(PATIENCE)
            .expect("it has come");
        let taken = take_data(reader, 100);
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }
    let end = |at: usize| {
        let place = spindle_dds::log::LogPlace::new(logs[at].path(), 0, "State");
        let log = spindle_dds::log::LogReader::open(&place.path);
        log.map_or(0, |mut log| log.records(0).filter(Result::is_ok).count())
    };
    until("all logs have all", || (0..3).all(|at| end(at) == 100));
    for number in 100..200 {
        writer.write(&state(1, number)).expect("taken");
    }
    until("all logs go on", || (0..3).all(|at| end(at) == 200));
    // Only then may two of them go on without the first.
    let knows_all = |at: usize| {
        let place = spindle_dds::log::LogPlace::new(logs[at].path(), 0, "State");
        let log = spindle_dds::log::LogReader::open(&place.path);
        let confirmed = log.ok().and_then(|log| log.state().confirmed.clone());
        confirmed.is_some_and(|roster| roster.logs.len() == 3)
    };
    until("all know all", || (0..3).all(knows_all));
    // In this order: of each roster a majority is left.
    close(participants);

    // Two of them are a majority.
    let meeting = Meeting::new();
    let participants = [1, 2].map(|at| logger(&meeting, logs[at].path()));
    let reader = reader_with(&participants[0], "State", persistent_reader());
    let other = reader_with(&participants[1], "State", persistent_reader());
    enable(&participants);
    reader
        .wait_for_historical_data(PATIENCE)
        .expect("it has come");
    let taken = take_data(&reader, 200);
    assert_eq!(taken, (0..200).collect::<Vec<_>>());
    drop((reader, other));
    close(participants);
}
