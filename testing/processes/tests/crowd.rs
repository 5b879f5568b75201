//! `processes crowd` and `processes closing` in short: many participants at once, and many topics that
//! end at once, expel no participant and lose no sample. `.ci/full` has the long versions.

use std::process::Command;

use serde_json::Value;

/// The outcome of a command that succeeds.
fn outcome(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_processes"))
        .args(arguments)
        .arg("--json")
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn participants_that_come_at_once_are_all_let_in_and_none_is_expelled() {
    let outcome = outcome(&["crowd", "--participants", "16"]);
    assert_eq!(outcome["participants"], 16, "{outcome}");
    assert_eq!(outcome["taken"], 16 * 16 * 3, "{outcome}");
    // Four, then eight, then the rest, after the one that founds the group.
    assert!(outcome["views"].as_u64() >= Some(4), "{outcome}");
}

#[test]
fn a_participant_with_many_topics_closes_and_the_others_go_on() {
    let arguments = ["closing", "--participants", "3", "--topics", "200"];
    let outcome = outcome(&[&arguments[..], &["--seconds", "0.5"]].concat());
    assert_eq!(outcome["lost"], 0, "{outcome}");
    assert!(outcome["published"].as_u64() > Some(0), "{outcome}");
    // No row keeps a descriptor: there are two peers' rows of each topic.
    let descriptors = outcome["descriptors_max"].as_u64();
    assert!(descriptors < Some(200), "{outcome}");
}
