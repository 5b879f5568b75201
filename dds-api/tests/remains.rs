//! What is left in a process of participants that have left, and of endpoints that are
//! deleted: nothing.

use spindle_dds::DomainParticipant;
use spindle_dds::qos::{DataWriterQos, Duration, History, Reliability};

/// Descriptors, threads and mappings of this process.
fn held() -> [usize; 3] {
    let entries = |path: &str| std::fs::read_dir(path).expect("a directory").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("text");
    let rows = maps.lines().filter(|line| line.contains("memfd"));
    [
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
        rows.count(),
    ]
}

#[test]
fn nothing_remains_of_a_participant_that_left() {
    check(|participant| participant.close().expect("it leaves"));
    // A participant that is dropped leaves, too, in the background.
    check(|_| ());
}

fn check(leave: impl Fn(&DomainParticipant)) {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let join = || {
        let participant = DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .create()
            .expect("it is let in");
        let topic = participant.topic::<spindle_dds_test_types::flight::State>("State");
        let topic = topic.create().expect("a topic");
        let publisher = participant.publisher().create().expect("a publisher");
        let subscriber = participant.subscriber().create().expect("a subscriber");
        let qos = DataWriterQos {
            reliability: Reliability::reliable(Duration::INFINITE),
            history: History::keep_all(),
            ..DataWriterQos::default()
        };
        let writer = publisher.writer(&topic).qos(qos);
        let writer = writer.create().expect("a writer");
        let reader = subscriber.reader(&topic).create().expect("a reader");
        (participant, writer, reader)
    };
    let stays = join();
    let mut before = None;
    for round in 0..30 {
        let (goes, writer, reader) = join();
        writer
            .write(&spindle_dds_test_types::flight::State::default())
            .expect("sent");
        // One slot is in the pool when the writer is deleted; two are loans.
        let loans = [0; 3].map(|_| writer.loan_with(512).expect("room"));
        let [finished, late @ ..] = loans;
        drop(finished);
        leave(&goes);
        drop((writer, reader, goes));
        drop(late);
        if round == 9 {
            before = Some(held());
        }
    }
    let before = before.expect("ten rounds");
    // The participant that stays learns of the last one's end a moment later.
    let has_grown = |after: &[usize; 3]| {
        let mut both = before.iter().zip(after);
        both.any(|(before, after)| *after > before + 12)
    };
    let mut after = held();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while has_grown(&after) {
        let late = std::time::Instant::now() > deadline;
        assert!(!late, "{before:?} became {after:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
        after = held();
    }
    drop(stays);
}
