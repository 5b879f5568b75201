//! One order for all, and how it is presented.

use std::thread;

use spindle_dds::qos::{DataReaderQos, Reliability, SubscriberQos};
use spindle_dds::{DataReader, Duration};

use crate::flight::State;
use crate::meeting::{Meeting, enable, keep_all_reader, reader, state, take, writer};

/// Consecutive samples are delivered together, as far as they are for the same reader.
#[test]
fn samples_of_a_topic_without_readers_take_no_others_along() {
    const SAMPLES: u32 = 2_000;
    let meeting = Meeting::new();
    let participants = [0, 1].map(|_| {
        let builder = meeting.builder();
        let builder = builder.property("spindle.topic.State.subgroup", "1");
        let builder = builder.property("spindle.topic.Beside.subgroup", "1");
        builder.create().expect("a participant")
    });
    let writers = ["Beside", "State"].map(|topic| writer(&participants[0], topic));
    let readers = [0, 1].map(|at| reader(&participants[at], "State"));
    enable(&participants);
    for number in 0..SAMPLES {
        for writer in &writers {
            writer.write(&state(1, number)).expect("sent");
        }
    }
    for reader in &readers {
        let numbers = take(reader, SAMPLES as usize, |sample| {
            sample.data().expect("data").number
        });
        assert!(numbers.into_iter().eq(0..SAMPLES));
    }
}

#[test]
fn two_writers_are_seen_in_one_order_everywhere() {
    const SAMPLES: u32 = 5_000;
    let meeting = Meeting::new();
    let participants: [_; 3] = meeting.participants();
    let writers = [0, 1].map(|at| writer(&participants[at], "State"));
    let readers = [0, 1, 2].map(|at| reader(&participants[at], "State"));
    enable(&participants);
    let orders: Vec<_> = thread::scope(|scope| {
        for (feed, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..SAMPLES {
                    let mut sample = writer.loan().expect("room");
                    sample
                        .set_icao(number % 7)
                        .set_number(number)
                        .set_feed(feed as u16);
                    sample
                        .callsign("DLH4AB")
                        .expect("short")
                        .publish()
                        .expect("sent");
                }
            });
        }
        let taking = readers.each_ref().map(|reader| {
            scope.spawn(move || {
                take(reader, 2 * SAMPLES as usize, |sample| {
                    let view = sample.view().expect("it makes sense");
                    assert_eq!(view.callsign(), "DLH4AB");
                    (sample.info().position(), view.feed(), view.number())
                })
            })
        });
        taking
            .map(|thread| thread.join().expect("it takes all"))
            .into()
    });
    assert!(orders[0].is_sorted(), "positions rise");
    assert!(orders.iter().all(|order| *order == orders[0]));
    for feed in [0, 1] {
        let numbers: Vec<_> = orders[0]
            .iter()
            .filter(|of| of.1 == feed)
            .map(|of| of.2)
            .collect();
        assert_eq!(
            numbers,
            (0..SAMPLES).collect::<Vec<_>>(),
            "each writer's own order"
        );
    }
    participants
        .iter()
        .for_each(|participant| participant.close().expect("it leaves"));
}

#[test]
fn presentation_groups_by_instance_or_keeps_the_stream() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let in_order = reader(&participant, "State");
    let by_instance: DataReader<State> = participant
        .subscriber()
        .qos(SubscriberQos::default())
        .create()
        .expect("a subscriber")
        .reader(&in_order.topic())
        .qos(keep_all_reader())
        .create()
        .expect("a reader");
    enable(std::slice::from_ref(&participant));
    for (icao, number) in [(2, 0), (1, 1), (2, 2), (1, 3), (3, 4)] {
        writer.write(&state(icao, number)).expect("sent");
    }
    writer
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
    let number = |sample: spindle_dds::Sample<'_, State>| sample.data().expect("data").number;
    assert_eq!(take(&in_order, 5, number), [0, 1, 2, 3, 4]);
    wait_for_all(&by_instance, 5);
    let samples = by_instance.take(10).expect("five");
    let ranks: Vec<_> = samples
        .iter()
        .map(|sample| (number(sample), sample.info().sample_rank))
        .collect();
    assert_eq!(ranks, [(0, 1), (2, 0), (1, 1), (3, 0), (4, 0)]);
}

fn wait_for_all(reader: &DataReader<State>, count: usize) {
    while reader.read(count).map_or(0, |samples| samples.len()) < count {
        thread::yield_now();
    }
}

#[test]
fn best_effort_is_first_in_first_out_for_each_writer() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = crate::meeting::reliable_writer();
    qos.reliability = Reliability::best_effort();
    let writer = crate::meeting::writer_with(&participants[0], "State", qos);
    let qos = DataReaderQos {
        reliability: Reliability::best_effort(),
        ..keep_all_reader()
    };
    let reader = crate::meeting::reader_with(&participants[1], "State", qos);
    enable(&participants);
    const SAMPLES: u32 = 3_000;
    let mut sent = 0;
    for number in 0..SAMPLES {
        sent += usize::from(!writer.write(&state(1, number)).expect("sent").was_dropped());
    }
    assert_eq!(sent as u64 + writer.dropped_samples(), u64::from(SAMPLES));
    let numbers = take(&reader, sent, |sample| sample.data().expect("data").number);
    assert!(numbers.is_sorted_by(|a, b| a < b));
}
