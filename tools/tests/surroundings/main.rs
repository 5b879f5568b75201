//! `spindle doctor` names conditions that are made real: limits, file systems and namespaces.
//!
//! Limits are those of a shell that starts it. Mounts and control groups take root.

mod directories;
mod domain;
mod limits;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::Value;

/// False, with a message, where mounts and control groups cannot be made.
fn is_root() -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    if !root {
        eprintln!("skipped: this needs root");
    }
    root
}

/// A directory that is this user's alone.
fn private() -> tempfile::TempDir {
    let mode = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().permissions(mode).tempdir();
    made.expect("a directory")
}

/// What `spindle doctor --json` reports, started by a shell after these commands.
fn doctor_after(commands: &str, arguments: &[&str]) -> Value {
    let output = Command::new("unshare")
        .args(match is_mounting(commands) {
            true => &["--mount", "sh", "-ec"][..],
            false => &["sh", "-ec"],
        })
        .arg(format!("{commands}\nexec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_spindle"))
        .args(["doctor", "--json"])
        .args(arguments)
        .output()
        .expect("unshare (util-linux) runs");
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said} {output:?}"))
}

fn is_mounting(commands: &str) -> bool {
    commands.contains("mount ")
}

fn doctor(arguments: &[&str]) -> Value {
    doctor_after("", arguments)
}

/// The findings of one check.
fn of<'a>(report: &'a Value, check: &str) -> Vec<&'a Value> {
    let findings = report["findings"].as_array().expect("findings");
    let findings: Vec<_> = findings.iter().filter(|it| it["check"] == check).collect();
    assert!(!findings.is_empty(), "no {check} in {report:#}");
    findings
}

/// That one finding of this check has this level and says this.
fn expect(report: &Value, check: &str, level: &str, words: &str) {
    let findings = of(report, check);
    let says = |it: &&Value| it["what"].as_str().is_some_and(|what| what.contains(words));
    let found = findings.iter().find(|it| it["level"] == level && says(it));
    assert!(
        found.is_some(),
        "{check} is not {level} with '{words}': {findings:#?}"
    );
    if level != "ok" {
        assert!(
            found.is_some_and(|it| it["advice"].is_string()),
            "{findings:#?}"
        );
    }
}
