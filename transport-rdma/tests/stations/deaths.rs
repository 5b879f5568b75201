//! Peers whose processes end or are stopped.

use std::thread;
use std::time::Duration;

use crate::child::{Process, ask_all};
use crate::directory;

#[test]
fn a_killed_process_wakes_sleepers_and_its_row_stays() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    for epoch in [1, 2] {
        let made = ask_all(&mut all, |_| format!("make {epoch} 1,2,3"));
        assert_eq!(made, ["made, without {}"; 3]);
    }
    assert_eq!(all[1].ask("push 1 77"), "pushed");
    for survivor in [0, 2] {
        assert_eq!(all[survivor].ask("mourn 1"), "waiting");
    }
    all[1].kill();
    for survivor in [0, 2] {
        assert_eq!(all[survivor].hear(), "1: its process ended");
        assert_eq!(all[survivor].ask("poll 1"), "None", "told once");
        assert_eq!(all[survivor].ask("read 1 1"), "77");
        let told = all[survivor].ask("poll 2");
        assert!(told.contains("ProcessEnded"), "told by each: {told}");
    }
    assert_eq!(all[0].ask("event"), "connected 2");
    assert_eq!(all[0].ask("event"), "connected 3");
    assert_eq!(all[0].ask("event"), "closed 2 its process ended");
}

#[test]
fn a_member_that_died_before_the_exchange_is_absent_and_reported() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    all[2].kill();
    let made = ask_all(&mut all[..2], |_| "make 1 3,2,1".into());
    assert_eq!(made, ["made, without {0}"; 2]);
    for survivor in &mut all[..2] {
        let told = survivor.ask("poll 1");
        assert!(
            told.contains("Rank(0)") && told.contains("ProcessEnded"),
            "{told}"
        );
        assert_eq!(survivor.ask("poll 1"), "None");
        assert_eq!(survivor.ask("read 1 0"), "0");
    }
    // Dead and forgotten: no segment waits for it.
    assert_eq!(all[0].ask("drop_peer 3"), "dropped");
    assert_eq!(all[0].ask("make 2 1,3 50"), "made, without {1}");
    let told = all[0].ask("poll 2");
    assert!(told.contains("not connected"), "{told}");
}

#[test]
fn a_member_that_dies_during_the_exchange_is_absent_and_reported() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    all[..2].iter_mut().for_each(|one| one.tell("make 1 1,2,3"));
    thread::sleep(Duration::from_millis(20));
    all[2].kill();
    for survivor in &mut all[..2] {
        assert_eq!(survivor.hear(), "made, without {2}");
        let told = survivor.ask("poll 1");
        assert!(told.contains("ProcessEnded"), "{told}");
    }
}

#[test]
fn a_death_at_any_moment_of_the_exchange_is_reported_once() {
    for moment_us in (0..3000).step_by(300) {
        let directory = directory();
        let mut all = Process::connected(directory.path(), 3);
        all.iter_mut().for_each(|one| one.tell("make 1 1,2,3"));
        thread::sleep(Duration::from_micros(moment_us));
        all[2].kill();
        for survivor in &mut all[..2] {
            let made = survivor.hear();
            assert!(made.starts_with("made, without {"), "{made}");
            assert_eq!(survivor.ask("mourn 1"), "waiting");
            assert_eq!(survivor.hear(), "2: its process ended");
            assert_eq!(survivor.ask("poll 1"), "None");
        }
    }
}

#[test]
fn a_stopped_member_is_absent_and_may_continue_later() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    all[2].stop();
    let made = ask_all(&mut all[..2], |_| "make 1 1,2,3 200".into());
    assert_eq!(made, ["made, without {2}"; 2]);
    let told = all[0].ask("poll 1");
    assert!(
        told.contains("Unreachable") && told.contains("in time"),
        "{told}"
    );
    let both = ask_all(&mut all[..2], |_| "make 2 1,2".into());
    assert_eq!(both, ["made, without {}"; 2], "the others are not held up");
    all[2].go_on();
    let made = ask_all(&mut all, |_| "make 3 1,2,3".into());
    assert_eq!(made, ["made, without {}"; 3]);
    all[2].kill();
    assert_eq!(all[0].ask("mourn 3"), "waiting");
    assert_eq!(all[0].hear(), "2: its process ended");
    assert_eq!(all[0].ask("poll 1"), "None", "told of it already");
}

/// The kernel reports the process itself, although another one has its sockets.
#[test]
fn a_death_is_reported_though_a_child_holds_the_sockets() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 3);
    let made = ask_all(&mut all, |_| "make 1 1,2,3".into());
    assert_eq!(made, ["made, without {}"; 3]);
    let heir = all[1].fork();
    for survivor in [0, 2] {
        assert_eq!(all[survivor].ask("mourn 1"), "waiting");
    }
    all[1].kill();
    for survivor in [0, 2] {
        assert_eq!(all[survivor].hear(), "1: its process ended");
    }
    for what in ["connected 2", "connected 3", "closed 2 its process ended"] {
        assert_eq!(all[0].ask("event"), what);
    }
    // Another one may take its id.
    assert_eq!(all[0].ask("drop_peer 2"), "dropped");
    all[1] = Process::start(directory.path(), 2);
    let connect = format!("connect {}", all[0].address);
    assert_eq!(all[1].ask(&connect), "connected 1");
    assert!(heir.lives());
}

#[test]
fn a_close_is_reported_though_a_child_holds_the_sockets() {
    let directory = directory();
    let mut all = Process::connected(directory.path(), 2);
    let heir = all[1].fork();
    assert_eq!(all[1].ask("close"), "closed");
    assert_eq!(all[0].ask("event"), "connected 2");
    let told = all[0].ask("event");
    assert!(told.starts_with("closed 2"), "{told}");
    assert!(heir.lives());
}
