//! The pair that the README shows, started in both orders.

mod started;

use std::time::Duration;

use started::Started;

const PUBLISHER: &str = env!("CARGO_BIN_EXE_hello_pub");
const SUBSCRIBER: &str = env!("CARGO_BIN_EXE_hello_sub");

/// Starts one, and the other when the first has had time to wait for it.
fn check(first: &str, second: &str) {
    let meeting_place = tempfile::tempdir().expect("a directory");
    let start = |program| Started::new(program, &[], meeting_place.path());
    let first = start(first);
    std::thread::sleep(Duration::from_millis(300));
    let second = start(second);
    let mut said = String::new();
    for ended in [first.end(), second.end()] {
        assert!(ended.success, "{}", ended.stderr);
        assert_eq!(ended.stderr, "");
        said += &ended.stdout;
    }
    let wanted: String = (1..=10)
        .map(|number| format!("hello, world {number}\n"))
        .collect();
    assert_eq!(said, wanted);
}

#[test]
fn publisher_first() {
    check(PUBLISHER, SUBSCRIBER);
}

#[test]
fn subscriber_first() {
    check(SUBSCRIBER, PUBLISHER);
}
