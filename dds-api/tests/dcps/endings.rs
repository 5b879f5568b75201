//! What becomes of instances and matches when writers, readers and
//! participants go, and what does not go.

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, History, Reliability, ResourceLimits, WriterDataLifecycle,
};
use spindle_dds::{
    DataReader, DataWriter, Duration, Error, InstanceHandle, InstanceState, SampleInfo, StateMasks,
    WaitSet,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    take_some, wait_in, wait_until, writer, writer_with,
};

fn lifecycle(autodispose: bool) -> DataWriterQos {
    DataWriterQos {
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: autodispose,
        },
        ..reliable_writer()
    }
}

fn delete<T>(writer: &DataWriter<T>) {
    let publisher = writer.publisher().expect("alive");
    publisher.delete_datawriter(writer).expect("no loans");
}

/// A change that a reader sees: instance, state, writer, position, time.
type News = (InstanceHandle, InstanceState, InstanceHandle, u64, i64);

/// All that a reader is told of instances behind `data` samples.
fn news(reader: &DataReader<State>, data: usize, news: usize) -> Vec<News> {
    let mut infos: Vec<SampleInfo> = take(reader, data + news, |sample| *sample.info());
    assert!(infos.is_sorted_by_key(|info| info.position()), "{infos:?}");
    infos.retain(|info| !info.valid_data);
    assert_eq!(infos.len(), news);
    let news = infos.iter().map(|info| {
        let (position, timestamp) = (info.position(), info.source_timestamp);
        let (instance, state) = (info.instance_handle, info.instance_state);
        (
            instance,
            state,
            info.publication_handle,
            position,
            timestamp,
        )
    });
    news.collect()
}

#[test]
fn a_deleted_writer_gives_up_its_instances_the_same_everywhere() {
    use InstanceState::{NotAliveDisposed, NotAliveNoWriters};
    // Autodispose; the state of the instance that only this writer has, and of the one that
    // another writer has, too.
    let cases = [
        (true, NotAliveDisposed, Some(NotAliveDisposed)),
        (false, NotAliveNoWriters, None),
    ];
    for (autodispose, alone, shared) in cases {
        let meeting = Meeting::new();
        let participants: [_; 3] = meeting.participants();
        let goes = writer_with(&participants[0], "State", lifecycle(!autodispose));
        let stays = writer(&participants[1], "State");
        let readers = [0, 1, 2].map(|at| reader(&participants[at], "State"));
        enable(&participants);
        // It can be changed until it is needed.
        goes.set_qos(lifecycle(autodispose)).expect("mutable");
        let handles = [1, 2].map(|icao| goes.register_instance(&state(icao, 0)).expect("enabled"));
        stays.write(&state(2, 0)).expect("sent");
        let acknowledged = stays.wait_for_acknowledgments(PATIENCE);
        acknowledged.expect("received");
        goes.write(&state(1, 1)).expect("sent");
        goes.write(&state(2, 2)).expect("sent");
        delete(&goes);
        let count = 1 + usize::from(shared.is_some());
        let told = readers.each_ref().map(|reader| news(reader, 3, count));
        for (_, _, by, _, at) in &told[0] {
            assert_eq!(*by, goes.instance_handle());
            assert!(*at > 0);
        }
        let states: Vec<_> = told[0].iter().map(|news| (news.0, news.1)).collect();
        let expected = [(handles[0], Some(alone)), (handles[1], shared)];
        let expected = expected.map(|(handle, state)| state.map(|state| (handle, state)));
        assert_eq!(states, expected.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2], "one place in the order, one time");
    }
}

#[test]
fn a_writer_that_leaves_with_a_full_ring_changes_its_instances() {
    for (autodispose, expected) in [
        (true, InstanceState::NotAliveDisposed),
        (false, InstanceState::NotAliveNoWriters),
    ] {
        let meeting = Meeting::new();
        let participants: [_; 3] = meeting.participants();
        let mut qos = DataWriterQos {
            reliability: Reliability::reliable(Duration::from_millis(20)),
            // Others would replace what finds no room.
            history: History::keep_all(),
            ..lifecycle(autodispose)
        };
        qos.property.set("spindle.ring.messages", "4");
        let writer = writer_with(&participants[0], "State", qos);
        let full = DataReaderQos {
            resource_limits: ResourceLimits {
                max_samples: 1.into(),
                ..ResourceLimits::default()
            },
            ..keep_all_reader()
        };
        let readers = [1, 2].map(|at| reader_with(&participants[at], "State", full.clone()));
        enable(&participants);
        // The first one may wait for the group, and be sent after the ring's place of the second one
        // is taken, which then keeps its own: so that one is taken in first.
        writer
            .write_w_timestamp(&state(1, 0), 1)
            .expect("there is room");
        writer
            .wait_for_acknowledgments(PATIENCE)
            .expect("each reader has a place");
        let (mut written, mut last) = (1, 1);
        // The readers' place has one, the ring the others.
        while written < 5 {
            let timestamp = i64::from(written) + 1;
            if writer
                .write_w_timestamp(&state(1, written), timestamp)
                .is_ok()
            {
                last = timestamp;
                written += 1;
            }
        }
        participants[0].close().expect("it leaves");
        let told = readers
            .each_ref()
            .map(|reader| news(reader, written as usize, 1));
        assert_eq!(told[0], told[1]);
        let (_, state, _, position, timestamp) = told[0][0];
        assert_eq!(state, expected);
        assert_eq!(timestamp, last, "that of its last words");
        assert_ne!(position, u64::MAX);
        for reader in &readers {
            let status = reader.liveliness_changed_status().expect("alive");
            let counts = (status.alive_count, status.not_alive_count);
            assert_eq!(counts, (0, 0), "it has left, and not failed");
        }
    }
}

#[test]
fn contained_entities_go_together_or_not_at_all() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let first = writer(&participant, "State");
    let second = writer(&participant, "Other");
    let (idle, busy) = (reader(&participant, "Other"), reader(&participant, "State"));
    enable(std::slice::from_ref(&participant));
    let refused = |result: spindle_dds::Result<()>, why: &str| {
        let error = result.expect_err("something is in use");
        assert!(matches!(error, Error::PreconditionNotMet(_)), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(first.qos().is_ok() && second.qos().is_ok() && idle.qos().is_ok());
        assert!(busy.qos().is_ok(), "nothing is deleted");
    };
    let loan = second.loan().expect("room");
    refused(participant.delete_contained_entities(), "loans");
    let publisher = second.publisher().expect("alive");
    refused(publisher.delete_contained_entities(), "loans");
    drop(loan);
    first.write(&state(1, 1)).expect("sent");
    let samples = take_some(&busy, 1);
    refused(participant.delete_contained_entities(), "samples out");
    let subscriber = busy.subscriber().expect("alive");
    refused(subscriber.delete_contained_entities(), "samples out");
    drop(samples);
    let waits = WaitSet::new();
    std::thread::scope(|scope| {
        let condition = busy.read_condition(StateMasks::ANY).expect("alive");
        let wake = spindle_dds::GuardCondition::new();
        waits.attach(&condition);
        waits.attach(&wake);
        let waiting = wait_in(scope, &waits, Duration::INFINITE);
        refused(subscriber.delete_datareader(&busy), "waits");
        refused(participant.delete_contained_entities(), "waits");
        wake.set_trigger_value(true);
        waiting.join().expect("it ends").expect("woken");
    });
    participant
        .delete_contained_entities()
        .expect("nothing is in use");
    let gone = [first.qos().is_err(), second.qos().is_err()];
    assert_eq!(gone, [true; 2]);
    assert!(idle.qos().is_err() && busy.qos().is_err());
}

#[test]
fn writers_lose_a_deleted_reader() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let writers = [0, 1].map(|at| writer(&participants[at], "State"));
    let goes = reader(&participants[0], "State");
    let stays = reader(&participants[0], "State");
    enable(&participants);
    for writer in &writers {
        let status = writer.publication_matched_status().expect("alive");
        assert_eq!(status.current_count, 2);
    }
    let subscriber = goes.subscriber().expect("alive");
    subscriber.delete_datareader(&goes).expect("no loans");
    for writer in &writers {
        let matched = || writer.matched_subscriptions().expect("enabled");
        wait_until(writer.status_condition().expect("alive"), || {
            matched() == [stays.instance_handle()]
        });
        let status = writer.publication_matched_status().expect("alive");
        assert_eq!((status.current_count, status.current_count_change), (1, -1));
        assert_eq!(status.last_subscription_handle, goes.instance_handle());
    }
    participants[0].close().expect("it leaves");
    wait_until(writers[1].status_condition().expect("alive"), || {
        let status = writers[1].publication_matched_status().expect("alive");
        status.current_count == 0
    });
}

#[test]
fn what_went_through_ended_views_stays_counted() {
    const SAMPLES: u64 = 200;
    let meeting = Meeting::new();
    let participants = meeting.participants::<2>();
    let writer = writer_with(&participants[0], "State", reliable_writer());
    let reader = reader_with(&participants[1], "State", keep_all_reader());
    enable(&participants);
    for number in 0..SAMPLES {
        let sent = writer.write(&state(1, number as u32));
        sent.expect("room");
    }
    take(&reader, SAMPLES as usize, |_| ());
    let [first, second] = participants;
    second.close().expect("closed");
    // No figures were asked for while the epoch lasted.
    wait_until(writer.status_condition().expect("alive"), || {
        writer.matched_subscriptions().expect("enabled").is_empty()
    });
    let fabric = first.counters().expect("enabled").fabric;
    // A sample is a header of 88 bytes, and its payload.
    assert!(fabric.bytes_pushed >= SAMPLES * 96, "{fabric:?}");
}
