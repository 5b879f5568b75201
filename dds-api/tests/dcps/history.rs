//! Readers that come late get what durable writers have kept, and then what they write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use spindle_dds::qos::{
    DataReaderQos, DataWriterQos, Durability, DurabilityKind, History, Reliability, ResourceLimits,
    WriterDataLifecycle,
};
use spindle_dds::{
    DataReader, DomainParticipant, Duration, Error, InstanceState, StatusMask, WaitSet, testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader_with, reliable_writer, state, take,
    take_some, until, writer_with,
};

const LOCAL: Durability = Durability {
    kind: DurabilityKind::TransientLocal,
};

fn durable_writer(history: History) -> DataWriterQos {
    DataWriterQos {
        durability: LOCAL,
        history,
        writer_data_lifecycle: WriterDataLifecycle {
            autodispose_unregistered_instances: false,
        },
        ..reliable_writer()
    }
}

fn durable_reader() -> DataReaderQos {
    DataReaderQos {
        durability: LOCAL,
        ..keep_all_reader()
    }
}

/// What a reader has got: key, number and state of the instance.
type Seen = (u32, Option<u32>, InstanceState);

fn alive(icao: u32, number: u32) -> Seen {
    (icao, Some(number), InstanceState::Alive)
}

/// All that a reader that comes now gets until it has the history.
fn history_of(reader: &DataReader<State>) -> Vec<Seen> {
    reader
        .wait_for_historical_data(PATIENCE)
        .expect("the history comes");
    let samples = match reader.take(usize::MAX) {
        Ok(samples) => samples,
        Err(Error::NoData(_)) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let seen = samples.iter().map(|sample| {
        let key = sample.key().expect("a key").icao;
        let number = sample.data().ok().map(|data| data.number);
        (key, number, sample.info().instance_state)
    });
    seen.collect()
}

fn late_reader(participant: &DomainParticipant) -> DataReader<State> {
    reader_with(participant, "State", durable_reader())
}

#[test]
fn a_late_reader_gets_what_is_kept_and_then_what_is_written() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    enable(&[one.clone(), other.clone()]);
    for number in 0..5 {
        writer.write(&state(1, number)).expect("sent");
    }
    // In another participant, and in that of the writer.
    for (participant, written) in [(&other, 5), (&one, 6)] {
        let reader = late_reader(participant);
        let kept: Vec<Seen> = (0..written).map(|number| alive(1, number)).collect();
        assert_eq!(history_of(&reader), kept);
        writer.write(&state(1, written)).expect("sent");
        let live = take(&reader, 1, |sample| sample.data().expect("data").number);
        assert_eq!(live, [written]);
        let lost = reader.sample_lost_status().expect("alive").total_count;
        assert_eq!(lost, 0);
    }
}

#[test]
fn a_late_participant_gets_what_is_kept() {
    let meeting = Meeting::new();
    let one = meeting.participant();
    let writer = writer_with(&one, "State", durable_writer(History::keep_last(2)));
    one.enable().expect("it founds the group");
    for number in 0..6 {
        writer.write(&state(number % 2, number)).expect("sent");
    }
    let other = meeting.participant();
    let reader = late_reader(&other);
    other.enable().expect("it is let in");
    let kept = [alive(0, 2), alive(1, 3), alive(0, 4), alive(1, 5)];
    assert_eq!(history_of(&reader), kept, "the last two of each instance");
}

#[test]
fn late_readers_see_disposed_and_unregistered_instances() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_last(1)));
    enable(&[one.clone(), other.clone()]);
    for icao in 1..=4 {
        writer.write(&state(icao, icao)).expect("sent");
    }
    writer.dispose(&state(1, 0)).expect("disposed");
    writer
        .unregister_instance(&state(2, 0))
        .expect("unregistered");
    writer.dispose(&state(3, 0)).expect("disposed");
    writer
        .unregister_instance(&state(3, 0))
        .expect("unregistered");
    let mut seen = history_of(&late_reader(&other));
    seen.retain(|(_, number, _)| number.is_some());
    seen.sort_by_key(|(icao, ..)| *icao);
    let (disposed, without) = (
        InstanceState::NotAliveDisposed,
        InstanceState::NotAliveNoWriters,
    );
    assert_eq!(
        seen,
        [(1, Some(1), disposed), (2, Some(2), without), alive(4, 4)],
        "nothing is left of 3"
    );
}

#[test]
fn volatile_readers_get_no_history_and_wait_for_none() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    enable(&[one.clone(), other.clone()]);
    writer.write(&state(1, 0)).expect("sent");
    let reader = reader_with(&other, "State", keep_all_reader());
    assert_eq!(history_of(&reader), []);
    until("it is matched", || {
        writer.matched_subscriptions().expect("enabled").len() == 1
    });
    writer.write(&state(1, 1)).expect("sent");
    let live = take(&reader, 1, |sample| sample.data().expect("data").number);
    assert_eq!(live, [1]);
}

#[test]
fn durable_readers_refuse_volatile_writers() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", reliable_writer());
    let reader = late_reader(&other);
    enable(&[one.clone(), other.clone()]);
    let status = || reader.requested_incompatible_qos_status().expect("alive");
    until("the reader refuses the writer", || {
        status().total_count == 1
    });
    assert_eq!(writer.matched_subscriptions().expect("enabled"), []);
    reader
        .wait_for_historical_data(PATIENCE)
        .expect("there is none");
}

#[test]
fn best_effort_readers_and_writers_get_and_keep_history() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let qos = DataWriterQos {
        reliability: Reliability::best_effort(),
        ..durable_writer(History::keep_last(3))
    };
    let writer = writer_with(&one, "State", qos);
    enable(&[one.clone(), other.clone()]);
    for number in 0..5 {
        writer.write(&state(1, number)).expect("sent");
    }
    let qos = DataReaderQos {
        reliability: Reliability::best_effort(),
        ..durable_reader()
    };
    let reader = reader_with(&other, "State", qos);
    let kept = [alive(1, 2), alive(1, 3), alive(1, 4)];
    assert_eq!(history_of(&reader), kept);
}

#[test]
fn the_history_of_a_deleted_writer_is_gone() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    let stays = writer_with(&one, "State", durable_writer(History::keep_all()));
    enable(&[one.clone(), other.clone()]);
    writer.write(&state(1, 0)).expect("sent");
    stays.write(&state(2, 1)).expect("sent");
    let publisher = writer.publisher().expect("alive");
    publisher.delete_datawriter(&writer).expect("deleted");
    assert_eq!(history_of(&late_reader(&other)), [alive(2, 1)]);
}

/// What is kept counts as the writer's samples.
#[test]
fn a_writer_whose_history_is_full_waits_and_says_so() {
    let meeting = Meeting::new();
    let one = meeting.participant();
    let soon = Reliability::reliable(Duration::from_millis(10));
    let qos = DataWriterQos {
        reliability: soon,
        resource_limits: ResourceLimits {
            max_samples: 3.into(),
            ..ResourceLimits::default()
        },
        ..durable_writer(History::keep_all())
    };
    let writer = writer_with(&one, "State", qos);
    one.enable().expect("it founds the group");
    for number in 0..3 {
        writer.write(&state(1, number)).expect("sent");
    }
    let error = writer.write(&state(1, 3)).expect_err("no room");
    assert!(matches!(&error, Error::Timeout(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("history") && text.contains("max_samples"),
        "{text}"
    );
    writer
        .dispose(&state(1, 0))
        .expect_err("it counts as a sample");
    writer
        .unregister_instance(&state(1, 0))
        .expect("it needs no room");
    let kept = [alive(1, 0), alive(1, 1), alive(1, 2)]
        .map(|(icao, number, _)| (icao, number, InstanceState::NotAliveNoWriters));
    let mut seen = history_of(&late_reader(&one));
    seen.retain(|(_, number, _)| number.is_some());
    assert_eq!(seen, kept);
}

/// Much history while the writer goes on: all of it comes, once, in order, and then what is written.
#[test]
fn a_long_history_meets_live_samples_without_a_gap() {
    const KEPT: u32 = 200_000;
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    enable(&[one.clone(), other.clone()]);
    let write = |number| {
        writer.write(&state(number % 7, number)).expect("sent");
    };
    (0..KEPT).for_each(write);
    let goes_on = AtomicBool::new(true);
    thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut number = KEPT;
            while goes_on.load(Ordering::Relaxed) {
                write(number);
                number += 1;
            }
            number
        });
        let reader = late_reader(&other);
        let mut next = 0;
        let mut is_whole = false;
        while !is_whole || next < KEPT + 10_000 {
            is_whole =
                is_whole || !reader.historical_data().expect("alive").is_awaiting && next > 0;
            for sample in take_some(&reader, 4096).iter() {
                assert_eq!(sample.data().expect("data").number, next);
                next += 1;
            }
        }
        goes_on.store(false, Ordering::Relaxed);
        let end = writes.join().expect("it writes");
        while next < end {
            for sample in take_some(&reader, 4096).iter() {
                assert_eq!(sample.data().expect("data").number, next);
                next += 1;
            }
        }
        assert_eq!(reader.sample_lost_status().expect("alive").total_count, 0);
    });
}

/// Many writers and readers: each reader gets the history of all writers that it matches newly, once.
#[test]
fn readers_get_the_history_of_each_writer_once() {
    let meeting = Meeting::new();
    let participants: [DomainParticipant; 3] = meeting.participants();
    let writers: Vec<_> = participants
        .iter()
        .flat_map(|it| [0, 1].map(|_| it))
        .map(|it| writer_with(it, "State", durable_writer(History::keep_all())))
        .collect();
    enable(&participants);
    for number in 0..3 {
        for (icao, writer) in (0..).zip(&writers) {
            writer.write(&state(icao, number)).expect("sent");
        }
    }
    let readers: Vec<_> = participants.iter().map(late_reader).collect();
    for reader in &readers {
        let mut seen = history_of(reader);
        seen.sort_by_key(|(icao, number, _)| (*icao, *number));
        let of_writer = |icao| (0..3).map(move |number| alive(icao, number));
        assert_eq!(seen, (0..6).flat_map(of_writer).collect::<Vec<_>>());
    }
    // Another writer replaces the epoch, and brings nothing again.
    let another = writer_with(
        &participants[0],
        "State",
        durable_writer(History::keep_all()),
    );
    another.write(&state(9, 9)).expect("sent");
    for reader in &readers {
        let next = take(reader, 1, |sample| sample.data().expect("data").icao);
        assert_eq!(next, [9]);
    }
}

/// A WaitSet wakes for history as for anything else.
#[test]
fn history_is_data_available() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    enable(&[one.clone(), other.clone()]);
    writer.write(&state(1, 0)).expect("sent");
    let reader = late_reader(&other);
    let condition = reader.status_condition().expect("alive");
    condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    let waits = WaitSet::new();
    waits.attach(&condition);
    waits.wait(PATIENCE).expect("history comes");
    assert_eq!(history_of(&reader), [alive(1, 0)]);
}

/// The numbers of the next samples. There are changes of the instance's state among them.
fn valid(reader: &DataReader<State>, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let next = take(reader, 1, |sample| {
            sample.data().ok().map(|data| data.number)
        });
        numbers.extend(next.into_iter().flatten());
    }
    numbers
}

/// Loses its group, and waits until it is back.
fn lose(participant: &DomainParticipant) {
    testing::fail(participant, "this is a test").expect("enabled");
    until("it is back", || {
        let status = participant.membership_status().expect("alive");
        status.is_member && status.total_count == 1
    });
}

#[test]
fn what_a_reader_has_missed_while_it_was_away_comes_once() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    let reader = late_reader(&other);
    enable(&[one.clone(), other.clone()]);
    let numbers = |count| valid(&reader, count);
    let write = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            writer.write(&state(1, number)).expect("sent");
        }
    };
    write(0..3);
    assert_eq!(numbers(3), [0, 1, 2]);
    testing::fail(&other, "this is a test").expect("enabled");
    write(3..6);
    assert_eq!(numbers(3), [3, 4, 5]);
    write(6..7);
    assert_eq!(numbers(1), [6]);
    let lost = reader.sample_lost_status().expect("alive").total_count;
    assert_eq!(lost, 0);
}

#[test]
fn the_history_of_a_writer_lasts_over_a_return() {
    let meeting = Meeting::new();
    let [one, other] = meeting.participants();
    let writer = writer_with(&one, "State", durable_writer(History::keep_all()));
    let early = late_reader(&other);
    enable(&[one.clone(), other.clone()]);
    let numbers = |count| valid(&early, count);
    for number in 0..3 {
        writer.write(&state(1, number)).expect("sent");
    }
    assert_eq!(numbers(3), [0, 1, 2]);
    lose(&one);
    writer.write(&state(1, 3)).expect("sent");
    let kept: Vec<Seen> = (0..4).map(|number| alive(1, number)).collect();
    assert_eq!(numbers(1), [3], "and nothing comes again");
    let mut seen = history_of(&late_reader(&other));
    seen.retain(|(_, number, _)| number.is_some());
    assert_eq!(seen, kept);
}
