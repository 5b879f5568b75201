//! `processes faults` in short: the harness sees the calls, and judges what becomes of them.

use std::process::Command;

use serde_json::Value;

fn faults(arguments: &str) -> (bool, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["faults", "--json"])
        .args(arguments.split_whitespace())
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = serde_json::from_slice(&output.stdout);
    let outcome = outcome.unwrap_or_else(|error| panic!("no JSON: {error}; {stderr}"));
    (output.status.success(), outcome, stderr)
}

/// Runs that are made: none of them may fail, and each call must have been made.
fn check(arguments: &str) -> Value {
    let (passed, outcome, stderr) = faults(arguments);
    assert!(passed, "{stderr} {outcome}");
    let total = &outcome["total"];
    assert!(total["runs"].as_u64() > Some(0), "{outcome}");
    assert_ne!(total["runs"], total["not_reached"], "{outcome}");
    outcome
}

#[test]
fn a_joining_participant_without_descriptors_is_refused_and_says_so() {
    for fabric in ["shm", "tcp"] {
        let fault = "--role C --phase join --call memfd_create --first 1 --errno EMFILE";
        let outcome = check(&format!("--fabric {fabric} {fault} --for-ms 100"));
        assert_ne!(outcome["total"]["told"], 0, "{outcome}");
    }
}

/// Each of these has cost a healthy member its place in the group.
#[test]
fn one_failure_of_a_call_costs_no_participant_anything() {
    for fault in [
        "--call ppoll --errno EINTR --phase change",
        "--call ppoll --errno ENOMEM --phase change",
        "--call recvmsg --errno ENOMEM --phase join --role B",
        "--call mmap(file) --errno ENOMEM --phase join --role B",
        "--call openat --errno EMFILE --phase join --role B",
        "--call getsockopt --errno ENOBUFS --phase join --role B",
        "--call fcntl(lock) --errno ENOLCK --phase leave",
        "--call connect --errno ECONNREFUSED --phase join",
        "--fabric tcp --call sendto --errno ENOBUFS --phase change --role B",
        "--fabric tcp --call epoll_ctl --errno ENOMEM --phase join --role B",
    ] {
        let outcome = check(&format!("--first 1 {fault}"));
        assert_eq!(outcome["total"]["told"], 0, "{outcome}");
    }
}

/// An unreadable `/proc/PID/stat` has counted as the death of that process, so that a newcomer
/// founded a second group.
#[test]
fn what_a_newcomer_cannot_read_disturbs_no_member() {
    check("--first 1 --call openat --errno EACCES --phase join --role C");
    check("--first 1 --call read(file) --errno EIO --phase join --role C");
}

/// No room, no descriptor, or a signal, all of which are over at once, end no log.
#[test]
fn a_log_that_lacks_something_for_a_moment_goes_on() {
    for fault in [
        "--role A --phase join --call pwritev --errno ENOSPC",
        "--role A --phase join --call openat(create) --errno EMFILE",
        "--role B --phase change --call fdatasync --errno EINTR",
    ] {
        let outcome = check(&format!("--fabric logged --first 1 {fault}"));
        assert_eq!(outcome["total"]["told"], 0, "{outcome}");
    }
}

#[test]
fn a_log_whose_disk_fails_says_so_and_the_others_go_on() {
    let fault = "--role A --phase join --call fdatasync --errno EIO";
    let outcome = check(&format!("--fabric logged --first 1 {fault}"));
    assert_ne!(outcome["total"]["told"], 0, "{outcome}");
}

#[test]
fn an_unknown_call_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["faults", "--call", "reboot"])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("there is no call reboot, but openat"),
        "{stderr}"
    );
}
