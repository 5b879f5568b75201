//! What happens to the domain's directory costs no healthy member its group: a full file
//! system, files that are removed or cannot be written, pid namespaces that are killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::{DomainParticipant, Error};
use spindle_dds_test_types::flight::State;

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
        match participant(&directory) {
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

/// A participant of this process.
fn participant(directory: &Path) -> spindle_dds::Result<DomainParticipant> {
    let directory = directory.to_str().expect("UTF-8");
    let builder = DomainParticipant::builder(0).property("spindle.directory", directory);
    builder.create()
}

#[test]
fn a_lone_participant_works_on_and_leaves_while_its_file_system_is_full() {
    if !in_own_mounts(
        "surroundings::a_lone_participant_works_on_and_leaves_while_its_file_system_is_full",
    ) {
        return;
    }
    let file_system = small_file_system();
    let alone = participant(&file_system.join("domains")).expect("it founds the group");
    fill(&file_system);
    let topic = alone.topic::<State>("State").create().expect("a topic");
    let publisher = alone.publisher().create().expect("a publisher");
    let subscriber = alone.subscriber().create().expect("a subscriber");
    let reader = subscriber.reader(&topic).create().expect("a reader");
    let writer = publisher.writer(&topic).create().expect("a writer");
    let deadline = Instant::now() + PATIENCE;
    // The first ones may be written before the two are matched.
    while reader.take(1).is_err() {
        writer.write(&State::default()).expect("written");
        assert!(Instant::now() < deadline, "no sample arrives");
        thread::sleep(Duration::from_millis(1));
    }
    alone.close().expect("it leaves");
}

/// A host's members record the members of other hosts, too.
#[test]
fn a_newcomer_of_another_host_is_refused_if_the_members_have_no_room_to_record_it() {
    if !in_own_mounts(
        "surroundings::a_newcomer_of_another_host_is_refused_if_the_members_have_no_room_to_record_it",
    ) {
        return;
    }
    let (file_system, other) = (small_file_system(), tempfile::tempdir().expect("one"));
    let [low, high, ..] = std::process::id().to_le_bytes();
    let address = |port: u16| format!("127.{}.{high}.7:{port}", low.max(1));
    let participant = |directory: &Path, port| {
        DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .property("spindle.listen", &address(port))
            .property("spindle.contacts", &address(7400))
            .create()
    };
    let first = participant(&file_system.join("domains"), 7400).expect("it founds the group");
    fill(&file_system);
    let mut newcomers = Vec::new();
    let refused = loop {
        match participant(&other.path().join("domains"), 7401 + newcomers.len() as u16) {
            Ok(newcomer) => newcomers.push(newcomer),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::OutOfResources(_)), "{refused:?}");
    let text = refused.to_string();
    for words in ["/mnt/domains/domain-0.record", "No space left on device"] {
        assert!(text.contains(words), "{text}");
    }
    let others = first.discovered_participants().expect("it is in the group");
    assert_eq!(others.len(), newcomers.len());
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
        let newcomers = [(); 2].map(|()| participant(&directory));
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

fn mount(arguments: &[&str]) -> bool {
    let mut mount = Command::new("mount");
    mount.args(arguments).status().expect("it runs").success()
}

#[test]
fn a_directory_that_becomes_read_only_stops_no_member_and_a_newcomer_is_told() {
    if !in_own_mounts(
        "surroundings::a_directory_that_becomes_read_only_stops_no_member_and_a_newcomer_is_told",
    ) {
        return;
    }
    let file_system = small_file_system();
    let directory = file_system.join("domains");
    let [mut first, mut second] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    // The kernel refuses, as files are open for writing.
    assert!(!mount(&["-o", "remount,ro", "/mnt"]));
    // As a container may see it.
    let seen = tempfile::tempdir().expect("a directory");
    let path = seen.path().to_str().expect("UTF-8");
    assert!(mount(&["--bind", "/mnt", path]));
    assert!(mount(&["-o", "remount,bind,ro", path]));
    let refused = participant(&seen.path().join("domains")).expect_err("refused");
    assert!(matches!(refused, Error::OutOfResources(_)), "{refused:?}");
    assert!(
        refused.to_string().contains("Read-only file system"),
        "{refused}"
    );
    check_goes_on(&mut first, &mut second);
    let third = Member::start(&directory, 3, LIMIT_MS);
    first.wait_for_members(3, PATIENCE);
    third.kill();
    first.wait_for_members(2, PATIENCE);
    check_goes_on(&mut first, &mut second);
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

/// A member comes, one leaves and one crashes, each after a removal, of which three members tell
/// so often in all.
fn check_removal(times_told: usize, remove: impl Fn(&Path)) {
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
    assert_eq!(told, times_told, "{warnings:?}");
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
    // One tells of the record, and each of its own socket.
    check_removal(3, |directory| {
        // Members may be making it anew at this moment.
        while directory.exists() && std::fs::remove_dir_all(directory).is_err() {}
    });
}

#[test]
fn members_go_on_and_are_found_though_their_record_is_removed() {
    check_removal(1, |directory| {
        let _ = std::fs::remove_file(directory.join("domain-0.record"));
    });
}

#[test]
fn members_go_on_and_are_found_though_their_sockets_are_removed() {
    // Each tells of its own.
    check_removal(3, |directory| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|it| it == "station")) {
            let _ = std::fs::remove_file(path);
        }
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
