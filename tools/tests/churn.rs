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
