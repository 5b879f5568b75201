//! The life of a participant: closed while it joins, and tried again.

use std::thread;

use spindle_dds::{DomainParticipant, Error, testing};

use crate::meeting::{Meeting, enable, reader, state, take, until, wait_for_members, writer};
use crate::membership::killed_child;

/// A domain without an answer: its record names a live process, this one, at an address that
/// no socket is bound to.
fn silent_domain(meeting: &Meeting) -> std::path::PathBuf {
    let participant = meeting.participant();
    participant.enable().expect("it founds the group");
    let record = std::path::Path::new(&meeting.directory()).join("domain-0.record");
    let bytes = std::fs::read(&record).expect("a record");
    participant.close().expect("it leaves");
    std::fs::write(&record, bytes).expect("written");
    record
}

#[test]
fn closing_calls_a_join_off() {
    let meeting = Meeting::new();
    let record = silent_domain(&meeting);
    let alone = meeting.participant();
    let writer = writer(&alone, "State");
    let error = thread::scope(|scope| {
        let enabling = scope.spawn(|| alone.enable());
        until("it joins", || testing::is_enabling(&alone));
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
    std::fs::remove_file(record).expect("it is there");
}

#[test]
fn a_join_that_times_out_can_be_repeated() {
    let meeting = Meeting::new();
    let record = silent_domain(&meeting);
    let hasty = meeting
        .builder()
        .property("spindle.join.timeout_ms", "50")
        .create()
        .expect("a participant");
    let known = reader(&hasty, "State");
    let error = hasty.enable().expect_err("there is no answer");
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    assert!(!hasty.is_enabled() && !known.is_enabled());
    std::fs::remove_file(record).expect("it is there");
    let writer = writer(&hasty, "State");
    hasty.enable().expect("it founds the group");
    writer.write(&state(1, 7)).expect("sent");
    let numbers = take(&known, 1, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [7]);
}

/// Wherever a close meets a join: both end, and the others see a member that left, or none.
#[test]
fn closing_and_joining_may_meet_anywhere() {
    let meeting = Meeting::new();
    let stays = meeting.participant();
    let heard = reader(&stays, "State");
    let written = writer(&stays, "State");
    stays.enable().expect("it founds the group");
    // At each of these points, and at some distance behind it.
    let points: [fn(&DomainParticipant, &DomainParticipant) -> bool; 4] = [
        |_, _| true,
        |_, goes| testing::is_enabling(goes) || goes.is_enabled(),
        |stays, _| stays.discovered_participants().expect("up").len() == 1,
        |_, goes| goes.is_enabled(),
    ];
    for round in 0..24 {
        let goes = meeting.participant();
        let _also = writer(&goes, "State");
        let went = thread::scope(|scope| {
            let went = scope.spawn(|| goes.enable());
            let is_there = points[round as usize % points.len()];
            until("it comes so far", || is_there(&stays, &goes));
            (0..round * round).for_each(|_| thread::yield_now());
            let closed = goes.close();
            assert_eq!(closed, Ok(()));
            went.join().expect("it ends")
        });
        if let Err(error) = &went {
            assert!(matches!(error, Error::AlreadyDeleted(_)), "{error}");
        }
        assert!(matches!(goes.enable(), Err(Error::AlreadyDeleted(_))));
        written.write(&state(1, round)).expect("sent");
        let numbers = take(&heard, 1, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, [round]);
    }
    wait_for_members(std::slice::from_ref(&stays), 1);
}

/// Two newcomers get into one view, and the first has closed before: it does not hold up the
/// others until they take it for failed, which is in two minutes here.
#[test]
fn a_newcomer_that_has_closed_does_not_hold_up_a_view() {
    let meeting = Meeting::new();
    let [stays, goes, comes] = [0; 3].map(|_| {
        let builder = meeting.builder();
        let builder = builder.property("spindle.failure.limit_ms", "120000");
        builder.create().expect("a participant")
    });
    let heard = reader(&stays, "State");
    let written = writer(&comes, "State");
    stays.enable().expect("it founds the group");
    let still = testing::Still::new(&stays).expect("up");
    let requests = |count| {
        let accepted = || testing::join_requests(&stays).expect("up") >= count;
        until("a request to join", accepted);
    };
    thread::scope(|scope| {
        let went = scope.spawn(|| goes.enable());
        requests(1);
        goes.close().expect("it was in no group");
        assert!(went.join().expect("it ends").is_err());
        let came = scope.spawn(|| comes.enable());
        requests(2);
        // Now the group takes notice of both.
        drop(still);
        came.join().expect("it ends").expect("it is let in");
    });
    wait_for_members(&[stays, comes], 2);
    written.write(&state(1, 7)).expect("sent");
    let numbers = take(&heard, 1, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [7]);
}

#[test]
fn a_sponsor_that_leaves_is_replaced() {
    for _ in 0..20 {
        let meeting = Meeting::new();
        let first: [_; 2] = meeting.participants();
        enable(&first);
        let third = meeting.participant();
        thread::scope(|scope| {
            scope.spawn(|| first[0].close().expect("it leaves"));
            third.enable().expect("it is let in");
        });
        let left: [DomainParticipant; 2] = [first[1].clone(), third];
        wait_for_members(&left, 2);
    }
}

#[test]
fn a_sponsor_that_is_killed_is_replaced() {
    for round in 0..10 {
        let meeting = Meeting::new();
        let mut sponsor = killed_child(&meeting);
        let record = std::path::Path::new(&meeting.directory()).join("domain-0.record");
        until("it founds the group", || record.exists());
        // It was first, so it is asked first.
        let stays = meeting.participant();
        stays.enable().expect("it is let in");
        wait_for_members(std::slice::from_ref(&stays), 2);
        let third = meeting.participant();
        let heard = reader(&third, "State");
        thread::scope(|scope| {
            scope.spawn(|| {
                until("it joins", || {
                    testing::is_enabling(&third) || third.is_enabled()
                });
                (0..round * round).for_each(|_| thread::yield_now());
                sponsor.kill().expect("it lives");
            });
            third.enable().expect("it is let in");
        });
        sponsor.wait().expect("it ended");
        wait_for_members(&[stays.clone(), third.clone()], 2);
        let written = writer(&stays, "State");
        written.write(&state(1, 7)).expect("the group goes on");
        let numbers = loop {
            // The sponsor may have written too.
            let all = take(&heard, 1, |it| it.data().map(|it| (it.icao, it.number)));
            if let Ok((1, number)) = all[0] {
                break number;
            }
        };
        assert_eq!(numbers, 7);
    }
}
