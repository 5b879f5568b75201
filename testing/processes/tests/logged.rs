//! `processes logged` in short: what was acknowledged outlasts that all are killed at once.

use std::process::Command;

use serde_json::Value;

#[test]
fn what_was_acknowledged_outlasts_all_processes() {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(["logged", "--json", "--rounds", "3", "--round-ms", "1000"])
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let outcome: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {stderr}"));
    assert!(output.status.success(), "{outcome} {stderr}");
    assert_eq!(outcome["rounds"].as_u64(), Some(3), "{outcome}");
    assert!(outcome["acknowledged"].as_u64() > Some(0), "{outcome}");
    // One of three logs takes no samples, two do.
    assert_eq!(outcome["shut_with"], 1, "{outcome}");
}
