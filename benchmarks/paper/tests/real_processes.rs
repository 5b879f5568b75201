//! Short runs of the paper's experiments with real processes: the report is complete, and names the
//! runs that fail.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn paper(arguments: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paper"))
        .args(["--quick", "--out"])
        .arg(out)
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn lines(out: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(out.join("runs.jsonl")).expect("raw numbers");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

fn page(out: &Path) -> String {
    std::fs::read_to_string(out.join("report.html")).expect("a page")
}

/// A report has both virtual time and real processes.
#[test]
fn simulated_and_real_runs_are_in_one_report() {
    let out = tempfile::tempdir().expect("a directory");
    let figures = ["--figure", "7", "--figure", "14"];
    let output = paper(&figures, out.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = lines(out.path());
    for source in ["simulated", "real"] {
        let runs = lines.iter().filter(|line| {
            line["kind"] == "run" && line["figure"] == 7 && line["source"] == source
        });
        assert!(runs.count() > 1, "{source}");
    }
    let real = lines.iter().filter(|line| line["source"] == "real");
    for line in real.filter(|line| line["kind"] == "run") {
        let command = line["command"].as_str().expect("a command");
        assert!(
            command.starts_with("spindle perf throughput --members 2"),
            "{line}"
        );
        let each = line["rounds"]["each"].as_array().expect("rounds");
        assert_eq!(each.len(), 1, "{line}");
        for name in ["messages_per_s", "gb_per_s", "cpu_us", "messages_an_upcall"] {
            assert!(each[0][name].as_f64() > Some(0.0), "{name}: {line}");
        }
        let batches = line["rounds"]["send"]["buckets"]
            .as_array()
            .expect("batches");
        assert!(!batches.is_empty(), "{line}");
    }
    let machine = lines.iter().find(|line| line["kind"] == "machine");
    let machine = &machine.expect("a machine")["machine"];
    assert!(machine["cores"].as_u64() > Some(0), "{machine}");
    assert!(
        machine["foreign"]["median"].as_f64() >= Some(0.0),
        "{machine}"
    );
    let page = page(out.path());
    for word in [
        "Simulated",
        "Real processes",
        "Load average before",
        "this machine",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for word in ["<script", "src=", "url(", "A run failed", "NaN"] {
        assert!(!page.contains(word), "{word}");
    }
}

/// Upcalls have a table, and no figure in virtual time.
#[test]
fn upcalls() {
    let out = tempfile::tempdir().expect("a directory");
    let output = paper(&["--real", "--figure", "upcalls"], out.path());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let lines = lines(out.path());
    let runs = lines.iter().filter(|line| line["kind"] == "run");
    let runs: Vec<_> = runs.collect();
    assert_eq!(runs.len(), 14, "{said}");
    for line in runs {
        let each = line["rounds"]["each"].as_array().expect("rounds");
        assert_eq!(each.len(), 1, "{line}");
    }
    let simulated = paper(&["--simulated", "--figure", "upcalls"], out.path());
    let said = String::from_utf8_lossy(&simulated.stderr);
    assert!(!simulated.status.success(), "{said}");
    assert!(said.contains("no simulated runs"), "{said}");
}

/// If the workers cannot run, the report says so, and the command fails.
#[test]
fn runs_that_fail_are_reported() {
    let out = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paper"));
    let output = command
        .args(["--quick", "--real", "--figure", "7", "--out"])
        .arg(out.path())
        // The workers' directory cannot be created.
        .env("TMPDIR", out.path().join("nowhere"))
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("1 of the runs failed"), "{said}");
    let page = page(out.path());
    assert!(
        page.contains("A run failed: spindle perf throughput --members 2"),
        "{page}"
    );
    let lines = lines(out.path());
    assert!(
        lines.iter().any(|line| line["kind"] == "failure"),
        "{lines:?}"
    );
}
