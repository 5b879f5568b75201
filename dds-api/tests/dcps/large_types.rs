//! Participants with types that do not fit into the announcement of an endpoint: evolution is
//! the same, but for the views that it takes until they are known.

use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::DomainParticipant;
use spindle_dds::idl::TopicType;
use spindle_dds::qos::{DataRepresentationId, TypeConsistencyEnforcement, TypeConsistencyKind};

use crate::evolution::{Side, side, take};
use crate::large::{Choice, newer, older};
use crate::meeting::{Meeting, PATIENCE, enable};

/// Blocks until something is so.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Blocks until a participant's writer and reader are matched with so many.
#[track_caller]
fn wait_matched<T: TopicType>(side: &Side<T>, count: i32) {
    wait_until("they match", || {
        let written = side.writer.publication_matched_status().expect("alive");
        let read = side.reader.subscription_matched_status().expect("alive");
        (written.current_count, read.current_count) == (count, count)
    });
}

fn side_of<T: TopicType>(participant: &DomainParticipant) -> Side<T> {
    side(participant, DataRepresentationId::Xcdr2, Default::default())
}

fn inconsistent<T>(side: &Side<T>) -> i32 {
    let status = side.topic.inconsistent_topic_status();
    status.expect("alive").total_count
}

fn report(id: i32) -> newer::Report {
    newer::Report {
        id,
        choice: Choice::number(id, 7),
        remark: "sharp".to_owned(),
    }
}

/// Both are described by more than an announcement of an endpoint has room for.
#[test]
fn versions_of_a_large_type_read_each_other() {
    for objects in [older::Report::DESCRIPTION, newer::Report::DESCRIPTION] {
        assert!(objects.expect("described").objects.len() > 16 << 10);
    }
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let old: Side<older::Report> = side_of(&participants[0]);
    let new: Side<newer::Report> = side_of(&participants[1]);
    enable(&participants);
    wait_matched(&old, 2);
    wait_matched(&new, 2);
    new.writer.write(&report(4)).expect("sent");
    new.writer
        .wait_for_acknowledgments(PATIENCE)
        .expect("received");
    let plain = older::Report {
        id: 5,
        choice: Choice::text(-1, "none".to_owned()),
    };
    old.writer.write(&plain).expect("sent");
    let by_new: Vec<newer::Report> = take(&new.reader, 2).into_iter().map(|it| it.0).collect();
    let without = newer::Report {
        id: 5,
        choice: plain.choice.clone(),
        remark: String::new(),
    };
    assert_eq!(by_new, [report(4), without]);
    let by_old: Vec<older::Report> = take(&old.reader, 2).into_iter().map(|it| it.0).collect();
    let cut = older::Report {
        id: 4,
        choice: Choice::number(4, 7),
    };
    assert_eq!(by_old, [cut, plain]);
    assert_eq!((inconsistent(&old), inconsistent(&new)), (0, 0));
}

/// A newcomer learns the types that are there, and brings its own. A member that leaves takes
/// its notes along, except those that other members share.
#[test]
fn large_types_reach_newcomers_and_outlive_members_that_share_them() {
    let meeting = Meeting::new();
    let [first, second, third]: [_; 3] = meeting.participants();
    enable(&[first.clone(), second.clone()]);
    let ours: Side<older::Report> = side_of(&first);
    let same: Side<older::Report> = side_of(&second);
    wait_matched(&ours, 2);
    wait_matched(&same, 2);
    third.enable().expect("it is let in");
    let late: Side<newer::Report> = side_of(&third);
    for side in [&ours, &same] {
        wait_matched(side, 3);
    }
    wait_matched(&late, 3);
    first.close().expect("it leaves");
    wait_matched(&same, 2);
    wait_matched(&late, 2);
    let fourth = meeting.participant();
    let last: Side<older::Report> = side_of(&fourth);
    fourth.enable().expect("it is let in");
    wait_matched(&last, 3);
    wait_matched(&late, 3);
    late.writer.write(&report(1)).expect("sent");
    for reader in [&same.reader, &last.reader] {
        let read = &take(reader, 1)[0].0;
        assert_eq!((read.id, &read.choice), (1, &Choice::number(1, 7)));
    }
}

/// It is not for their hashes that they do not match: the reader's policy is asked.
#[test]
fn large_types_that_differ_do_not_match_and_both_are_told() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let old: Side<older::Verdict> = side_of(&participants[0]);
    let new: Side<newer::Verdict> = side_of(&participants[1]);
    enable(&participants);
    wait_until("both are told", || {
        (inconsistent(&old), inconsistent(&new)) == (1, 1)
    });
    wait_matched(&old, 1);
    wait_matched(&new, 1);
}

#[test]
fn a_reader_may_insist_on_its_own_large_type() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let strict = TypeConsistencyEnforcement {
        kind: TypeConsistencyKind::DisallowTypeCoercion,
        ..Default::default()
    };
    let encoding = DataRepresentationId::Xcdr2;
    let old: Side<older::Report> = side(&participants[0], encoding, strict);
    let new: Side<newer::Report> = side(&participants[1], encoding, Default::default());
    enable(&participants);
    // The newer reader takes both; the older one its own.
    let read = |count| {
        let status = old.reader.subscription_matched_status().expect("alive");
        status.current_count == count
    };
    wait_until("the newer reader matches both", || {
        let status = new.reader.subscription_matched_status().expect("alive");
        status.current_count == 2
    });
    wait_until("the older reader matches its own", || read(1));
    wait_until("it is told", || {
        (inconsistent(&old), inconsistent(&new)) == (1, 1)
    });
    assert!(read(1));
}
