//! `processes history` in short: readers that join late have all samples, once, in order. Times are
//! not bounded, because machines are noisy.

use std::process::Command;

use serde_json::Value;

/// Whether it succeeded, its outcome if there is one, and its error output.
fn history(arguments: &[&str]) -> (bool, Option<Value>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["history", "--json", "--seconds", "1"])
        .args(arguments)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = serde_json::from_slice(&output.stdout).ok();
    (output.status.success(), outcome, stderr)
}

/// The outcome of a run in which all held.
fn run(arguments: &[&str]) -> Value {
    let (success, outcome, stderr) = history(arguments);
    let outcome = outcome.unwrap_or_else(|| panic!("no JSON: {stderr}"));
    assert!(success, "{outcome} {stderr}");
    let number = |name: &str| outcome[name].as_u64().expect("a number");
    assert_eq!((number("lost"), number("twice")), (0, 0), "{outcome}");
    assert!(number("completed") > 0, "{outcome}");
    assert!(number("killed_midway") > 0, "{outcome}");
    let history = number("history_samples");
    let published = outcome["published"].as_array().expect("counts");
    assert!(published.len() == 2, "{outcome}");
    assert!(
        published.iter().all(|it| it.as_u64() >= Some(history)),
        "{outcome}"
    );
    outcome
}

#[test]
fn joiners_have_all_that_the_writers_have_kept() {
    let outcome = run(&["--history-mib", "16"]);
    assert_eq!(outcome["durability"], "transient_local");
}

#[test]
fn joiners_have_all_over_tcp() {
    let tcp = ["--fabric", "tcp", "--hosts", "127.0.0.1,127.0.0.2"];
    run(&[&tcp[..], &["--history-mib", "8"]].concat());
}

#[test]
fn joiners_have_all_when_a_donor_is_killed() {
    let outcome = run(&["--history-mib", "16", "--kill", "donor"]);
    assert_eq!(outcome["durability"], "transient");
    assert!(outcome["donors_killed"].as_u64() > Some(0), "{outcome}");
    let completed = outcome["completed_after_kill"].as_u64();
    assert!(completed > Some(0), "{outcome}");
}

#[test]
fn what_cannot_be_promised_is_refused() {
    for (arguments, text) in [
        (
            ["--kill", "donor", "--durability", "transient-local"],
            "needs --durability transient",
        ),
        (
            ["--kill", "donor", "--keepers", "0"],
            "there is none to be killed",
        ),
    ] {
        let (success, outcome, stderr) = history(&arguments);
        assert!(!success && outcome.is_none(), "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
    }
}
