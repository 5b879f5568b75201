//! Dispose, unregister, and samples that make no sense.

use spindle_dds::idl::Slot;
use spindle_dds::qos::WriterDataLifecycle;
use spindle_dds::{Duration, InstanceHandle, InstanceState, RejectedReason, StateMasks, testing};

use crate::meeting::{
    Meeting, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    wait_until, writer, writer_with,
};

#[test]
fn dispositions_reach_every_reader() {
    use InstanceState::{NotAliveDisposed, NotAliveNoWriters};
    for (autodispose, after_unregister) in [(true, NotAliveDisposed), (false, NotAliveNoWriters)] {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let mut qos = reliable_writer();
        qos.writer_data_lifecycle = WriterDataLifecycle {
            autodispose_unregistered_instances: autodispose,
        };
        let writer = writer_with(&participants[0], "State", qos);
        let reader = reader(&participants[1], "State");
        enable(&participants);
        let handle = writer.register_instance(&state(7, 0)).expect("enabled");
        writer.write_w_timestamp(&state(7, 1), 4711).expect("sent");
        let first = take(&reader, 1, |sample| *sample.info());
        assert_eq!(
            (first[0].instance_handle, first[0].source_timestamp),
            (handle, 4711)
        );
        assert_eq!(first[0].publication_handle, writer.instance_handle());
        assert_eq!(reader.lookup_instance(&state(7, 0)), Ok(Some(handle)));
        writer.dispose(&state(7, 0)).expect("sent");
        let disposed = take(&reader, 1, |sample| *sample.info());
        assert_eq!(disposed[0].instance_state, NotAliveDisposed);
        assert!(!disposed[0].valid_data);
        writer.write(&state(7, 2)).expect("sent");
        let reborn = take(&reader, 1, |sample| *sample.info());
        assert_eq!(reborn[0].disposed_generation_count, 1);
        writer.unregister_instance(&state(7, 0)).expect("sent");
        let gone = take(&reader, 1, |sample| *sample.info());
        assert_eq!(gone[0].instance_state, after_unregister);
        assert_eq!(
            reader.lookup_instance(&state(7, 0)),
            Ok(None),
            "nothing is left of it"
        );
    }
}

#[test]
fn instances_are_walked_and_chosen() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    enable(std::slice::from_ref(&participant));
    for (icao, number) in [(3, 0), (1, 1), (2, 2), (1, 3)] {
        writer.write(&state(icao, number)).expect("sent");
    }
    // All have arrived when the last one has.
    let last = writer.register_instance(&state(9, 0)).expect("enabled");
    writer.write(&state(9, 9)).expect("sent");
    while !matches!(reader.read_instance(1, last, StateMasks::ANY), Ok(samples) if samples.len() == 1)
    {
        std::thread::yield_now();
    }
    let mut previous = InstanceHandle::NIL;
    let mut walked = Vec::new();
    while let Ok(samples) = reader.read_next_instance(10, previous, StateMasks::ANY) {
        let number = |sample: spindle_dds::Sample<'_, _>| -> u32 {
            let view: crate::flight::State = sample.data().expect("data");
            view.number
        };
        walked.push(samples.iter().map(number).collect::<Vec<_>>());
        previous = samples.get(0).expect("at least one").info().instance_handle;
    }
    assert_eq!(walked, [vec![1, 3], vec![2], vec![0], vec![9]]);
    let one = writer.register_instance(&state(1, 0)).expect("enabled");
    assert_eq!(
        reader
            .take_instance(10, one, StateMasks::ANY)
            .expect("two")
            .len(),
        2
    );
    assert_eq!(reader.take(10).expect("the others").len(), 3);
}

#[test]
fn bytes_that_make_no_sense_are_lost_and_skipped() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let reader = reader(&participants[1], "State");
    enable(&participants);
    let mut nonsense = testing::loan(&writer, 32).expect("room");
    nonsense.bytes().fill(0xff);
    nonsense
        .finish(32, spindle_dds::idl::KeyHash([1; 16]))
        .expect("sent");
    writer.write(&state(1, 5)).expect("sent");
    assert_eq!(
        take(&reader, 1, |sample| sample.data().expect("data").number),
        [5]
    );
    let lost = reader.sample_lost_status().expect("alive");
    assert_eq!((lost.total_count, lost.total_count_change), (1, 1));
    writer
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
}

#[test]
fn reading_loses_such_bytes_once() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let (writer, reader) = (writer(&participant, "State"), reader(&participant, "State"));
    enable(std::slice::from_ref(&participant));
    let mut nonsense = testing::loan(&writer, 32).expect("room");
    nonsense.bytes().fill(0xff);
    nonsense
        .finish(32, spindle_dds::idl::KeyHash([1; 16]))
        .expect("sent");
    writer.write(&state(1, 5)).expect("sent");
    // One at a time: it stands before the one that makes sense.
    for _ in 0..3 {
        let samples = loop {
            match reader.read(1) {
                Ok(samples) => break samples,
                Err(error) => assert!(error.is_no_data(), "{error}"),
            }
            std::thread::yield_now();
        };
        let data = samples.get(0).expect("one").data().expect("data");
        assert_eq!(data.number, 5);
    }
    assert_eq!(reader.take(10).expect("the same").len(), 1);
    let lost = reader.sample_lost_status().expect("alive");
    assert_eq!((lost.total_count, lost.total_count_change), (1, 1));
}

#[test]
fn a_disposal_of_an_instance_too_many_is_rejected() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let mut qos = keep_all_reader();
    qos.resource_limits.max_instances = 1.into();
    let reader = reader_with(&participant, "State", qos);
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 0)).expect("sent");
    writer.dispose(&state(2, 0)).expect("sent");
    let mut status = reader.sample_rejected_status().expect("alive");
    wait_until(reader.status_condition().expect("alive"), || {
        status = reader.sample_rejected_status().expect("alive");
        status.total_count == 1
    });
    assert_eq!(status.last_reason, RejectedReason::ByInstancesLimit);
    let refused = writer.register_instance(&state(2, 0)).expect("enabled");
    assert_eq!(status.last_instance_handle, refused);
}

#[test]
fn a_topic_that_disposes_of_its_instances_does_not_grow() {
    const DISPOSED: u32 = 3_000;
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    let known = |icao| {
        let found = reader.lookup_instance(&state(icao, 0)).expect("enabled");
        found.is_some()
    };
    writer.write(&state(0, 0)).expect("sent");
    take(&reader, 1, |_| ());
    for icao in 1..=DISPOSED {
        writer.write(&state(icao, icao)).expect("sent");
        writer.dispose(&state(icao, icao)).expect("sent");
        take(&reader, 2, |_| ());
    }
    // The last thousand are remembered, and the one that is alive.
    let remembered = (0..=DISPOSED).filter(|icao| known(*icao)).count();
    assert_eq!(remembered, 1024 + 1);
    assert!(known(0) && known(DISPOSED));
    for (icao, generation) in [(DISPOSED, 1), (1, 0)] {
        writer.write(&state(icao, 0)).expect("sent");
        let count = |sample: spindle_dds::Sample<'_, _>| sample.info().disposed_generation_count;
        assert_eq!(take(&reader, 1, count), [generation]);
    }
}

#[test]
fn a_writer_registers_the_instance_that_it_disposes_of() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let [first, second] = [0; 2].map(|_| writer(&participant, "State"));
    let reader = reader(&participant, "State");
    enable(std::slice::from_ref(&participant));
    first.write(&state(1, 0)).expect("sent");
    second.dispose(&state(1, 0)).expect("sent");
    first.unregister_instance(&state(1, 0)).expect("sent");
    assert_eq!(take(&reader, 2, |_| ()).len(), 2);
    first
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
    let known = reader.lookup_instance(&state(1, 0)).expect("enabled");
    assert!(known.is_some(), "the second one has it");
    second.write(&state(1, 1)).expect("sent");
    let generations = |sample: spindle_dds::Sample<'_, _>| sample.info().disposed_generation_count;
    assert_eq!(take(&reader, 1, generations), [1]);
}
