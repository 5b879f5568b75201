//! Coming together, leaving, failing.

use std::process::{Command, Stdio};

use spindle_dds::qos::DataReaderQos;
use spindle_dds::{
    DomainParticipant, DomainParticipantListener, Duration, Error, InstanceState, StatusMask,
};

use crate::meeting::{
    Meeting, PATIENCE, enable, keep_all_reader, reader, state, take, take_some, wait_for_members,
    wait_until, writer,
};

#[test]
fn all_messages_of_a_leaving_member_are_delivered() {
    let meeting = Meeting::new();
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
    let meeting = Meeting::new();
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
            .expect("nothing keeps it from writing");
    }
}

#[test]
fn the_last_handle_leaves() {
    let meeting = Meeting::new();
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
fn there_is_one_group_of_a_domain() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    participants[0].enable().expect("it founds it");
    participants[1].enable().expect("it is let in");
    wait_for_members(&participants, 2);
    participants[0].close().expect("it leaves");
    wait_for_members(&participants[1..], 1);
    let third = meeting.participant();
    third.enable().expect("the member that is left lets it in");
    third.close().expect("it leaves");
    participants[1].close().expect("it leaves, the last");
    let next = meeting.participant();
    next.enable().expect("it founds it anew");
}

#[test]
fn participants_that_start_at_once_form_one_group() {
    for _ in 0..100 {
        let meeting = Meeting::new();
        let participants: [_; 2] = meeting.participants();
        let written = writer(&participants[0], "State");
        let heard = reader(&participants[1], "State");
        enable(&participants);
        written.write(&state(1, 7)).expect("sent");
        let numbers = take(&heard, 1, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, [7]);
    }
}

#[test]
fn participants_that_contradict_the_others_are_not_let_in() {
    let meeting = Meeting::new();
    let with = |name: &str, value: &str| meeting.builder().property(name, value).create();
    let first = with("spindle.subgroups", "4").expect("one");
    let _written = writer(&first, "State");
    first.enable().expect("it founds the group");
    let refused = |name: &str, value: &str| {
        let other = meeting.builder().property("spindle.subgroups", "4");
        let other = other.property(name, value).create().expect("another");
        let _heard = reader(&other, "State");
        let error = other.enable().expect_err("they differ");
        assert!(error.to_string().contains(name), "{error}");
        assert!(!other.is_enabled());
    };
    refused("spindle.subgroups", "5");
    let pins = ["1", "2", "3"].map(|to| {
        let other = meeting.builder().property("spindle.subgroups", "4");
        let other = other.property("spindle.topic.State.subgroup", to);
        let other = other.create().expect("another");
        let _heard = reader(&other, "State");
        let enabled = other.enable();
        if let Err(error) = &enabled {
            assert!(error.to_string().contains("spindle.topic.State"), "{error}");
        }
        enabled.is_ok()
    });
    assert_eq!(pins.iter().filter(|fits| **fits).count(), 1);
}

const KILLED_CHILD: &str = "SPINDLE_TEST_KILLED_CHILD_DIRECTORY";
const STOPPED_CHILD: &str = "SPINDLE_TEST_STOPPED_CHILD_DIRECTORY";
const CHILD: &str = "SPINDLE_TEST_CHILD_DIRECTORY";

/// Not a test by itself: the process that dies in
/// `a_crashed_member_is_expelled_and_the_others_continue`.
#[test]
fn child_that_dies() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().expect("UTF-8"))
        .disabled()
        .create()
        .expect("a participant");
    let writer = writer(&participant, "State");
    participant.enable().expect("it is let in");
    let matched = || {
        writer
            .publication_matched_status()
            .expect("alive")
            .current_count
    };
    wait_until(writer.status_condition().expect("alive"), || matched() == 2);
    for number in 0..10 {
        writer.write(&state(1, number)).expect("sent");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    std::process::abort();
}

#[test]
fn a_crashed_member_is_expelled_and_the_others_continue() {
    let meeting = Meeting::new();
    let participants: [_; 2] = meeting.participants();
    let readers = participants.each_ref().map(|it| reader(it, "State"));
    let writer = writer(&participants[0], "State");
    enable(&participants);
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "membership::child_that_dies", "--nocapture"])
        .env(CHILD, meeting.directory())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let heard = readers.each_ref().map(|reader| {
        let numbers = take(reader, 10, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        // A writer that dies disposes of nothing: its instance loses its writer.
        let gone = take(reader, 1, |sample| *sample.info());
        assert!(!gone[0].valid_data);
        assert_eq!(gone[0].instance_state, InstanceState::NotAliveNoWriters);
        gone[0].position()
    });
    assert_eq!(heard[0], heard[1], "at one place in the order");
    wait_for_members(&participants, 2);
    writer.write(&state(2, 1)).expect("the group goes on");
    for reader in &readers {
        let numbers = take(reader, 1, |sample| sample.data().expect("data").number);
        assert_eq!(numbers, [1]);
    }
    participants
        .iter()
        .for_each(|it| it.close().expect("it leaves"));
    child.wait().expect("it ended");
}

/// A process that writes numbers of aircraft 9 until it is killed, or finds no room.
pub(crate) fn killed_child(meeting: &Meeting) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "membership::child_that_is_killed", "--nocapture"])
        .env(KILLED_CHILD, meeting.directory())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

/// Not a test by itself: the process that [`killed_child`] starts.
#[test]
fn child_that_is_killed() {
    let Some(directory) = std::env::var_os(KILLED_CHILD) else {
        return;
    };
    let participant = DomainParticipant::builder(0)
        .property("spindle.directory", directory.to_str().expect("UTF-8"))
        .create()
        .expect("it is let in");
    let writer = writer(&participant, "State");
    let mut number = 0;
    while writer.write(&state(9, number)).is_ok() {
        number += 1;
    }
}

#[test]
fn all_readers_receive_the_same_messages_of_a_killed_member() {
    const SAMPLES: u32 = 2_000;
    for round in 0..5 {
        let meeting = Meeting::new();
        let participants: [_; 3] = meeting.participants();
        let writer = writer(&participants[0], "State");
        let readers = participants.each_ref().map(|it| reader(it, "State"));
        enable(&participants);
        let mut child = killed_child(&meeting);
        let orders = std::thread::scope(|scope| {
            let taking = readers.each_ref().map(|reader| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    while all.last() != Some(&(1, SAMPLES)) {
                        let samples = take_some(reader, 1000);
                        let data = samples.iter().filter(|it| it.info().valid_data);
                        let data = data.map(|sample| sample.data().expect("data"));
                        all.extend(data.map(|state| (state.icao, state.number)));
                    }
                    all
                })
            });
            wait_for_members(&participants, 4);
            for number in 0..SAMPLES {
                writer.write(&state(1, number)).expect("the group goes on");
                if number == 200 + round * 100 {
                    child.kill().expect("it lives");
                }
            }
            wait_for_members(&participants, 3);
            writer.write(&state(1, SAMPLES)).expect("the group goes on");
            taking.map(|thread| thread.join().expect("it takes all"))
        });
        assert!(orders.iter().all(|order| *order == orders[0]));
        let of = |one| orders[0].iter().filter(move |(icao, _)| *icao == one);
        let own: Vec<u32> = of(1).map(|(_, number)| *number).collect();
        assert_eq!(own, (0..=SAMPLES).collect::<Vec<_>>());
        let theirs: Vec<u32> = of(9).map(|(_, number)| *number).collect();
        let first = theirs.first().copied().unwrap_or(0);
        let whole: Vec<u32> = (first..).take(theirs.len()).collect();
        assert_eq!(theirs, whole, "a beginning of what it said, without holes");
        child.wait().expect("it ended");
    }
}

struct Reasons(std::sync::mpsc::Sender<String>);

impl DomainParticipantListener for Reasons {
    fn on_failed(&mut self, _: &DomainParticipant, reason: &str) {
        let _ = self.0.send(reason.to_owned());
    }
}

#[test]
fn members_that_leave_at_once_have_all_left() {
    let meeting = Meeting::new();
    for _ in 0..40 {
        let participants: [_; 4] = meeting.participants();
        enable(&participants);
        std::thread::scope(|scope| {
            let closing = participants
                .each_ref()
                .map(|one| scope.spawn(|| one.close()));
            for closed in closing {
                closed.join().expect("no panic").expect("it has left");
            }
        });
    }
}

/// The record of the domain remembers what the first of these groups decided. When the next one
/// comes to the same steps, by members of the same ranks, these are decisions of its own.
#[test]
fn a_group_that_leaves_like_the_one_before_has_left() {
    let meeting = Meeting::new();
    for joins_again in [false, true] {
        let participants: [_; 4] = meeting.participants();
        for participant in &participants {
            participant.enable().expect("it is let in");
        }
        wait_for_members(&participants, 4);
        let [first, second, third, fourth] = &participants;
        first.close().expect("it has left");
        let newcomer = meeting.participant();
        if joins_again {
            newcomer
                .enable()
                .expect("the record is at the view that there is");
        }
        for one in [second, third, fourth, &newcomer] {
            one.close().expect("it has left");
        }
    }
}

/// Not a test by itself: the process that is stopped in
/// `a_process_that_is_stopped_too_long_is_expelled`.
#[test]
fn child_that_is_stopped() {
    let Some(directory) = std::env::var_os(STOPPED_CHILD) else {
        return;
    };
    // Each has a channel of its own: the other may learn of its end later.
    let join = || {
        let (reasons, told) = std::sync::mpsc::channel();
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .property("spindle.failure.limit_ms", "1000")
            .property("spindle.rejoin", "off")
            .listener(StatusMask::NONE, Reasons(reasons))
            .create()
            .expect("it is let in");
        (participant, told)
    };
    let (dropped, told_dropped) = join();
    dropped.enable().expect("it is let in");
    let (participant, told) = join();
    let heard = reader(&participant, "State");
    let reason = told.recv().expect("the listener is told");
    assert!(reason.contains("has stopped"), "{reason}");
    let error = heard.take(1).expect_err("nothing more comes");
    assert!(
        matches!(&error, Error::Error(text) if *text == reason),
        "{error}"
    );
    let writer = writer_of_failed(&participant);
    assert!(
        matches!(&writer, Error::Error(text) if *text == reason),
        "{writer}"
    );
    participant.close().expect_err("it tells once more");
    let other = told_dropped.recv().expect("its listener is told");
    assert_eq!(other, reason, "both were away as long");
    // Closed or dropped: none of its threads stays behind.
    drop(dropped);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while count_of_threads("spindle-") > 0 {
        assert!(std::time::Instant::now() < deadline, "a thread stays");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Those of this process with such a name.
fn count_of_threads(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a directory");
    // A thread that ends meanwhile has no name.
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let names = tasks.filter_map(name);
    names.filter(|name| name.starts_with(prefix)).count()
}

fn writer_of_failed(participant: &DomainParticipant) -> Error {
    let writer = writer(participant, "State");
    writer.write(&state(1, 1)).expect_err("it is in no group")
}

#[test]
fn a_process_that_is_stopped_too_long_is_expelled() {
    let meeting = Meeting::new();
    let limit = meeting
        .builder()
        .property("spindle.failure.limit_ms", "1000");
    let participant = limit.create().expect("a participant");
    let writer = writer(&participant, "State");
    participant.enable().expect("it founds the group");
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "membership::child_that_is_stopped",
            "--nocapture",
        ])
        .env(STOPPED_CHILD, meeting.directory())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child");
    wait_until(writer.status_condition().expect("alive"), || {
        writer
            .publication_matched_status()
            .expect("alive")
            .current_count
            == 1
    });
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(sent.expect("a shell's kill").success());
    };
    signal("-STOP");
    let participants = [participant];
    wait_for_members(&participants, 1);
    writer.write(&state(1, 1)).expect("the group goes on");
    signal("-CONT");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
}

#[test]
fn best_effort_never_meets_a_reliable_reader_nor_its_samples() {
    let meeting = Meeting::new();
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

/// Samples that lie in the rings of others stay readable: what is sent later goes into
/// other memory.
#[test]
fn a_member_that_holds_samples_in_rings_may_leave() {
    let meeting = Meeting::new();
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
    participant.close().expect("it leaves");
    let numbers = samples.iter().map(|it| it.view().expect("data").number());
    assert_eq!(numbers.collect::<Vec<_>>(), [1]);
}
