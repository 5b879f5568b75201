//! A participant that has lost its group comes back by itself.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use spindle_dds::qos::{DataReaderQos, DataWriterQos, History, Reliability};
use spindle_dds::{
    DataReader, DataReaderListener, DomainParticipant, DomainParticipantListener, Duration, Error,
    InstanceState, MembershipStatus, Sample, StateMasks, StatusMask, WaitSet, testing,
};

use crate::flight::State;
use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, reader_with, reliable_writer, state, take,
    until, wait_for_members, wait_in, writer, writer_with,
};

/// Sends on what a participant is told.
struct Told(Sender<MembershipStatus>);

impl DomainParticipantListener for Told {
    fn on_failed(&mut self, _: &DomainParticipant, reason: &str) {
        panic!("it comes back: {reason}");
    }

    fn on_membership_changed(&mut self, _: &DomainParticipant, status: &MembershipStatus) {
        let _ = self.0.send(status.clone());
    }
}

fn participant(meeting: &Meeting) -> (DomainParticipant, Receiver<MembershipStatus>) {
    let (sender, told) = mpsc::channel();
    let participant = meeting
        .builder()
        .property("spindle.failure.limit_ms", "1000")
        .listener(StatusMask::NONE, Told(sender))
        .create()
        .expect("a participant");
    (participant, told)
}

fn is_back(participant: &DomainParticipant, outages: i32) -> bool {
    let status = participant.membership_status().expect("alive");
    status.is_member && status.total_count == outages
}

/// Loses its group, and waits until it is back.
fn lose(participant: &DomainParticipant, outages: i32) {
    testing::fail(participant, "this is a test").expect("enabled");
    until("it is back", || is_back(participant, outages));
}

/// KEEP_ALL: what was not delivered is sent again.
fn lasting_writer() -> DataWriterQos {
    DataWriterQos {
        history: History::keep_all(),
        ..reliable_writer()
    }
}

#[test]
fn an_expelled_participant_comes_back_with_all_its_entities() {
    let meeting = Meeting::new();
    let ((stays, _), (goes, told)) = (participant(&meeting), participant(&meeting));
    let (fed, heard) = (writer(&stays, "State"), reader(&stays, "State"));
    let (own, recorder) = (writer(&goes, "State"), reader(&goes, "State"));
    enable(&[stays.clone(), goes.clone()]);
    let handle = recorder.instance_handle();
    for (writer, icao) in [(&fed, 1), (&own, 2)] {
        writer.write(&state(icao, 9)).expect("room");
        for reader in [&recorder, &heard] {
            let icaos = take(reader, 1, |it| it.data().expect("data").icao);
            assert_eq!(icaos, [icao]);
        }
    }
    let mut loan = own.loan().expect("room");
    loan.set_icao(2).set_number(3);
    // It stands still until the other goes on without it.
    let still = testing::ByHand::new(&goes).expect("enabled");
    wait_for_members(std::slice::from_ref(&stays), 1);
    // What is written meanwhile is lost to its readers.
    for number in 0..5 {
        fed.write(&state(1, number)).expect("the group goes on");
    }
    drop(still);
    let out = told.recv().expect("the listener is told");
    assert!(!out.is_member && out.back_since.is_none());
    assert!(out.last_reason.expect("a reason").contains("expelled"));
    let back = told.recv().expect("the listener is told");
    assert!(back.is_member && back.out_since <= back.back_since);
    assert_eq!(back.total_count, 1);
    wait_for_members(&[stays.clone(), goes.clone()], 2);
    // The same endpoints meet again.
    assert_eq!(recorder.instance_handle(), handle);
    for writer in [&fed, &own] {
        until("both readers match", || {
            writer.matched_subscriptions().expect("alive").len() == 2
        });
    }
    fed.write(&state(1, 5)).expect("room");
    // A loan of before is published now.
    let loan = loan.callsign("").expect("room");
    loan.publish().expect("it is back");
    let data = |sample: Sample<'_, State>| {
        let data = sample
            .info()
            .valid_data
            .then(|| sample.data().expect("data"));
        data.map(|data| (data.icao, data.number))
    };
    let mut come = Vec::new();
    until("both come", || {
        come.extend(take(&recorder, 1, data).into_iter().flatten());
        come.len() == 2
    });
    come.sort_unstable();
    assert_eq!(come, [(1, 5), (2, 3)]);
    let lost = recorder.sample_lost_status().expect("alive");
    assert_eq!(lost.total_count, 5, "those that it missed");
    until("the other hears it", || {
        take(&heard, 1, data)[0] == Some((2, 3))
    });
    assert_eq!(heard.sample_lost_status().expect("alive").total_count, 0);
    let status = heard.subscription_matched_status().expect("alive");
    assert_eq!(
        (status.current_count, status.total_count),
        (2, 3),
        "it went, and came"
    );
    assert!(told.try_recv().is_err(), "told twice");
    goes.close().expect("it leaves");
}

#[test]
fn what_a_writer_sends_over_many_returns_comes_once_and_in_order() {
    const SAMPLES: u32 = 3_000;
    let meeting = Meeting::new();
    let (stays, goes) = (meeting.participant(), meeting.participant());
    let heard = reader(&stays, "State");
    let own = writer_with(&goes, "State", lasting_writer());
    enable(&[stays.clone(), goes.clone()]);
    let written = AtomicU32::new(0);
    let numbers = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..SAMPLES {
                own.write(&state(1, number)).expect("it comes back");
                written.store(number + 1, Ordering::Relaxed);
            }
        });
        for outages in 1..=6 {
            let enough = outages as u32 * SAMPLES / 8;
            until("it writes on", || written.load(Ordering::Relaxed) >= enough);
            lose(&goes, outages);
        }
        until("all are written", || {
            written.load(Ordering::Relaxed) == SAMPLES
        });
        own.wait_for_acknowledgments(Duration::INFINITE)
            .expect("all are received");
        let mut numbers = Vec::new();
        while numbers.last() != Some(&(SAMPLES - 1)) {
            let some = take(&heard, 1, |it| it.data().ok().map(|it| it.number));
            numbers.extend(some.into_iter().flatten());
        }
        numbers
    });
    assert_eq!(numbers, (0..SAMPLES).collect::<Vec<_>>());
    assert_eq!(heard.sample_lost_status().expect("alive").total_count, 0);
    assert_eq!(goes.membership_status().expect("alive").samples_gone, 0);
}

/// The new view begins here before the other member is known to be ready for it.
#[test]
fn what_was_not_delivered_waits_until_the_others_are_ready() {
    let meeting = Meeting::new();
    let ((stays, _), (goes, _told)) = (participant(&meeting), participant(&meeting));
    let heard = reader(&stays, "State");
    let own = writer_with(&goes, "State", lasting_writer());
    enable(&[stays.clone(), goes.clone()]);
    let number = |it: Sample<'_, State>| it.data().ok().map(|it| it.number);
    own.write(&state(1, 0)).expect("room");
    assert_eq!(take(&heard, 1, number), [Some(0)]);
    for outages in 1..=3 {
        // It stands still until the other goes on without it, and writes what no member delivers.
        let still = testing::ByHand::new(&goes).expect("enabled");
        wait_for_members(std::slice::from_ref(&stays), 1);
        let numbers = outages as u32 * 10..outages as u32 * 10 + 5;
        for number in numbers.clone() {
            own.write(&state(1, number)).expect("room");
        }
        // From now on it goes in small steps.
        let by_hand = testing::ByHand::new(&stays).expect("enabled");
        drop(still);
        until("it is back", || {
            by_hand.step();
            is_back(&goes, outages)
        });
        drop(by_hand);
        let acknowledged = own.wait_for_acknowledgments(PATIENCE);
        acknowledged.expect("all is sent");
        let mut come = Vec::new();
        until("all come", || {
            if let Ok(samples) = heard.take(100) {
                come.extend(samples.iter().filter_map(number));
            }
            come.len() >= numbers.len()
        });
        assert_eq!(come, numbers.collect::<Vec<_>>());
    }
    assert_eq!(heard.sample_lost_status().expect("alive").total_count, 0);
    assert_eq!(goes.membership_status().expect("alive").samples_gone, 0);
}

#[test]
fn what_a_reader_misses_is_counted_exactly() {
    let meeting = Meeting::new();
    let (stays, goes) = (meeting.participant(), meeting.participant());
    let fed = writer(&stays, "State");
    let recorder = reader(&goes, "State");
    enable(&[stays.clone(), goes.clone()]);
    // What comes before the first sample is not known to be lost.
    fed.write(&state(1, 0)).expect("room");
    assert_eq!(
        take(&recorder, 1, |it| it.data().expect("data").number),
        [0]
    );
    let over = AtomicBool::new(false);
    let missing = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut number = 1;
            while !over.load(Ordering::Relaxed) {
                fed.write(&state(1, number)).expect("the group goes on");
                number += 1;
            }
            number
        });
        let mut come = 1;
        for outages in 1..=5 {
            lose(&goes, outages);
            // Each time something comes.
            come += take(&recorder, 10, |it| u64::from(it.info().valid_data))
                .iter()
                .sum::<u64>();
        }
        over.store(true, Ordering::Relaxed);
        let written = writing.join().expect("no panic");
        let mut last = None;
        while last != Some(written - 1) {
            for number in take(&recorder, 1, |it| it.data().ok().map(|it| it.number)) {
                come += u64::from(number.is_some());
                last = number.or(last);
            }
        }
        u64::from(written) - come
    });
    let lost = recorder.sample_lost_status().expect("alive").total_count;
    assert_eq!(u64::try_from(lost), Ok(missing));
}

#[test]
fn calls_wait_for_the_return_or_tell_that_it_is_away() {
    let meeting = Meeting::new();
    let stays = meeting.participant();
    let goes = meeting.participant();
    let _heard = reader(&stays, "State");
    let patient = writer(&goes, "State");
    let mut hasty = DataWriterQos {
        reliability: Reliability::reliable(Duration::from_millis(1)),
        ..lasting_writer()
    };
    hasty.property.set("spindle.writer.history_bytes", "0");
    let hasty = writer_with(&goes, "State", hasty);
    let loose = DataWriterQos {
        reliability: Reliability::best_effort(),
        ..DataWriterQos::default()
    };
    let loose = writer_with(&goes, "Loose", loose);
    let waits = WaitSet::new();
    let recorder = reader(&goes, "State");
    enable(&[stays.clone(), goes.clone()]);
    let condition = recorder
        .read_condition(StateMasks {
            instance: InstanceState::Alive.into(),
            ..StateMasks::ANY
        })
        .expect("alive");
    waits.attach(&condition);
    // No way back: the place of the domain is taken by a file.
    let directory = std::path::PathBuf::from(meeting.directory());
    let aside = directory.with_extension("aside");
    std::fs::rename(&directory, &aside).expect("it is there");
    std::fs::write(&directory, "no directory").expect("room");
    testing::fail(&goes, "this is a test").expect("enabled");
    until("it is away", || {
        !goes.membership_status().expect("alive").is_member
    });
    let waiting = hasty.write(&state(1, 1)).expect("one sample may wait");
    assert!(waiting.had_to_wait());
    let error = hasty.write(&state(1, 1)).expect_err("it is away");
    assert!(
        matches!(&error, Error::Timeout(text) if text.contains("this is a test")),
        "{error}"
    );
    let error = loose.write(&state(1, 1)).expect_err("it is away");
    assert!(
        matches!(&error, Error::Error(text) if text.contains("this is a test")),
        "{error}"
    );
    assert!(
        matches!(recorder.take(1), Err(Error::NoData(_))),
        "it comes back"
    );
    assert!(goes.discovered_participants().expect("alive").is_empty());
    // An endpoint that is created now is usable when it is back.
    let late = writer(&goes, "State");
    thread::scope(|scope| {
        let waiting = wait_in(scope, &waits, Duration::INFINITE);
        let writing = [&patient, &late].map(|it| scope.spawn(|| it.write(&state(1, 2))));
        std::fs::remove_file(&directory).expect("it is there");
        std::fs::rename(&aside, &directory).expect("it is there");
        for writing in writing {
            writing.join().expect("no panic").expect("it is back");
        }
        waiting.join().expect("no panic").expect("it is woken");
    });
    until("it is back", || is_back(&goes, 1));
    wait_for_members(&[stays, goes], 2);
}

/// Notes which thread calls, and whether two do at once.
struct Alone<'a>(&'a AtomicBool);

impl DataReaderListener<State> for Alone<'static> {
    fn on_data_available(&mut self, reader: &DataReader<State>) {
        assert!(!self.0.swap(true, Ordering::SeqCst), "two at once");
        let _ = reader.take(100);
        thread::yield_now();
        self.0.store(false, Ordering::SeqCst);
    }
}

#[test]
fn one_listener_is_called_at_a_time_and_closing_ends_a_return() {
    static BUSY: AtomicBool = AtomicBool::new(false);
    let meeting = Meeting::new();
    let (stays, goes) = (meeting.participant(), meeting.participant());
    let fed = writer(&stays, "State");
    let recorder = reader_with(&goes, "State", DataReaderQos::default());
    let listener = Box::new(Alone(&BUSY));
    recorder
        .set_listener(StatusMask::DATA_AVAILABLE, Some(listener))
        .expect("alive");
    enable(&[stays.clone(), goes.clone()]);
    for outages in 1..=10 {
        for number in 0..50 {
            fed.write(&state(1, number)).expect("room");
        }
        lose(&goes, outages);
    }
    let (closed, dropped) = (meeting.participant(), meeting.participant());
    for participant in [&closed, &dropped] {
        participant.enable().expect("it is let in");
        testing::fail(participant, "this is a test").expect("enabled");
    }
    closed.close().expect("it is away, or back");
    drop(dropped);
    wait_for_members(&[stays, goes], 2);
}

#[test]
fn those_that_lose_their_group_all_at_once_form_one_again() {
    let meeting = Meeting::new();
    let all: [_; 3] = meeting.participants();
    let readers = all
        .each_ref()
        .map(|it| reader_with(it, "State", keep_all_reader()));
    let own = writer_with(&all[0], "State", lasting_writer());
    enable(&all);
    for (round, number) in (1..=3).zip(0..) {
        for participant in &all {
            testing::fail(participant, "this is a test").expect("enabled");
        }
        for participant in &all {
            until("it is back", || is_back(participant, round));
        }
        wait_for_members(&all, 3);
        own.write(&state(1, number)).expect("room");
        for reader in &readers {
            until("it comes", || {
                let numbers = take(reader, 1, |it| it.data().ok().map(|it| it.number));
                numbers[0] == Some(number)
            });
        }
    }
}

#[test]
fn what_cannot_be_sent_any_more_holds_up_no_close() {
    let meeting = Meeting::new();
    let ((stays, _), (goes, _told)) = (participant(&meeting), participant(&meeting));
    let heard = reader(&stays, "State");
    let own = writer_with(&goes, "State", lasting_writer());
    enable(&[stays.clone(), goes.clone()]);
    own.write(&state(1, 1)).expect("room");
    take(&heard, 1, |_| ());
    testing::fail(&goes, "this is a test").expect("enabled");
    own.write(&state(1, 2)).expect("it is kept");
    let (done, closed) = mpsc::channel();
    thread::spawn(move || done.send(goes.close()));
    // In its group a deleted writer has 30 s to send it.
    let bound = std::time::Duration::from_secs(20);
    let closed = closed.recv_timeout(bound);
    assert!(closed.is_ok(), "it waits for what cannot come");
}
