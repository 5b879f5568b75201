//! Topics that are kept beyond their writers.

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, DurabilityService, HistoryKind,
    WriterDataLifecycle,
};
use spindle_dds::{DataReader, DomainParticipant, Duration, Error};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, reliable_writer, state, take, until,
    wait_for_members, writer_with,
};

const TRANSIENT: Durability = Durability {
    kind: DurabilityKind::Transient,
};

fn transient_writer(autodisposes: bool) -> DataWriterQos {
    DataWriterQos {
        durability: TRANSIENT,
        durability_service: DurabilityService {
            history_kind: HistoryKind::KeepAll,
            ..DurabilityService::default()
        },
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: autodisposes,
        },
        ..reliable_writer()
    }
}

fn reader_of(participant: &DomainParticipant, kind: DurabilityKind) -> DataReader<State> {
    let qos = DataReaderQos {
        durability: kind.into(),
        ..keep_all_reader()
    };
    reader_with(participant, "State", qos)
}

fn transient_reader(participant: &DomainParticipant) -> DataReader<State> {
    reader_of(participant, DurabilityKind::Transient)
}

/// The numbers of all samples that a reader has when it has its history.
fn history_of(reader: &DataReader<State>) -> Vec<u32> {
    reader
        .wait_for_historical_data(PATIENCE)
        .expect("the history comes");
    match reader.take(usize::MAX) {
        Ok(samples) => {
            let data = samples.iter().filter_map(|sample| sample.data().ok());
            data.map(|data| data.number).collect()
        }
        Err(Error::NoData(_)) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_is_kept_outlives_its_writer() {
    let meeting = Meeting::new();
    let [writes, keeps] = meeting.participants();
    let writer = writer_with(&writes, "State", transient_writer(false));
    let keeper = transient_reader(&keeps);
    enable(&[writes.clone(), keeps.clone()]);
    until("they match", || {
        writer.matched_subscriptions().expect("enabled").len() == 1
    });
    for number in 0..10 {
        writer.write(&state(number % 3, number)).expect("sent");
    }
    let all: Vec<u32> = (0..10).collect();
    assert_eq!(take(&keeper, 10, |it| it.data().expect("data").number), all);
    writes.close().expect("it leaves");
    wait_for_members(std::slice::from_ref(&keeps), 1);
    // In the keeper, and in a participant that comes now; from that one, when the first is gone, too.
    assert_eq!(history_of(&transient_reader(&keeps)), all);
    let second = meeting.participant();
    let reader = transient_reader(&second);
    second.enable().expect("it is let in");
    assert_eq!(history_of(&reader), all);
    keeps.close().expect("it leaves");
    let third = meeting.participant();
    let reader = transient_reader(&third);
    third.enable().expect("it is let in");
    assert_eq!(history_of(&reader), all);
}

#[test]
fn a_writer_that_disposes_of_its_instances_when_it_leaves_leaves_nothing() {
    let meeting = Meeting::new();
    let [writes, keeps] = meeting.participants();
    let writer = writer_with(&writes, "State", transient_writer(true));
    let keeper = transient_reader(&keeps);
    enable(&[writes.clone(), keeps.clone()]);
    writer.write(&state(1, 1)).expect("sent");
    assert_eq!(take(&keeper, 1, |it| it.data().expect("data").number), [1]);
    writes.close().expect("it leaves");
    wait_for_members(std::slice::from_ref(&keeps), 1);
    assert!(history_of(&transient_reader(&keeps)).is_empty());
}

#[test]
fn a_cleanup_delay_keeps_what_is_disposed_of() {
    let meeting = Meeting::new();
    let [writes, keeps] = meeting.participants();
    let qos = DataWriterQos {
        durability_service: DurabilityService {
            service_cleanup_delay: Duration::INFINITE,
            ..DurabilityService::default()
        },
        ..transient_writer(true)
    };
    let writer = writer_with(&writes, "State", qos);
    let keeper = transient_reader(&keeps);
    enable(&[writes.clone(), keeps.clone()]);
    writer.write(&state(1, 1)).expect("sent");
    writer.write(&state(1, 2)).expect("sent");
    writer.unregister_instance(&state(1, 0)).expect("sent");
    take(&keeper, 3, |_| ());
    assert_eq!(history_of(&transient_reader(&keeps)), [2], "KEEP_LAST 1");
}

/// A reader that asks for less gets what the writers that there are have written.
#[test]
fn transient_local_readers_get_the_history_of_transient_writers() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", transient_writer(false));
    let gone = writer_with(&one, "State", transient_writer(false));
    enable(&[one.clone(), other.clone()]);
    for number in 0..3 {
        writer.write(&state(1, number)).expect("sent");
        gone.write(&state(2, 10 + number)).expect("sent");
    }
    let publisher = gone.publisher().expect("alive");
    publisher.delete_datawriter(&gone).expect("deleted");
    let reader = reader_of(&other, DurabilityKind::TransientLocal);
    assert_eq!(history_of(&reader), [0, 1, 2]);
    let mut all = history_of(&transient_reader(&other));
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 10, 11, 12]);
    let late = writer_with(&other, "State", transient_writer(false));
    late.write(&state(3, 20)).expect("sent");
    assert_eq!(take(&reader, 1, |it| it.data().expect("data").number), [20]);
}
