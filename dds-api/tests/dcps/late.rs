//! Endpoints and participants that come and go while others publish.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use spindle_dds::qos::Reliability;
use spindle_dds::{
    DataReader, DataWriter, Duration, Error, StatusMask, SubscriptionMatchedStatus, WaitSet,
    testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, reader, reliable_writer, state, take, take_some, until, wait_until,
    writer, writer_with,
};

fn matched(reader: &DataReader<State>) -> SubscriptionMatchedStatus {
    reader.subscription_matched_status().expect("alive")
}

fn wait_for_readers(writer: &DataWriter<State>, count: usize) {
    wait_until(writer.status_condition().expect("alive"), || {
        writer.matched_subscriptions().expect("enabled").len() == count
    });
}

fn numbers(reader: &DataReader<State>, count: usize) -> Vec<u32> {
    take(reader, count, |sample| sample.data().expect("data").number)
}

/// All that a reader has of one writer until a sample says that it is the last.
fn until_last(reader: &DataReader<State>, last: u32) -> Vec<u32> {
    let mut all = Vec::new();
    while all.last() != Some(&last) {
        let samples = take_some(reader, 100);
        let data = samples.iter().filter(|sample| sample.info().valid_data);
        all.extend(data.map(|sample| sample.data().expect("data").number));
    }
    all
}

#[test]
fn a_late_joiner_receives_and_is_received() {
    let meeting = Meeting::new();
    let founder = meeting.participant();
    let early = writer(&founder, "State");
    let heard = reader(&founder, "State");
    founder.enable().expect("it founds the group");
    early.write(&state(1, 0)).expect("sent");
    assert_eq!(numbers(&heard, 1), [0]);
    let guest = meeting.participant();
    let late_reader = reader(&guest, "State");
    guest.enable().expect("it is let in");
    wait_for_readers(&early, 2);
    early.write(&state(1, 1)).expect("sent");
    // Samples from before its match are not delivered, and do not count as lost.
    assert_eq!(numbers(&late_reader, 1), [1]);
    assert_eq!(
        late_reader.sample_lost_status().expect("alive").total_count,
        0
    );
    let late_writer = writer(&guest, "State");
    late_writer
        .write(&state(2, 2))
        .expect("it waits for its epoch");
    for reader in [&heard, &late_reader] {
        let mut all = numbers(reader, 1);
        if all == [1] {
            all = numbers(reader, 1);
        }
        assert_eq!(all, [2]);
    }
    guest.close().expect("it leaves");
    wait_for_readers(&early, 1);
    wait_until(heard.status_condition().expect("alive"), || {
        matched(&heard).current_count == 1
    });
    early.write(&state(1, 3)).expect("sent");
    let samples = until_last(&heard, 3);
    assert_eq!(samples, [3]);
}

#[test]
fn a_reader_that_is_deleted_is_unmatched_elsewhere_and_holds_nothing_back() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let written = writer(&participants[0], "State");
    let stays = reader(&participants[0], "State");
    let goes = reader(&participants[1], "State");
    enable(&participants);
    let before = written.publication_matched_status().expect("alive");
    assert_eq!((before.total_count, before.current_count), (2, 2));
    written.write(&state(1, 0)).expect("sent");
    let subscriber = goes.subscriber().expect("alive");
    subscriber.delete_datareader(&goes).expect("no loans");
    let condition = written.status_condition().expect("alive");
    condition.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waits = WaitSet::new();
    waits.attach(&condition);
    waits.wait(PATIENCE).expect("a view tells it");
    let after = written.publication_matched_status().expect("alive");
    assert_eq!((after.total_count, after.total_count_change), (2, 0));
    assert_eq!((after.current_count, after.current_count_change), (1, -1));
    assert_eq!(after.last_subscription_handle, goes.instance_handle());
    let left = written.matched_subscriptions().expect("enabled");
    assert_eq!(left, [stays.instance_handle()]);
    // Many rings full: taking makes room.
    for number in 1..5_000 {
        written.write(&state(1, number)).expect("sent");
    }
    assert_eq!(numbers(&stays, 5_000), (0..5_000).collect::<Vec<_>>());
}

#[test]
fn what_others_do_costs_a_reader_that_stays_nothing() {
    const SAMPLES: u32 = 3_000;
    let meeting = Meeting::new();
    let participants: [_; 3] = meeting.participants();
    let written = writer(&participants[0], "State");
    let stays = [1, 2].map(|at| reader(&participants[at], "State"));
    enable(&participants);
    let (over, changed) = (AtomicBool::new(false), AtomicU32::new(0));
    let (orders, changes) = thread::scope(|scope| {
        let changing = scope.spawn(|| {
            let mut changes = 0;
            while !over.load(Ordering::SeqCst) {
                let (guest, host) = (&participants[1], &participants[2]);
                let comes = reader(guest, "State");
                let other = writer(host, "State");
                other.write(&state(9, changes)).expect("sent");
                let subscriber = comes.subscriber().expect("alive");
                wait_until(comes.status_condition().expect("alive"), || {
                    matched(&comes).current_count >= 1
                });
                subscriber.delete_datareader(&comes).expect("no samples");
                let publisher = other.publisher().expect("alive");
                publisher.delete_datawriter(&other).expect("no loans");
                changes += 1;
                changed.store(changes, Ordering::SeqCst);
            }
            changes
        });
        scope.spawn(|| {
            for number in 0..SAMPLES {
                if number % 100 == 0 {
                    thread::sleep(std::time::Duration::from_millis(1));
                }
                written.write(&state(1, number)).expect("sent");
            }
            written
                .wait_for_acknowledgments(PATIENCE)
                .expect("received");
            until("the group changes", || changed.load(Ordering::SeqCst) > 1);
            over.store(true, Ordering::SeqCst);
        });
        let taking = stays.each_ref().map(|reader| {
            scope.spawn(|| {
                let mut all = Vec::new();
                // What others write may stand behind it, and come with it or later.
                while !all.contains(&(1, SAMPLES - 1)) {
                    let samples = take_some(reader, 100);
                    let data = samples.iter().filter(|it| it.info().valid_data);
                    for sample in data {
                        let state = sample.data().expect("data");
                        all.push((state.icao, state.number));
                    }
                }
                let last = all.iter().position(|it| *it == (1, SAMPLES - 1));
                all.truncate(last.map_or(0, |at| at + 1));
                all
            })
        });
        let orders = taking.map(|thread| thread.join().expect("it takes all"));
        (orders, changing.join().expect("it changes"))
    });
    assert!(changes > 1, "{changes}");
    // Each writer came once and went once, also if it announced its end in one epoch and was
    // removed with a later one.
    for reader in &stays {
        let status = || matched(reader);
        wait_until(reader.status_condition().expect("alive"), || {
            status().total_count > changes as i32 && status().current_count == 1
        });
        assert_eq!(status().total_count, 1 + changes as i32);
    }
    assert_eq!(orders[0], orders[1], "one order, whatever comes and goes");
    let own = orders[0].iter().filter(|(icao, _)| *icao == 1);
    let own: Vec<u32> = own.map(|(_, number)| *number).collect();
    assert_eq!(own, (0..SAMPLES).collect::<Vec<_>>());
    let others = orders[0].iter().filter(|(icao, _)| *icao == 9);
    assert!(
        others.is_sorted_by(|a, b| a < b),
        "each at most once, in order"
    );
}

#[test]
fn loans_and_writers_that_wait_live_through_views() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = reliable_writer();
    qos.property.set("spindle.ring.messages", "4");
    let written = writer_with(&participants[0], "State", qos);
    let full = spindle_dds::qos::DataReaderQos {
        resource_limits: spindle_dds::qos::ResourceLimits {
            max_samples: 1.into(),
            ..Default::default()
        },
        ..crate::meeting::keep_all_reader()
    };
    let slow = crate::meeting::reader_with(&participants[1], "State", full);
    enable(&participants);
    let mut loan = written.loan().expect("room");
    loan.set_icao(1).set_number(1000);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            // It gets stuck when the reader's cache and the ring are full.
            for number in 0..50 {
                written.write(&state(1, number)).expect("sent");
            }
        });
        for _ in 0..5 {
            let guest = meeting.participant();
            let late = reader(&guest, "State");
            guest.enable().expect("it is let in");
            wait_for_readers(&written, 2);
            drop(late);
            guest.close().expect("it leaves");
            wait_for_readers(&written, 1);
        }
        assert_eq!(numbers(&slow, 50), (0..50).collect::<Vec<_>>());
        writing.join().expect("it writes all");
    });
    loan.callsign("DLH4AB")
        .expect("short")
        .publish()
        .expect("sent");
    assert_eq!(numbers(&slow, 1), [1000], "copied into the present epoch");
}

#[test]
fn a_writer_without_an_epoch_waits_or_drops() {
    let meeting = Meeting::new();
    let participant = meeting.participant();
    participant.enable().expect("it founds the group");
    let mut qos = reliable_writer();
    let heard = reader(&participant, "State");
    for round in 0..20 {
        qos.reliability = Reliability::reliable(PATIENCE);
        let waits = writer_with(&participant, "State", qos.clone());
        waits
            .write(&state(1, round))
            .expect("it waits for its epoch");
        waits.wait_for_acknowledgments(PATIENCE).expect("received");
        qos.reliability = Reliability::best_effort();
        let drops = writer_with(&participant, "Other", qos.clone());
        let receipt = drops.write(&state(1, round)).expect("it never waits");
        assert_eq!(u64::from(receipt.was_dropped()), drops.dropped_samples());
        for gone in [waits, drops] {
            let publisher = gone.publisher().expect("alive");
            publisher.delete_datawriter(&gone).expect("no loans");
            let error = gone.write(&state(1, 0)).expect_err("deleted");
            assert!(matches!(error, Error::AlreadyDeleted(_)), "{error}");
        }
    }
    wait_until(heard.status_condition().expect("alive"), || {
        let status = matched(&heard);
        (status.total_count, status.current_count) == (20, 0)
    });
}

#[test]
fn a_write_that_waits_ends_with_its_writer() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let mut qos = reliable_writer();
    qos.reliability = Reliability::reliable(Duration::INFINITE);
    qos.property.set("spindle.ring.messages", "2");
    let written = writer_with(&participants[0], "State", qos);
    let full = spindle_dds::qos::DataReaderQos {
        resource_limits: spindle_dds::qos::ResourceLimits {
            max_samples: 1.into(),
            ..Default::default()
        },
        ..crate::meeting::keep_all_reader()
    };
    let _slow = crate::meeting::reader_with(&participants[1], "State", full);
    enable(&participants);
    let error = thread::scope(|scope| {
        let writing =
            scope.spawn(|| (0..).find_map(|number| written.write(&state(1, number)).err()));
        until("it waits for room", || {
            testing::waiting_writers(&participants[0]) == Ok(1)
        });
        participants[0].close().expect("it leaves");
        writing.join().expect("it ends")
    });
    assert!(matches!(error, Some(Error::AlreadyDeleted(_))), "{error:?}");
}
