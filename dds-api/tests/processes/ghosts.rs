//! The dead, of whom something is left.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use spindle_dds::DomainParticipant;

use crate::member::Member;

/// Within which the others must go on. Longer than a test should take, so that it is
/// the kernel's word that they go by.
const LIMIT_MS: u32 = 60_000;

/// All that a process has open, as a child of a fork has it.
fn share_of(member: &Member) -> Vec<OwnedFd> {
    let process = rustix::process::pidfd_open(member.pid(), PidfdFlags::empty());
    let process = process.expect("it runs");
    let directory = format!("/proc/{}/fd", member.pid().as_raw_nonzero());
    let entries = std::fs::read_dir(directory).expect("it runs");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let numbers = names.map(|name| name.to_string_lossy().parse().expect("a number"));
    let share =
        numbers.map(|fd| rustix::process::pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()));
    share.collect::<Result<_, _>>().expect("its descriptors")
}

#[test]
fn who_dies_is_gone_though_a_child_holds_its_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let [mut first, mut second, victim] = Member::group(&directory, LIMIT_MS);
    first.ask("publish");
    second.wait_for_samples(1, 100);
    let held = share_of(&victim);
    assert!(held.len() > 10, "{held:?}");
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
    drop(held);
}

#[test]
fn all_die_and_their_children_hold_their_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().join("domains");
    let members: [Member; 2] = Member::group(&directory, LIMIT_MS);
    let held = members.each_ref().map(share_of);
    members.iter().for_each(Member::kill);
    let mut founder = Member::start(&directory, 1, LIMIT_MS);
    founder.wait_for_members(1, Duration::ZERO);
    drop(held);
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
