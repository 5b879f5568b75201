//! The pair of programs that the README shows, started in both orders.

mod started;

use std::path::Path;
use std::time::Duration;

use spindle_dds::DomainParticipant;
use started::Started;

const PUBLISHER: &str = env!("CARGO_BIN_EXE_hello_pub");
const SUBSCRIBER: &str = env!("CARGO_BIN_EXE_hello_sub");

/// Starts one, and the other when the first has joined the domain.
fn check(first: &str, second: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let start = |program| Started::new(program, &[], directory.path());
    let first = start(first);
    wait_for_a_participant(directory.path());
    let second = start(second);
    let mut printed = String::new();
    for ended in [first.end(), second.end()] {
        assert!(ended.success, "{}", ended.stderr);
        assert_eq!(ended.stderr, "");
        printed += &ended.stdout;
    }
    let expected: String = (1..=10)
        .map(|number| format!("hello, world {number}\n"))
        .collect();
    assert_eq!(printed, expected);
}

/// Joins the domain, until another participant is in it.
fn wait_for_a_participant(directory: &Path) {
    let directory = directory.join("domains");
    let observer = DomainParticipant::builder(0)
        .property("spindle.directory", &directory.to_string_lossy())
        .create()
        .expect("a participant");
    let others = || observer.discovered_participants().expect("a group");
    while others().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    observer.close().expect("it leaves");
}

#[test]
fn publisher_first() {
    check(PUBLISHER, SUBSCRIBER);
}

#[test]
fn subscriber_first() {
    check(SUBSCRIBER, PUBLISHER);
}
