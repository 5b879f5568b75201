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

#[test]
fn a_joining_participant_without_descriptors_is_refused_and_says_so() {
    for fabric in ["shm", "tcp"] {
        let point = "--role C --phase join --call memfd_create --position 0 --errno EMFILE";
        let (passed, outcome, stderr) = faults(&format!("--fabric {fabric} {point}"));
        assert!(passed, "{stderr} {outcome}");
        assert_eq!(outcome["total"]["told"], 1, "{outcome}");
    }
}

#[test]
fn a_signal_disturbs_no_participant() {
    let (passed, outcome, stderr) = faults("--call ppoll --errno EINTR --first 1 --phase change");
    assert!(passed, "{stderr} {outcome}");
    let total = &outcome["total"];
    assert!(total["runs"].as_u64() > Some(0), "{outcome}");
    assert_eq!(total["told"], 0, "{outcome}");
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
