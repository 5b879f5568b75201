//! `spindle perf churn` in short: whatever comes and goes, nothing is lost, and nothing
//! comes twice. No bound on rates: machines are noisy.

use std::process::Command;

use serde_json::Value;

#[test]
fn nothing_is_lost_while_endpoints_come_and_go() {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["perf", "churn", "--seconds", "1", "--json"])
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |name: &str| outcome[name].as_u64().expect("a number");
    assert_eq!(number("lost"), 0, "{outcome}");
    assert!(number("published") > 1000, "{outcome}");
    assert!(number("by_guests") > 0, "{outcome}");
    assert!(number("to_guests") > 0, "{outcome}");
    for at in 0..2 {
        assert!(outcome["changes"][at].as_u64() >= Some(4), "{outcome}");
    }
    for topic in ["busy", "calm"] {
        assert!(outcome[topic]["ratio"].is_number(), "{outcome}");
    }
    for name in ["outage_ms", "quiet_ms"] {
        let longest = outcome[name]["max"].as_f64();
        assert!(longest >= outcome[name]["median"].as_f64(), "{outcome}");
    }
}

/// Runs it with `--views`; whether it was content, what it found, and what it complained of.
fn views(arguments: &[&str]) -> (bool, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["perf", "churn", "--rate", "200", "--limit-ms", "20000"])
        .arg("--json")
        .args(arguments)
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = serde_json::from_slice(&output.stdout);
    let outcome = outcome.unwrap_or_else(|error| panic!("no JSON: {error}; {said}"));
    (output.status.success(), outcome, said)
}

#[test]
fn views_leave_nothing_behind() {
    let by_streams = [
        "--fabric",
        "tcp",
        "--hosts",
        "127.0.0.1,127.0.0.2,127.0.0.3",
    ];
    for on in [&[][..], &by_streams] {
        let (content, outcome, said) = views(&[&["--views", "40"], on].concat());
        assert!(content, "{said}: {outcome}");
        assert!(outcome["views"].as_u64() >= Some(40), "{outcome}");
        assert_eq!(outcome["lost"], 0, "{outcome}");
        for at in 0..2 {
            assert!(outcome["changes"][at].as_u64() > Some(8), "{outcome}");
        }
        for at in 0..3 {
            let after = &outcome["belongings"][at]["after"];
            for name in ["descriptors", "mappings", "threads"] {
                assert!(after[name].as_u64() > Some(0), "{outcome}");
            }
        }
    }
}

/// A descriptor is forgotten in each round of six views.
#[test]
fn what_views_leave_behind_is_noticed() {
    let (content, outcome, said) = views(&["--views", "12", "--forget"]);
    assert!(!content, "{outcome}");
    let complaint = "views have left something behind: Changer has ";
    assert!(said.contains(complaint), "{said}");
    assert!(said.contains(" descriptors, not "), "{said}");
}
