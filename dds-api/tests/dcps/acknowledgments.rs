//! What a writer waits for when it waits for acknowledgments.

use std::thread;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, Reliability, ResourceLimits};
use spindle_dds::{DataReader, DataWriter, DomainParticipant, Duration, Error, Result, testing};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    until, writer, writer_with,
};

const SHORT: Duration = Duration::from_millis(20);

/// It keeps one sample, and leaves what comes after it in the ring.
pub(crate) fn narrow_reader(participant: &DomainParticipant, topic: &str) -> DataReader<State> {
    let qos = DataReaderQos {
        resource_limits: ResourceLimits {
            max_samples: 1.into(),
            ..ResourceLimits::default()
        },
        ..keep_all_reader()
    };
    reader_with(participant, topic, qos)
}

pub(crate) fn number(sample: spindle_dds::Sample<'_, State>) -> u32 {
    sample.data().expect("data").number
}

/// Writes samples with these numbers, once a reader is matched.
pub(crate) fn write(writer: &DataWriter<State>, numbers: std::ops::Range<u32>) {
    until("a reader is matched", || {
        !writer.matched_subscriptions().expect("enabled").is_empty()
    });
    for number in numbers {
        writer.write(&state(1, number)).expect("room");
    }
}

fn is_pending(waited: Result<()>) -> String {
    match waited {
        Err(Error::Timeout(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_full_reader_holds_back_is_not_acknowledged() {
    for distance in [0, 1] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let writer = writer(&participants[0], "State");
        let reader = narrow_reader(&participants[distance], "State");
        enable(&participants);
        write(&writer, 0..1);
        let accepted = writer.wait_for_acknowledgments(PATIENCE);
        accepted.expect("it is in the cache, and need not be taken");
        write(&writer, 1..2);
        let receipt = writer.write(&state(1, 2)).expect("room");
        let publisher = writer.publisher().expect("alive");
        let text = is_pending(writer.wait_for_acknowledgments(SHORT));
        let process = format!("this process ({})", std::process::id());
        assert!(text.contains(&process) && text.contains("full"), "{text}");
        is_pending(publisher.wait_for_acknowledgments(SHORT));
        is_pending(writer.wait_for(&receipt, SHORT));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| writer.wait_for_acknowledgments(PATIENCE));
            assert_eq!(take(&reader, 1, number), [0]);
            is_pending(writer.wait_for_acknowledgments(SHORT));
            assert!(!waiting.is_finished(), "number 2 is still held back");
            assert_eq!(take(&reader, 1, number), [1]);
            waiting.join().expect("it ends").expect("2 is in the cache");
        });
        let waits: [&dyn Fn() -> Result<()>; 2] =
            [&|| publisher.wait_for_acknowledgments(SHORT), &|| {
                writer.wait_for(&receipt, SHORT)
            }];
        for wait in waits {
            wait().expect("the same");
        }
    }
}

/// Only its own samples count, and of them only those that were written before.
#[test]
fn other_writers_are_not_waited_for() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let [first, second] = [0; 2].map(|_| writer(&participants[0], "State"));
    let reader = narrow_reader(&participants[1], "State");
    enable(&participants);
    write(&first, 0..1);
    // In the ring before the others, not in the history.
    first.wait_for_acknowledgments(PATIENCE).expect("accepted");
    write(&second, 1..3);
    let accepted = first.wait_for_acknowledgments(PATIENCE);
    accepted.expect("the other writer's samples are held back");
    is_pending(second.wait_for_acknowledgments(SHORT));
    assert_eq!(take(&reader, 3, number), [0, 1, 2]);
    second.wait_for_acknowledgments(PATIENCE).expect("taken");
}

#[test]
fn without_reliable_readers_nothing_is_waited_for() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let qos = DataReaderQos {
        reliability: Reliability::best_effort(),
        ..DataReaderQos::default()
    };
    let reader = reader_with(&participants[1], "State", qos);
    enable(&participants);
    write(&writer, 0..1);
    assert_eq!(take(&reader, 1, number), [0]);
    // From now on that participant receives nothing.
    let stopped = testing::ByHand::new(&participants[1]).expect("enabled");
    writer.write(&state(1, 1)).expect("room");
    let acknowledged = writer.wait_for_acknowledgments(Duration::ZERO);
    acknowledged.expect("no RELIABLE reader is matched");
    drop(stopped);
}

/// All three topics are in one subgroup: they share rings, and members.
#[test]
fn members_that_read_other_topics_are_not_waited_for() {
    let meeting = Meeting::new();
    let participants = [0; 3].map(|_| {
        let builder = meeting.builder();
        let builder = builder.property("spindle.topic.State.subgroup", "3");
        let builder = builder.property("spindle.topic.Other.subgroup", "3");
        builder.create().expect("a participant")
    });
    let [mine, other] = ["State", "Other"].map(|topic| writer(&participants[0], topic));
    let accepting = narrow_reader(&participants[1], "State");
    let full = narrow_reader(&participants[2], "Other");
    enable(&participants);
    write(&other, 0..3);
    write(&mine, 0..2);
    is_pending(other.wait_for_acknowledgments(SHORT));
    is_pending(mine.wait_for_acknowledgments(SHORT));
    assert_eq!(take(&accepting, 1, number), [0]);
    let accepted = mine.wait_for_acknowledgments(PATIENCE);
    accepted.expect("the reader of the other topic does not count");
    is_pending(other.wait_for_acknowledgments(SHORT));
    assert_eq!(take(&full, 3, number), [0, 1, 2]);
    other.wait_for_acknowledgments(PATIENCE).expect("taken");
}

#[test]
fn a_reader_that_goes_is_not_waited_for() {
    for closes in [false, true] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let writer = writer(&participants[0], "State");
        let full = narrow_reader(&participants[1], "State");
        enable(&participants);
        write(&writer, 0..3);
        is_pending(writer.wait_for_acknowledgments(SHORT));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| writer.wait_for_acknowledgments(PATIENCE));
            until("it waits", || testing::is_accepting(&participants[0]));
            if closes {
                participants[1].close().expect("it leaves");
            } else {
                let subscriber = full.subscriber().expect("alive");
                subscriber.delete_datareader(&full).expect("nothing out");
            }
            waiting
                .join()
                .expect("it ends")
                .expect("nothing to wait for");
        });
    }
}

#[test]
fn a_reader_without_limits_need_not_take() {
    for storage in ["copy", "ring"] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let writer = writer(&participants[0], "State");
        let mut qos = keep_all_reader();
        qos.property.set("spindle.reader.storage", storage);
        let untaken = reader_with(&participants[1], "State", qos);
        let _taken_never = reader(&participants[0], "State");
        enable(&participants);
        write(&writer, 0..10);
        writer.wait_for_acknowledgments(PATIENCE).expect("received");
        assert_eq!(take(&untaken, 10, number), (0..10).collect::<Vec<_>>());
    }
}

/// What asks a full reader for releases stands in the ring behind what it holds back.
#[test]
fn waiting_again_and_again_takes_no_room() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(Duration::ZERO),
        ..reliable_writer()
    };
    qos.property.set("spindle.ring.messages", "16");
    let writer = writer_with(&participants[0], "State", qos);
    let reader = narrow_reader(&participants[1], "State");
    enable(&participants);
    write(&writer, 0..1);
    assert_eq!(take(&reader, 1, number), [0]);
    write(&writer, 1..4);
    is_pending(writer.wait_for_acknowledgments(SHORT));
    for _ in 0..100 {
        is_pending(writer.wait_for_acknowledgments(Duration::ZERO));
    }
    write(&writer, 4..8);
    assert_eq!(take(&reader, 6, number), (1..7).collect::<Vec<_>>());
    writer
        .wait_for_acknowledgments(PATIENCE)
        .expect("7 is in the cache");
}
