//! The life of a participant: closed while its group is formed, and tried again.

use std::path::Path;
use std::thread;

use spindle_dds::{DomainParticipant, Error};

use crate::flight::State;
use crate::meeting::{Meeting, enable, reader, state, take, wait_until, writer};

/// Blocks until a participant is at the rendezvous of its meeting, as far as one
/// can see from outside.
fn wait_for_rendezvous(meeting: &Meeting, participant: &DomainParticipant) {
    let record = Path::new(&meeting.directory()).join("domain-0.record");
    while !record.exists() {
        thread::yield_now();
    }
    // Enabling shows in that endpoints are refused for it, before their topic is.
    let subscriber = participant.subscriber().create().expect("alive");
    let stranger = Meeting::of(1).participant();
    let foreign = stranger.topic::<State>("State").create().expect("alive");
    let why = || {
        let refused = subscriber.reader(&foreign).create();
        refused.expect_err("in any case").to_string()
    };
    while why().contains("another participant") {
        thread::yield_now();
    }
}

#[test]
fn closing_calls_the_rendezvous_off() {
    let meeting = Meeting::of(2);
    let alone = meeting.participant();
    let writer = writer(&alone, "State");
    let error = thread::scope(|scope| {
        let enabling = scope.spawn(|| alone.enable());
        wait_for_rendezvous(&meeting, &alone);
        alone.close().expect("it was in no group");
        enabling.join().expect("it ends")
    });
    let why = error.expect_err("it was called off");
    assert!(
        matches!(&why, Error::AlreadyDeleted(text) if text.contains("called off")),
        "{why}"
    );
    assert!(matches!(alone.enable(), Err(Error::AlreadyDeleted(_))));
    assert!(matches!(alone.close(), Err(Error::AlreadyDeleted(_))));
    let gone = writer.write(&state(1, 1)).expect_err("deleted");
    assert!(matches!(gone, Error::AlreadyDeleted(_)), "{gone}");
    // The place is free, of the dead as of the living.
    let others: [_; 2] = meeting.participants();
    enable(&others);
    others.iter().for_each(|it| it.close().expect("it leaves"));
}

#[test]
fn who_was_called_off_is_no_member() {
    for round in 0..20 {
        let meeting = Meeting::of(3);
        let [founder, second, third, guest]: [_; 4] = meeting.participants();
        let heard = reader(&founder, "State");
        let writers = [&second, &third].map(|it| writer(it, "State"));
        thread::scope(|scope| {
            scope.spawn(|| founder.enable().expect("the group forms"));
            wait_for_rendezvous(&meeting, &founder);
            let called_off = scope.spawn(|| guest.enable());
            wait_for_rendezvous(&meeting, &guest);
            // Anywhere in its way through the rendezvous.
            thread::sleep(std::time::Duration::from_micros(100 * round));
            guest.close().expect("it is in no group");
            let ended = called_off.join().expect("it ends");
            assert!(matches!(ended, Err(Error::AlreadyDeleted(_))), "{ended:?}");
            scope.spawn(|| second.enable().expect("the group forms"));
            scope.spawn(|| third.enable().expect("the group forms"));
        });
        for (writer, number) in writers.iter().zip(0..) {
            writer.write(&state(1, number)).expect("sent");
        }
        let mut numbers = take(&heard, 2, |sample| sample.data().expect("data").number);
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1]);
    }
}

/// However a close and the forming of the group meet: enable() and close() end,
/// and the others see a member that left, or none.
#[test]
fn closing_and_forming_may_meet_anywhere() {
    for round in 0..60 {
        let meeting = Meeting::of(2);
        let participants: [_; 2] = meeting.participants();
        let [stays, goes] = &participants;
        let _heard = reader(stays, "State");
        let _written = writer(goes, "State");
        let (stayed, went) = thread::scope(|scope| {
            let stayed = scope.spawn(|| stays.enable());
            let went = scope.spawn(|| goes.enable());
            thread::sleep(std::time::Duration::from_micros(50 * round));
            let closed = goes.close();
            assert_eq!(closed, Ok(()));
            let went = went.join().expect("it ends");
            // Without the other, nobody comes.
            if went.is_err() && !stays.is_enabled() {
                let _ = stays.close();
            }
            (stayed.join().expect("it ends"), went)
        });
        if let Err(error) = &went {
            assert!(matches!(error, Error::AlreadyDeleted(_)), "{error}");
        }
        if stayed.is_ok() {
            let _ = stays.close();
        }
        let next = meeting.builder().property("spindle.group.size", "1");
        let next = next.create().expect("a participant");
        next.enable().expect("nobody is left in the domain");
    }
}

#[test]
fn endpoints_are_announced_or_refused_and_may_come_again() {
    let meeting = Meeting::of(2);
    let hasty = meeting
        .builder()
        .property("spindle.join.timeout_ms", "100")
        .create()
        .expect("a participant");
    let known = reader(&hasty, "State");
    thread::scope(|scope| {
        let enabling = scope.spawn(|| hasty.enable());
        wait_for_rendezvous(&meeting, &hasty);
        let again = hasty.enable().expect_err("a thread is at it");
        assert!(matches!(again, Error::PreconditionNotMet(_)), "{again}");
        let error = enabling.join().expect("it ends").expect_err("alone");
        assert!(matches!(error, Error::Timeout(_)), "{error}");
    });
    // As before: endpoints can be added, and it is tried again.
    assert!(!hasty.is_enabled() && !known.is_enabled());
    let writer = writer(&hasty, "State");
    let other = meeting.participant();
    enable(&[hasty.clone(), other]);
    writer.write(&state(1, 7)).expect("sent");
    let numbers = take(&known, 1, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [7]);
}

/// They have been announced by then, so they are matched, and go at once.
#[test]
fn endpoints_that_are_deleted_at_the_rendezvous_are_unmatched() {
    let meeting = Meeting::of(2);
    let [first, second]: [_; 2] = meeting.participants();
    let (goes, stays) = (writer(&first, "State"), writer(&first, "State"));
    let (gone, heard) = (reader(&first, "State"), reader(&second, "State"));
    thread::scope(|scope| {
        let enabling = scope.spawn(|| first.enable());
        wait_for_rendezvous(&meeting, &first);
        let publisher = goes.publisher().expect("alive");
        publisher.delete_datawriter(&goes).expect("no loans");
        let subscriber = gone.subscriber().expect("alive");
        subscriber.delete_datareader(&gone).expect("no samples");
        second.enable().expect("the group forms");
        enabling.join().expect("it ends").expect("the group forms");
    });
    let status = stays.publication_matched_status().expect("alive");
    assert_eq!((status.total_count, status.current_count), (2, 1));
    wait_until(heard.status_condition().expect("alive"), || {
        let status = heard.subscription_matched_status().expect("alive");
        (status.total_count, status.current_count) == (2, 1)
    });
}
