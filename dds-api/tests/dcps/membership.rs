//! Coming together, leaving, failing.

use std::process::{Command, Stdio};
use std::thread;

use spindle_dds::qos::DataReaderQos;
use spindle_dds::{
    DomainParticipant, DomainParticipantListener, Duration, Error, InstanceState, ReturnCode,
};

use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, state, take, wait_until, writer,
};

#[test]
fn who_leaves_is_heard_through_its_last_message() {
    let meeting = Meeting::of(3);
    let participants: [_; 3] = meeting.participants();
    let leaver = writer(&participants[0], "State");
    let stayer = writer(&participants[1], "State");
    let readers = [1, 2].map(|at| reader(&participants[at], "State"));
    enable(&participants);
    for number in 0..100 {
        leaver.write(&state(1, number)).expect("sent");
    }
    participants[0].close().expect("it leaves");
    let error = leaver.write(&state(1, 0)).expect_err("it has left");
    assert!(matches!(error, Error::AlreadyDeleted(_)), "{error}");
    for reader in &readers {
        let numbers = take(reader, 100, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
        // Its writer disposed of its instance by that.
        let state = take(reader, 1, |sample| *sample.info());
        assert!(!state[0].valid_data);
        assert_eq!(state[0].instance_state, InstanceState::NotAliveDisposed);
        let condition = reader.status_condition().expect("alive");
        wait_until(condition, || {
            reader
                .subscription_matched_status()
                .expect("alive")
                .current_count
                == 1
        });
    }
    // The others go on without error.
    stayer.write(&state(2, 7)).expect("sent");
    for reader in &readers {
        assert_eq!(
            take(reader, 1, |sample| sample.data().expect("data").number),
            [7]
        );
    }
    participants[1].close().expect("it leaves");
    participants[2].close().expect("it leaves");
}

#[test]
fn readers_that_leave_are_unmatched() {
    let meeting = Meeting::of(2);
    let participants: [_; 2] = meeting.participants();
    let writer = writer(&participants[0], "State");
    let _reader = reader(&participants[1], "State");
    enable(&participants);
    let status = writer.publication_matched_status().expect("alive");
    assert_eq!((status.total_count, status.current_count), (1, 1));
    participants[1].close().expect("it leaves");
    wait_until(writer.status_condition().expect("alive"), || {
        writer
            .publication_matched_status()
            .expect("alive")
            .current_count
            == 0
    });
    for number in 0..5_000 {
        writer
            .write(&state(1, number))
            .expect("nobody keeps it from writing");
    }
}

#[test]
fn the_last_handle_leaves() {
    let meeting = Meeting::of(2);
    let [dropped, stays]: [_; 2] = meeting.participants();
    let writer = writer(&dropped, "State");
    let reader = reader(&stays, "State");
    enable(&[dropped.clone(), stays.clone()]);
    writer.write(&state(1, 1)).expect("sent");
    drop(dropped);
    writer
        .write(&state(1, 2))
        .expect("the writer is a handle too");
    drop(writer);
    let numbers = take(&reader, 2, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, [1, 2]);
    wait_until(reader.status_condition().expect("alive"), || {
        reader
            .subscription_matched_status()
            .expect("alive")
            .current_count
            == 0
    });
    stays.close().expect("without error");
}

#[test]
fn a_second_group_is_refused_while_the_first_lives() {
    let meeting = Meeting::of(1);
    let [first, second]: [_; 2] = meeting.participants();
    first.enable().expect("it forms");
    let error = second.enable().expect_err("the domain is taken");
    assert!(matches!(error, Error::PreconditionNotMet(_)), "{error}");
    first.close().expect("it leaves");
    second.enable().expect("the domain is free again");
    second.close().expect("it leaves");
}

#[test]
fn a_group_that_does_not_come_together_times_out() {
    let meeting = Meeting::of(2);
    let alone = meeting
        .builder()
        .property("spindle.join.timeout_ms", "50")
        .create();
    let alone = alone.expect("a participant");
    let error = alone.enable().expect_err("nobody else comes");
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    assert!(error.to_string().contains('2'), "{error}");
    assert!(!alone.is_enabled());
}

#[test]
fn participants_that_contradict_each_other_say_so() {
    let meeting = Meeting::of(2);
    let a = meeting
        .builder()
        .property("spindle.subgroups", "4")
        .create()
        .expect("one");
    let b = meeting
        .builder()
        .property("spindle.subgroups", "5")
        .create()
        .expect("other");
    thread::scope(|scope| {
        for participant in [&a, &b] {
            scope.spawn(|| {
                let error = participant.enable().expect_err("they differ");
                assert!(error.to_string().contains("spindle.subgroups"), "{error}");
            });
        }
    });
}

const CHILD: &str = "SPINDLE_TEST_CHILD_DIRECTORY";

/// Not a test by itself: the process that dies in `a_death_is_told`.
#[test]
fn child_that_dies() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().expect("UTF-8"))
        .property("spindle.group.size", "2")
        .disabled()
        .create()
        .expect("a participant");
    let writer = writer(&participant, "State");
    participant.enable().expect("the group forms");
    for number in 0..10 {
        writer.write(&state(1, number)).expect("sent");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    std::process::abort();
}

struct Reasons(std::sync::mpsc::Sender<String>);

impl DomainParticipantListener for Reasons {
    fn on_failed(&mut self, _: &DomainParticipant, reason: &str) {
        let _ = self.0.send(reason.to_owned());
    }
}

#[test]
fn a_death_is_told_after_what_was_delivered() {
    let meeting = Meeting::of(2);
    let (reasons, told) = std::sync::mpsc::channel();
    let participant = meeting.participant();
    let mask = spindle_dds::StatusMask::NONE;
    participant
        .set_listener(mask, Some(Box::new(Reasons(reasons))))
        .expect("alive");
    let survivor = reader(&participant, "State");
    let writer = writer(&participant, "Other");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "membership::child_that_dies", "--nocapture"])
        .env(CHILD, meeting.directory())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    participant.enable().expect("the group forms");
    let numbers = take(&survivor, 10, |sample| sample.data().expect("data").number);
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    // Who dies has no say any more: its instance lost its writer, no more.
    let gone = take(&survivor, 1, |sample| *sample.info());
    assert!(!gone[0].valid_data);
    assert_eq!(gone[0].instance_state, InstanceState::NotAliveNoWriters);
    let reason = told.recv().expect("the listener is told");
    let pid = child.id().to_string();
    assert!(reason.contains(&pid), "{reason} names process {pid}");
    let error = survivor.take(1).expect_err("nothing more comes");
    assert!(
        matches!(&error, Error::Error(text) if text.contains(&pid)),
        "{error}"
    );
    let error = writer
        .write(&state(1, 1))
        .expect_err("the group has stopped");
    assert!(matches!(error, Error::Error(_)), "{error}");
    participant.close().expect_err("it tells once more");
    child.wait().expect("it ended");
}

#[test]
fn best_effort_never_meets_a_reliable_reader_nor_its_samples() {
    let meeting = Meeting::of(1);
    let participant = meeting.participant();
    let mut qos = crate::meeting::reliable_writer();
    qos.reliability = spindle_dds::qos::Reliability::best_effort();
    let unheard = crate::meeting::writer_with(&participant, "State", qos);
    let heard = writer(&participant, "State");
    let strict = reader(&participant, "State");
    let lax = DataReaderQos {
        reliability: spindle_dds::qos::Reliability::best_effort(),
        ..keep_all_reader()
    };
    let lax = crate::meeting::reader_with(&participant, "State", lax);
    enable(std::slice::from_ref(&participant));
    unheard.write(&state(1, 1)).expect("sent");
    heard.write(&state(1, 2)).expect("sent");
    heard
        .wait_for_acknowledgments(Duration::INFINITE)
        .expect("received");
    assert_eq!(
        take(&strict, 1, |sample| sample.data().expect("data").number),
        [2]
    );
    let mut numbers = take(&lax, 2, |sample| sample.data().expect("data").number);
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    assert!(strict.take(1).is_err_and(|error| error.is_no_data()));
}

/// Samples that lie in the rings of others must be given back first: nobody
/// waits for who has left, and their writers use the memory again.
#[test]
fn who_holds_samples_in_rings_does_not_leave() {
    let meeting = Meeting::of(1);
    let participant = meeting.participant();
    let writer = writer(&participant, "State");
    let mut qos = keep_all_reader();
    qos.property.set("spindle.reader.storage", "ring");
    let topic = writer.topic();
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let reader = subscriber
        .reader(&topic)
        .qos(qos)
        .create()
        .expect("a reader");
    enable(std::slice::from_ref(&participant));
    writer.write(&state(1, 1)).expect("room");
    let samples = loop {
        match reader.take(1) {
            Ok(samples) => break samples,
            Err(error) => assert!(error.is_no_data(), "{error}"),
        }
    };
    let refused = participant.close();
    assert_eq!(
        ReturnCode::of(&refused),
        ReturnCode::PreconditionNotMet,
        "{refused:?}"
    );
    drop(samples);
    participant.close().expect("nothing is held any more");
}
