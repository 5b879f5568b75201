//! `processes logged` in short: what was acknowledged outlasts that all are killed at once.

use std::process::{Command, Output};

use serde_json::Value;

fn logged(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["logged", "--json"])
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn check(output: &Output, rounds: u64) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let outcome: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {stderr}"));
    assert!(output.status.success(), "{outcome} {stderr}");
    assert_eq!(outcome["rounds"], rounds, "{outcome}");
    let least = outcome["acknowledged_least"].as_u64();
    assert!(least > Some(0), "{outcome}");
    assert!(outcome["acknowledged"].as_u64() > least, "{outcome}");
    outcome
}

#[test]
fn what_was_acknowledged_outlasts_all_processes() {
    let outcome = check(&logged(&["--rounds", "3", "--round-ms", "1000"]), 3);
    // One of three logs takes no samples, two do.
    assert_eq!(outcome["shut_with"], 1, "{outcome}");
}

#[test]
fn what_was_acknowledged_outlasts_all_processes_of_three_hosts() {
    let output = logged(&["--netns", "3", "--rounds", "2", "--round-ms", "500"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let missing = ["take root", "no network namespaces", "there is no program"];
    if missing.iter().any(|it| stderr.contains(it)) {
        eprintln!("skipped: {stderr}");
        return;
    }
    let outcome = check(&output, 2);
    assert_eq!(outcome["hosts"], 3, "{outcome}");
}
