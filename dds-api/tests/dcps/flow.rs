//! Room in rings and caches, and waiting for it.

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability, ResourceLimits};
use spindle_dds::{DataReader, Duration, Error, InstanceState, RejectedReason};

use crate::flight::{Blob, State};
use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take, until,
    writer, writer_with,
};

fn small_ring(max_blocking_ms: u64) -> DataWriterQos {
    let mut qos = DataWriterQos {
        reliability: Reliability::reliable(Duration::from_millis(max_blocking_ms)),
        ..reliable_writer()
    };
    qos.property.set("spindle.ring.messages", "16");
    qos.property.set("spindle.ring.bytes", "4096");
    qos
}

fn limited_reader(samples: u32) -> DataReaderQos {
    DataReaderQos {
        resource_limits: ResourceLimits {
            max_samples: samples.into(),
            ..ResourceLimits::default()
        },
        ..keep_all_reader()
    }
}

#[test]
fn a_keep_all_reader_that_stops_taking_blocks_its_writers_only() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let slow_writer = writer_with(&participants[0], "Slow", small_ring(2_000));
    let fast_writer = writer(&participants[0], "Fast");
    let slow = reader_with(&participants[1], "Slow", limited_reader(10));
    let fast = reader(&participants[1], "Fast");
    enable(&participants);
    // What is written before the group has the writer waits in its history.
    slow_writer.write(&state(1, 0)).expect("kept");
    let first = take(&slow, 1, |sample| sample.data().expect("data").number);
    assert_eq!(first, [0]);
    let mut written = 0;
    let error = loop {
        match slow_writer.write(&state(1, written)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "the writer never waits");
    };
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    assert!(written >= 10 + 16, "cache and ring are full: {written}");
    for number in 0..2_000 {
        fast_writer
            .write(&state(2, number))
            .expect("the other topic has room");
    }
    let numbers = take(&fast, 2_000, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, (0..2_000).collect::<Vec<_>>());
    // Once it takes again, nothing is missing and the writer goes on.
    let numbers = take(&slow, written as usize, |sample| {
        sample.data().expect("data").number
    });
    assert_eq!(numbers, (0..written).collect::<Vec<_>>());
    slow_writer
        .write(&state(1, written))
        .expect("there is room again");
    assert_eq!(
        take(&slow, 1, |sample| sample.data().expect("data").number),
        [written]
    );
}

#[test]
fn samples_that_are_held_hold_up_no_writer_by_default() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_with(&participants[0], "State", small_ring(60_000));
    let reader = reader(&participants[1], "State");
    enable(&participants);
    writer.write(&state(1, 0)).expect("sent");
    let held = crate::meeting::take_some(&reader, 1);
    for number in 1..1_000 {
        writer.write(&state(1, number)).expect("sent");
    }
    let numbers = take(&reader, 999, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, (1..1_000).collect::<Vec<_>>());
    let first = held.get(0).expect("one");
    assert_eq!(first.data().expect("still there").number, 0);
}

#[test]
fn samples_that_are_held_in_the_ring_cost_their_writer_room() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_with(&participants[0], "State", small_ring(50));
    let mut qos = keep_all_reader();
    qos.property.set("spindle.reader.storage", "ring");
    let reader = reader_with(&participants[1], "State", qos);
    enable(&participants);
    writer.write(&state(1, 0)).expect("sent");
    let held = crate::meeting::take_some(&reader, 1);
    let mut written = 1;
    while writer.write(&state(1, written)).is_ok() {
        written += 1;
        assert!(written < 1_000, "the loan holds nothing");
    }
    assert!(written >= 8, "{written}");
    assert_eq!(
        held.get(0).expect("one").view().expect("in place").number(),
        0
    );
    drop(held);
    let numbers = take(&reader, written as usize - 1, |sample| {
        sample.data().expect("data").number
    });
    assert_eq!(numbers, (1..written).collect::<Vec<_>>());
    writer
        .write(&state(1, written))
        .expect("there is room again");
}

#[test]
fn loans_may_be_held_dropped_and_published_out_of_order() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    let mut first = writer.loan().expect("room");
    first.set_number(1);
    let mut second = writer.loan().expect("room");
    second.set_number(2);
    drop(writer.loan().expect("room"));
    second
        .callsign("B")
        .expect("short")
        .publish()
        .expect("sent");
    first.callsign("A").expect("short").publish().expect("sent");
    let numbers = take(&reader, 2, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [2, 1], "order is that of publishing");
}

#[test]
fn too_large_is_told_with_both_sizes() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let topic = participant.topic::<Blob>("Blob").create().expect("a topic");
    let publisher = participant.publisher().create().expect("a publisher");
    let writer = publisher
        .writer(&topic)
        .qos(small_ring(60_000))
        .create()
        .expect("a writer");
    enable(std::slice::from_ref(&participant));
    let blob = Blob {
        number: 1,
        bytes: vec![7; 3_000],
    };
    let error = writer.write(&blob).expect_err("half of 4096 is the limit");
    let Error::OutOfResources(text) = &error else {
        panic!("{error}");
    };
    for part in ["30", "2048", "spindle.ring.bytes"] {
        assert!(text.contains(part), "{text}");
    }
    let error = writer.loan().expect_err("it has no bound");
    assert!(error.to_string().contains("loan_with"), "{error}");
    writer.loan_with(1 << 40).expect_err("it never fits");
    let blob = Blob {
        number: 1,
        bytes: vec![7; 2_000],
    };
    for _ in 0..20 {
        writer
            .write(&blob)
            .expect("it has no reader, so there is room");
    }
}

#[test]
fn waiting_for_acknowledgments_ends_or_times_out() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let other = crate::meeting::writer(&participants[0], "State");
    let _reader = reader(&participants[1], "State");
    enable(&participants);
    writer
        .wait_for_acknowledgments(Duration::ZERO)
        .expect("nothing is written");
    let receipt = writer.write(&state(1, 1)).expect("sent");
    writer
        .wait_for(&receipt, Duration::INFINITE)
        .expect("received");
    writer
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
    let refused = other.wait_for(&receipt, Duration::INFINITE);
    assert!(
        matches!(refused, Err(Error::BadParameter(_))),
        "{refused:?}"
    );
}

#[test]
fn a_best_effort_reader_that_is_full_rejects_and_holds_up_no_writer() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer_with(&participants[0], "State", small_ring(60_000));
    let qos = DataReaderQos {
        reliability: Reliability::best_effort(),
        ..limited_reader(3)
    };
    let reader = reader_with(&participants[1], "State", qos);
    enable(&participants);
    for number in 0..100 {
        writer.write(&state(1, number)).expect("it does not wait");
    }
    crate::meeting::wait_until(reader.status_condition().expect("alive"), || {
        let rejected = reader.sample_rejected_status().expect("alive");
        rejected.total_count == 97 && rejected.last_reason == RejectedReason::BySamplesLimit
    });
    let numbers = take(&reader, 3, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [0, 1, 2]);
}

/// Acknowledgements do not wake a participant none of whose writers waits, so
/// a writer that finds no room looks itself for what has come back.
#[test]
fn a_best_effort_writer_finds_the_room_that_readers_gave_back() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = small_ring(0);
    qos.reliability = Reliability::best_effort();
    let writer = writer_with(&participants[0], "State", qos);
    let mut qos = keep_all_reader();
    qos.reliability = Reliability::best_effort();
    qos.property.set("spindle.reader.storage", "ring");
    let reader = reader_with(&participants[1], "State", qos);
    enable(&participants);
    let write = |number| writer.write(&state(1, number)).expect("never waits");
    assert!(!write(0).was_dropped());
    let held = crate::meeting::take_some(&reader, 1);
    let sent = (1..1_000).take_while(|&number| !write(number).was_dropped());
    let sent = sent.last().expect("room for more than one");
    assert!(sent < 999, "the loan holds nothing");
    // Nothing wakes the writer's participant from now on.
    until("it sleeps", || {
        let steps = || {
            let counters = participants[0].counters().expect("enabled").engine;
            counters.steps + counters.idle_steps
        };
        let before = steps();
        std::thread::sleep(std::time::Duration::from_millis(5));
        steps() == before
    });
    drop(held);
    let numbers = take(&reader, sent as usize, |sample| {
        sample.data().expect("data").number
    });
    assert_eq!(numbers, (1..=sent).collect::<Vec<_>>());
    // What is given back shows when the reader's participant has said so.
    until("the writer finds the room", || {
        !write(sent + 1).was_dropped()
    });
}

/// One sample for all instances, and the last one of each.
fn one_of_all() -> DataReaderQos {
    DataReaderQos {
        history: History::keep_last(1),
        ..limited_reader(1)
    }
}

fn number(sample: spindle_dds::Sample<'_, State>) -> u32 {
    sample.data().expect("data").number
}

/// Rejected samples and lost ones, once so many were rejected.
fn refusals(reader: &DataReader<State>, count: i32) -> (RejectedReason, i32) {
    let mut reason = RejectedReason::NotRejected;
    crate::meeting::wait_until(reader.status_condition().expect("alive"), || {
        let rejected = reader.sample_rejected_status().expect("alive");
        reason = rejected.last_reason;
        assert!(rejected.total_count <= count, "{rejected:?}");
        rejected.total_count == count
    });
    let lost = reader.sample_lost_status().expect("alive");
    (reason, lost.total_count)
}

#[test]
fn what_a_reliable_reader_rejects_comes_again_whatever_its_history() {
    for qos in [limited_reader(1), one_of_all()] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let writer = writer(&participants[0], "State");
        let reader = reader_with(&participants[1], "State", qos);
        enable(&participants);
        let instances = [1, 2].map(|icao| writer.register_instance(&state(icao, 0)));
        for number in 0..4 {
            writer.write(&state(1 + number % 2, number)).expect("room");
        }
        // Each is counted once, however often it is offered again.
        for round in 0..3 {
            for _ in 0..5 {
                assert!(reader.read(9).map_or(0, |samples| samples.len()) <= 1);
            }
            let by_samples = RejectedReason::BySamplesLimit;
            assert_eq!(refusals(&reader, round + 1), (by_samples, 0));
            let rejected = reader.sample_rejected_status().expect("alive");
            let instance = &instances[(round as usize + 1) % 2];
            assert_eq!(instance.as_ref(), Ok(&rejected.last_instance_handle));
            assert_eq!(take(&reader, 1, number), [round as u32]);
        }
        assert_eq!(take(&reader, 1, number), [3]);
        assert_eq!(refusals(&reader, 3).1, 0);
    }
}

#[test]
fn an_instance_too_many_waits_for_one_that_ended_and_is_lost_behind_one_that_is_alive() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let mut qos = keep_all_reader();
    qos.resource_limits.max_instances = 1.into();
    let reader = reader_with(&participants[1], "State", qos);
    enable(&participants);
    writer.write(&state(1, 0)).expect("room");
    writer.dispose(&state(1, 0)).expect("room");
    writer.write(&state(2, 1)).expect("room");
    let by_instances = RejectedReason::ByInstancesLimit;
    assert_eq!(refusals(&reader, 1), (by_instances, 0));
    let of = |sample: spindle_dds::Sample<'_, State>| sample.data().ok().map(|it| it.number);
    assert_eq!(take(&reader, 3, of), [Some(0), None, Some(1)]);
    // No take makes room where the one instance is alive.
    writer.write(&state(3, 2)).expect("room");
    writer.write(&state(2, 3)).expect("room");
    assert_eq!(refusals(&reader, 2), (by_instances, 1));
    assert_eq!(take(&reader, 1, of), [Some(3)]);
}

#[test]
fn a_writer_may_leave_while_its_sample_waits_at_a_full_keep_last_reader() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader_with(&participants[1], "State", one_of_all());
    enable(&participants);
    writer.write(&state(1, 0)).expect("room");
    writer.write(&state(2, 1)).expect("room");
    refusals(&reader, 1);
    participants[0].close().expect("it leaves");
    crate::meeting::wait_for_members(&participants[1..], 1);
    let told = take(&reader, 4, |sample| {
        let number = sample.data().ok().map(|it| it.number);
        (number, sample.info().instance_state)
    });
    let disposed = InstanceState::NotAliveDisposed;
    let expected = [
        (Some(0), InstanceState::Alive),
        (Some(1), disposed),
        (None, disposed),
        (None, disposed),
    ];
    assert_eq!(told, expected);
}
