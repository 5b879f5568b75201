//! What happens to the domain's directory costs no healthy member its group: a full file
//! system, files that are removed or cannot be written, pid namespaces that are killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use spindle_dds::{DomainParticipant, Error};

use crate::inside::{NEW_PIDS, in_own_mounts, is_root};
use crate::member::Member;

/// Heartbeat timeout in milliseconds. Longer than a test takes.
const LIMIT_MS: u32 = 60_000;
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Samples of member 1 still arrive at another one.
fn check_goes_on(first: &mut Member, other: &mut Member) {
    assert_eq!((first.failure(), other.failure()), Default::default());
    let received = other.count("received 1");
    other.wait_for_samples(1, received + 100);
}

/// A file system of 64 KiB in memory, in this mount namespace.
fn small_file_system() -> PathBuf {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]);
    assert!(mount.status().expect("it runs").success(), "root mounts");
    PathBuf::from("/mnt")
}

/// Until nothing is left.
fn fill(file_system: &Path) {
    let mut file = std::fs::File::create(file_system.join("fill")).expect("created");
    while file.write_all(&[1; 512]).is_ok() {}
}

#[test]
fn members_go_on_while_their_file_system_is_full() {
    if !in_own_mounts("surroundings::members_go_on_while_their_file_system_is_full") {
        return;
    }
    let file_system = small_file_system();
    let directory = file_system.join("domains");
    let [mut first, mut second] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    fill(&file_system);
    // A newcomer is let in as long as the record has room, and then refused.
    let mut newcomers = Vec::new();
    let refused = loop {
        let newcomer = DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .create();
        match newcomer {
            Ok(newcomer) => newcomers.push(newcomer),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::OutOfResources(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(
        text.contains("domain-0.record cannot be given room"),
        "{text}"
    );
    assert!(text.contains("No space left on device"), "{text}");
    check_goes_on(&mut first, &mut second);
    // Leaving and expelling need nothing.
    newcomers
        .drain(..)
        .for_each(|it| it.close().expect("it leaves"));
    first.wait_for_members(2, PATIENCE);
    let third = Member::start(&directory, 3, LIMIT_MS);
    first.wait_for_members(3, PATIENCE);
    third.kill();
    first.wait_for_members(2, PATIENCE);
    check_goes_on(&mut first, &mut second);
}

#[test]
fn a_disk_that_fills_while_members_come_and_go_stops_none() {
    if !in_own_mounts("surroundings::a_disk_that_fills_while_members_come_and_go_stops_none") {
        return;
    }
    let file_system = small_file_system();
    let directory = file_system.join("domains");
    let [mut first, mut second] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    for round in 0..6 {
        let filling = thread::spawn({
            let file_system = file_system.clone();
            move || {
                thread::sleep(Duration::from_millis(20 * round));
                fill(&file_system);
            }
        });
        let newcomers = [(); 2].map(|()| {
            let directory = directory.to_str().expect("UTF-8");
            let newcomer = DomainParticipant::builder(0).property("spindle.directory", directory);
            newcomer.create()
        });
        for newcomer in newcomers {
            match newcomer {
                Ok(newcomer) => newcomer.close().expect("it leaves"),
                Err(refused) => assert!(matches!(refused, Error::OutOfResources(_)), "{refused}"),
            }
        }
        filling.join().expect("filled");
        check_goes_on(&mut first, &mut second);
        std::fs::remove_file(file_system.join("fill")).expect("removed");
    }
}

#[test]
fn a_leader_that_cannot_write_the_record_leaves_and_the_next_one_decides() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    // It makes no row either, which the others wait for.
    let [mut first, mut second, mut third] = Member::group(&directory, 2_000);
    second.ask("publish");
    first.forbid_writing();
    // It decides on the next view.
    assert_eq!(third.ask("leave"), "left");
    second.wait_for_members(1, PATIENCE);
    let why = first.failure();
    assert!(why.contains("domain-0.record cannot be written"), "{why}");
    assert!(why.contains("File too large"), "{why}");
    assert_eq!(second.failure(), "");
    let mut fourth = Member::start(&directory, 4, 2_000);
    fourth.wait_for_samples(2, 100);
}

/// A member comes, one leaves and one crashes, each after a removal.
fn check_removal(remove: impl Fn(&Path)) {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domains");
    let [mut first, mut second, mut third] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    remove(&directory);
    // No second domain is founded.
    let mut fourth = Member::start(&directory, 4, LIMIT_MS);
    fourth.wait_for_members(4, PATIENCE);
    fourth.wait_for_samples(1, 100);
    let path = directory.to_str().expect("UTF-8");
    let warnings = [&mut first, &mut second, &mut third].map(|it| it.ask("warnings"));
    let told = warnings.iter().filter(|it| it.contains(path)).count();
    assert_eq!(told, 1, "{warnings:?}");
    remove(&directory);
    assert_eq!(third.ask("leave"), "left");
    first.wait_for_members(3, PATIENCE);
    remove(&directory);
    fourth.kill();
    first.wait_for_members(2, PATIENCE);
    check_goes_on(&mut first, &mut second);
}

#[test]
fn members_go_on_and_are_found_though_their_directory_is_removed() {
    check_removal(|directory| {
        // Members may be making it anew at this moment.
        while directory.exists() && std::fs::remove_dir_all(directory).is_err() {}
    });
}

#[test]
fn members_go_on_and_are_found_though_their_record_is_removed() {
    check_removal(|directory| {
        let _ = std::fs::remove_file(directory.join("domain-0.record"));
    });
}

#[test]
fn a_domain_is_entered_again_after_its_container_was_killed() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let first = Member::start_by(&NEW_PIDS, &directory, 1, LIMIT_MS);
    // The kernel ends all processes of the namespace after its first one.
    first.kill();
    let mut second = Member::start_by(&NEW_PIDS, &directory, 2, LIMIT_MS);
    second.wait_for_members(1, PATIENCE);
    second.kill();
    let mut third = Member::start(&directory, 3, LIMIT_MS);
    third.wait_for_members(1, PATIENCE);
}

#[test]
fn containers_that_share_a_directory_are_one_domain() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let mut first = Member::start_by(&NEW_PIDS, &directory, 1, LIMIT_MS);
    let mut second = Member::start_by(&NEW_PIDS, &directory, 2, LIMIT_MS);
    let mut third = Member::start(&directory, 3, LIMIT_MS);
    first.ask("publish");
    for other in [&mut second, &mut third] {
        other.wait_for_members(3, PATIENCE);
        other.wait_for_samples(1, 100);
    }
    // Its end is seen from another namespace, long before the heartbeat timeout.
    second.kill();
    for other in [&mut first, &mut third] {
        other.wait_for_members(2, PATIENCE / 2);
    }
    check_goes_on(&mut first, &mut third);
}
