//! Processes that have ended, while their sockets or records are left.

use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::DomainParticipant;
use spindle_dds_transport::shm::{DomainRegistry, EnterOutcome, MemberEntry, host_id};

use crate::fork::Heir;
use crate::member::Member;

/// Heartbeat timeout in milliseconds. Longer than a test takes, so that deaths are detected by
/// pidfd.
const LIMIT_MS: u32 = 60_000;
/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_killed_member_is_expelled_although_a_child_holds_its_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let [mut first, mut second, mut victim] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    second.wait_for_samples(1, 100);
    let heir = victim.fork();
    victim.kill();
    let patience = Duration::from_millis(u64::from(LIMIT_MS)) / 2;
    first.wait_for_members(2, patience);
    second.wait_for_members(2, patience);
    let received = second.count("received 1");
    second.wait_for_samples(1, received + 100);
    // A new member can join.
    let mut late = Member::start(&directory, 4, LIMIT_MS);
    late.wait_for_members(3, patience);
    late.wait_for_samples(1, 100);
    let published = first.count("rest");
    second.wait_for_samples(1, published);
    assert_eq!(second.count("received 1"), published);
    assert!(heir.lives());
}

#[test]
fn a_member_leaves_although_a_child_holds_its_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let [mut first, mut second] = Member::group(&directory, LIMIT_MS);
    let before = first.descriptors();
    let mut third = Member::start(&directory, 3, LIMIT_MS);
    first.wait_for_members(3, PATIENCE);
    let heir = third.fork();
    assert_eq!(third.ask("leave"), "left");
    for member in [&mut first, &mut second] {
        member.wait_for_members(2, PATIENCE);
    }
    let deadline = Instant::now() + PATIENCE;
    while first.descriptors() > before {
        assert!(Instant::now() < deadline, "descriptors of it stay open");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(heir.lives());
}

#[test]
fn a_domain_is_founded_anew_although_children_of_dead_members_hold_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let mut members: [Member; 2] = Member::group(&directory, LIMIT_MS);
    let heirs = members.each_mut().map(Member::fork);
    members.iter().for_each(Member::kill);
    let mut founder = Member::start(&directory, 1, LIMIT_MS);
    founder.wait_for_members(1, Duration::ZERO);
    assert!(heirs.iter().all(Heir::lives));
}

/// The other host has no pidfd of the process, and its streams stay open: the member is
/// suspected after the heartbeat timeout.
#[test]
fn a_killed_member_on_another_host_is_expelled_although_a_child_holds_its_streams() {
    let parent = tempfile::tempdir().expect("a directory");
    let hosts = ["near", "far"].map(|name| parent.path().join(name));
    let [low, high, ..] = std::process::id().to_le_bytes();
    let addresses = [1, 2, 3].map(|at| format!("127.200.{high}.{low}:{}", 7400 + at));
    let limit_ms = 700;
    let start = |host: usize, number: u32| {
        let host = (&*hosts[host], &*addresses[number as usize - 1]);
        Member::start_on_host(host, &addresses[0], number, limit_ms)
    };
    let [mut first, mut second, mut victim] = [(0, 1), (0, 2), (1, 3)].map(|(h, n)| start(h, n));
    for member in [&mut first, &mut second, &mut victim] {
        member.wait_for_members(3, PATIENCE);
    }
    first.ask("publish");
    victim.wait_for_samples(1, 100);
    let heir = victim.fork();
    victim.kill();
    for member in [&mut first, &mut second] {
        member.wait_for_members(2, PATIENCE);
    }
    let received = second.count("received 1");
    second.wait_for_samples(1, received + 100);
    assert_eq!(first.ask("failed") + &second.ask("failed"), "");
    assert!(heir.lives());
}

/// Enables a participant while the record of the domain names this running process, at an
/// address without a listener. `started_later` is by how many ticks the process started later
/// than the recorded one.
fn enable_with_stale_record(started_later: u64) -> spindle_dds::Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let participant = || {
        DomainParticipant::builder(0)
            .property("spindle.directory", directory.to_str().expect("UTF-8"))
            .property("spindle.join.timeout_ms", "200")
            .disabled()
            .create()
            .expect("a participant")
    };
    let host = host_id(0, Some(&directory)).expect("a directory");
    let mut ghost = MemberEntry::here(9, host, Vec::new()).expect("this process");
    ghost.start -= started_later;
    let ghost = DomainRegistry::open(0, Some(&directory), ghost).expect("a record");
    assert_eq!(ghost.enter().expect("entered"), EnterOutcome::Founded);
    // It stays in the record.
    std::mem::forget(ghost);
    let newcomer = participant();
    let enabled = newcomer.enable();
    if enabled.is_ok() {
        newcomer.close().expect("it leaves");
    }
    enabled
}

#[test]
fn a_reused_process_id_is_not_taken_for_a_member() {
    let living = enable_with_stale_record(0).expect_err("a running process may still answer");
    assert!(
        living.to_string().contains("let this participant in"),
        "{living}"
    );
    enable_with_stale_record(2).expect("no member is alive");
}
