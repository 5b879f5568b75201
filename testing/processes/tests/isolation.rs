//! `processes isolation` in short: whatever the culprit does, both readers have taken the same
//! samples of each topic in the same order. Rates are not bounded, because machines are noisy.

use std::process::Command;

use serde_json::Value;

fn isolation(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["isolation", "--json"])
        .args(arguments)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {name} in {value}"))
}

fn check(arguments: &[&str]) {
    let outcome = isolation(arguments);
    for topic in ["A", "B", "C", "D"] {
        let digests = &outcome["digests"][topic];
        assert!(digests[0].is_string(), "{outcome}");
        assert_eq!(digests[0], digests[1], "{topic}: {outcome}");
    }
    assert_eq!(outcome["identical"], true, "{outcome}");
    assert_eq!(outcome["missed"], 0, "{outcome}");

    let phases = outcome["phases"].as_array().expect("phases");
    let named: Vec<&Value> = phases.iter().map(|phase| &phase["phase"]).collect();
    assert_eq!(named, ["loans", "listener", "keep_all"]);
    for stream in phases.iter().flat_map(|phase| phase["streams"].as_array()) {
        for stream in stream {
            assert!(stream["ratio"].is_number(), "{stream}");
        }
    }

    // Each misbehaviour did take place.
    let misdeeds = &outcome["misdeeds"];
    assert!(number(misdeeds, "samples_held") > 0, "{misdeeds}");
    assert_eq!(number(misdeeds, "loans_held"), 2, "{misdeeds}");
    for name in ["holding_ns", "listener_ns", "not_taking_ns"] {
        assert!(number(misdeeds, name) > 0, "{misdeeds}");
    }
    assert_eq!(number(misdeeds, "taken_meanwhile"), 0, "{misdeeds}");

    // The writer of C had to wait: beside what the culprit took before it saw that the phase had
    // begun, it sent what there was room for, and one write more had begun. Without waiting it
    // would have been 500 writes, one each millisecond.
    let keep_all = &phases[2];
    let sent = number(&keep_all["sent"], "C");
    let taken = number(&keep_all["taken_by_culprit"], "C");
    assert!(sent <= taken + ROOM_OF_C + 1, "{outcome}");
    assert!(number(&keep_all["longest_write_ns"], "C") > 0, "{outcome}");
}

/// Messages of the ring of C, and samples that the culprit keeps at most.
const ROOM_OF_C: u64 = 64 + 16;

#[test]
fn paced_writers_are_isolated() {
    check(&["--seconds", "0.5", "--rate", "5000"]);
}

#[test]
fn writers_without_a_pace_are_isolated() {
    check(&["--seconds", "0.5", "--rate", "2000", "--free"]);
}
