//! The dead, of whom something is left.

use std::thread;
use std::time::{Duration, Instant};

use spindle_dds::DomainParticipant;

use crate::fork::Heir;
use crate::member::Member;

/// Within which the others must go on. Longer than a test should take, so that it is
/// the kernel's word that they go by.
const LIMIT_MS: u32 = 60_000;
/// Far beyond what anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn who_dies_is_gone_though_a_child_holds_its_sockets() {
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
    let heard = second.count("heard 1");
    second.wait_for_samples(1, heard + 100);
    // Nor does it keep anybody out.
    let mut late = Member::start(&directory, 4, LIMIT_MS);
    late.wait_for_members(3, patience);
    late.wait_for_samples(1, 100);
    let published = first.count("rest");
    second.wait_for_samples(1, published);
    assert_eq!(second.count("heard 1"), published);
    assert!(heir.lives());
}

#[test]
fn who_leaves_is_gone_though_a_child_holds_its_sockets() {
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
        assert!(Instant::now() < deadline, "something of it stays");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(heir.lives());
}

#[test]
fn all_die_and_their_children_hold_their_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let mut members: [Member; 2] = Member::group(&directory, LIMIT_MS);
    let heirs = members.each_mut().map(Member::fork);
    members.iter().for_each(Member::kill);
    let mut founder = Member::start(&directory, 1, LIMIT_MS);
    founder.wait_for_members(1, Duration::ZERO);
    assert!(heirs.iter().all(Heir::lives));
}

/// Nobody on the other host has the kernel's word, and its streams stay open: it is out
/// when it has been silent for the limit.
#[test]
fn who_dies_on_another_host_is_gone_though_a_child_holds_its_streams() {
    let parent = tempfile::tempdir().expect("a directory");
    let hosts = ["near", "far"].map(|name| parent.path().join(name));
    let [low, high, ..] = std::process::id().to_le_bytes();
    let places = [1, 2, 3].map(|at| format!("127.200.{high}.{low}:{}", 7400 + at));
    let limit_ms = 700;
    let start = |host: usize, number: u32| {
        let host = (&*hosts[host], &*places[number as usize - 1]);
        Member::start_on_host(host, &places[0], number, limit_ms)
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
    let heard = second.count("heard 1");
    second.wait_for_samples(1, heard + 100);
    assert_eq!(first.ask("failed") + &second.ask("failed"), "");
    assert!(heir.lives());
}

/// The record of a domain names a process that runs, at an address at which nobody
/// listens; it may be one that was started later.
fn enable_after(started_later: u64) -> spindle_dds::Result<()> {
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
    let record = directory.join("domain-0.record");
    let ghost = participant();
    ghost.enable().expect("it founds the group");
    let text = std::fs::read_to_string(&record).expect("a record");
    ghost.close().expect("it leaves");
    let pid = std::process::id().to_string();
    let line = text.lines().last().expect("a member");
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    assert_eq!(words[2], pid);
    let start: u64 = words[3].parse().expect("a number");
    words[3] = (start - started_later).to_string();
    std::fs::write(&record, text.replace(line, &words.join(" "))).expect("written");
    let comes = participant();
    let enabled = comes.enable();
    if enabled.is_ok() {
        comes.close().expect("it leaves");
    }
    enabled
}

#[test]
fn a_process_id_that_was_used_again_is_no_member() {
    let living = enable_after(0).expect_err("who lives may answer yet");
    assert!(
        living.to_string().contains("let this participant in"),
        "{living}"
    );
    enable_after(1).expect("nobody of the domain lives");
}
