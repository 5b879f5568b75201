//! What the group does not take: endpoints that come to it later, and newcomers.

use std::thread;

use spindle_dds::qos::{DataWriterQos, Reliability};
use spindle_dds::{DomainParticipant, Duration, Error, StateMasks, WaitSet};

use crate::meeting::{
    Meeting, enable, reader, reliable_writer, state, take, wait_for_members, wait_in, wait_until,
    writer, writer_with,
};

/// Two names whose keys have the same low half, which headers carry: no subgroup can have
/// both. (They are made for that.)
const CLASH: [&str; 2] = ["627935Ov2P50NU", "143090DA2hI3UL"];

fn participant(meeting: &Meeting) -> DomainParticipant {
    let builder = CLASH.iter().fold(meeting.builder(), |builder, topic| {
        builder.property(&format!("spindle.topic.{topic}.subgroup"), "5")
    });
    builder.create().expect("a participant")
}

#[track_caller]
fn check<T: std::fmt::Debug>(result: spindle_dds::Result<T>, what: &str) {
    let error = result.expect_err("it is refused");
    let text = error.to_string();
    let why = "two topics have the same key";
    assert!(matches!(error, Error::Error(_)), "{text}");
    assert!(text.contains(what) && text.contains(why), "{text}");
}

#[test]
fn an_endpoint_that_cannot_be_is_refused_and_says_so() {
    let meeting = Meeting::new();
    let participants = [participant(&meeting), participant(&meeting)];
    let written = writer(&participants[0], CLASH[0]);
    let heard = reader(&participants[1], CLASH[0]);
    enable(&participants);
    let patient = DataWriterQos {
        reliability: Reliability::reliable(Duration::INFINITE),
        ..reliable_writer()
    };
    let hasty = DataWriterQos {
        reliability: Reliability::best_effort(),
        ..reliable_writer()
    };
    let waits = WaitSet::new();
    let (refused_writer, refused_reader) = thread::scope(|scope| {
        let reader = reader(&participants[1], CLASH[1]);
        let condition = reader.read_condition(StateMasks::ANY).expect("alive");
        waits.attach(&condition);
        let waiting = wait_in(scope, &waits, Duration::INFINITE);
        let writer = writer_with(&participants[1], CLASH[1], patient);
        // Until it is known, what is written waits.
        while writer.write(&state(1, 1)).is_ok() {
            thread::yield_now();
        }
        check(writer.write(&state(1, 1)), "the writer on topic 143090");
        let woken = waiting.join().expect("no panic").expect("it is woken");
        assert_eq!(woken.len(), 1);
        check(reader.take(1).map(|_| ()), "the reader on topic 143090");
        (writer, reader)
    });
    check(refused_writer.loan().map(|_| ()), "the writer");
    check(refused_reader.read(1).map(|_| ()), "the reader");
    let dropping = writer_with(&participants[1], CLASH[1], hasty);
    // Until it is known, a BEST_EFFORT writer drops.
    while dropping.write(&state(1, 1)).is_ok() {
        thread::yield_now();
    }
    check(dropping.write(&state(1, 1)), "the writer");
    let unmatched = refused_writer.publication_matched_status().expect("alive");
    assert_eq!(unmatched.total_count, 0);
    // Nothing else is held up, before or after it.
    let next = writer(&participants[1], "State");
    let others = reader(&participants[0], "State");
    for writer in [&written, &next] {
        let status = writer.status_condition().expect("alive");
        wait_until(status, || {
            let matched = writer.publication_matched_status().expect("alive");
            matched.current_count == 1
        });
    }
    written.write(&state(1, 7)).expect("sent");
    next.write(&state(1, 8)).expect("sent");
    for (reader, number) in [(&heard, 7), (&others, 8)] {
        let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, [number]);
    }
    let publisher = refused_writer.publisher().expect("alive");
    publisher.delete_datawriter(&refused_writer).expect("alive");
    participants
        .iter()
        .for_each(|it| it.close().expect("it leaves"));
}

#[test]
fn a_newcomer_that_no_view_can_have_is_told_why() {
    let meeting = Meeting::new();
    let [first, second, stranger] = [0; 3].map(|_| participant(&meeting));
    let written = writer(&first, CLASH[0]);
    let heard = reader(&second, CLASH[0]);
    enable(&[first.clone(), second.clone()]);
    let clashes = reader(&stranger, CLASH[1]);
    for _ in 0..2 {
        check(stranger.enable(), "subgroup 5");
        assert!(!stranger.is_enabled() && !clashes.is_enabled());
    }
    written.write(&state(1, 7)).expect("sent");
    let numbers = take(&heard, 1, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [7]);
    // Without what was wrong it is let in.
    let subscriber = clashes.subscriber().expect("alive");
    subscriber.delete_datareader(&clashes).expect("alive");
    stranger.enable().expect("it is let in");
    wait_for_members(&[first, second, stranger], 3);
}

#[test]
fn a_domain_with_impossible_settings_is_not_founded() {
    let meeting = Meeting::new();
    let alone = participant(&meeting);
    let _both = CLASH.map(|topic| reader(&alone, topic));
    let error = alone.enable().expect_err("it cannot be");
    let text = error.to_string();
    assert!(text.contains("two topics have the same key"), "{text}");
}
