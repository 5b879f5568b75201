//! `processes churn` in short: no sample is lost or delivered twice while endpoints come and go.
//! Rates are not bounded, because machines are noisy.

use std::process::Command;

use serde_json::Value;

#[test]
fn nothing_is_lost_while_endpoints_come_and_go() {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["churn", "--seconds", "1", "--json"])
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
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

/// Runs it with `--views`: whether it succeeded, its outcome, and its error output.
fn views(arguments: &[&str]) -> (bool, Value, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["churn", "--rate", "200", "--limit-ms", "20000"])
        .arg("--json")
        .args(arguments)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = serde_json::from_slice(&output.stdout);
    let outcome = outcome.unwrap_or_else(|error| panic!("no JSON: {error}; {stderr}"));
    (output.status.success(), outcome, stderr)
}

#[test]
fn views_leave_nothing_behind() {
    let by_streams = [
        "--fabric",
        "tcp",
        "--hosts",
        "127.0.0.1,127.0.0.2,127.0.0.3",
    ];
    for fabric in [&[][..], &by_streams] {
        let (success, outcome, stderr) = views(&[&["--views", "40"], fabric].concat());
        assert!(success, "{stderr}: {outcome}");
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

/// A descriptor is left open in each round of six views.
#[test]
fn what_views_leave_behind_is_noticed() {
    let (success, outcome, stderr) = views(&["--views", "12", "--forget"]);
    assert!(!success, "{outcome}");
    let leak = "views have left something behind: Changer has ";
    assert!(stderr.contains(leak), "{stderr}");
    assert!(stderr.contains(" descriptors, not "), "{stderr}");
}
