//! A member that is stopped while it lets a newcomer in: the others let the newcomer in.

use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::member::Member;

/// Heartbeat timeout in milliseconds.
const LIMIT_MS: u32 = 1_500;
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The member of a group of three that leads it is stopped so long after a newcomer has started
/// that asks it first. The stopped one is told why it is out, or is back, once it continues.
fn check(stopped_after: Duration) {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let [mut first, mut second, mut third] = Member::group(&directory, LIMIT_MS);
    second.ask("publish");
    let joining = thread::spawn({
        let directory = directory.clone();
        move || Member::start(&directory, 4, LIMIT_MS)
    });
    thread::sleep(stopped_after);
    kill_process(first.pid(), Signal::STOP).expect("it runs");
    let mut fourth = joining.join().expect("it is let in");
    fourth.wait_for_samples(2, 100);
    for member in [&mut second, &mut third, &mut fourth] {
        member.wait_for_members(3, PATIENCE);
        assert_eq!(member.failure(), "");
    }
    kill_process(first.pid(), Signal::CONT).expect("it is there");
    while first.failure().is_empty() && first.ask("members") != "4" {
        thread::sleep(Duration::from_millis(1));
    }
    for member in [&mut third, &mut fourth] {
        let received = member.count("received 2");
        member.wait_for_samples(2, received + 100);
        assert_eq!(member.failure(), "");
    }
    assert_eq!(second.failure(), "");
}

#[test]
fn a_sponsor_that_is_stopped_before_it_is_asked_is_replaced() {
    check(Duration::ZERO);
}

#[test]
fn a_sponsor_that_is_stopped_in_mid_join_is_replaced() {
    for ms in [15, 30, 60] {
        check(Duration::from_millis(ms));
    }
}
