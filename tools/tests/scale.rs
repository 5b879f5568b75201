//! `spindle perf scale` when something is wrong, and beside a peer. `perf.rs` has its figures.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn scale() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.args(["perf", "scale"]);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (arguments, words) in [
        (&["--participants", "0"][..], "1..=256"),
        (&["--participants", "257"], "1..=256"),
        (&["--topics", "0"], "1..=10000"),
        (&["--curve"], "--report"),
        (&["--peer", "zenoh"], "[possible values: cyclone]"),
        (
            &["--peer", "cyclone", "--participants", "101"],
            "--participants 101: at most 100 with --peer cyclone",
        ),
        (
            &["--report", "/nowhere/page.html"],
            "--report /nowhere/page.html: No such file or directory",
        ),
    ] {
        let output = scale().args(arguments).output().expect("spindle starts");
        let said = said(&output);
        assert!(!output.status.success() && said.contains(words), "{said}");
        assert_eq!(
            said.matches("--help").count() + said.matches("spindle perf: ").count(),
            1
        );
    }
}

#[test]
fn a_peer_that_is_not_installed_is_an_error_that_says_how() {
    let output = scale()
        .args(["--peer", "cyclone"])
        .env("PATH", "")
        .output()
        .expect("spindle starts");
    let said = said(&output);
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{said}"
    );
    assert!(said.contains("pip install cyclonedds"), "{said}");
}

/// Follows the orders of a run of 2 x 3, takes no time and counts no views.
const OBEDIENT: &str = r#"#!/bin/sh
case "$2" in *"import cyclonedds.pub, importlib"*) echo 9.9; exit;; esac
echo '"ready"'
while read -r order; do
    case "$order" in
    '"begin"') echo '{"matched":{"began_at_ns":1,"participant_at_ns":2,"endpoints_at_ns":3,"matched_at_ns":1000000001}}' ;;
    '"count"') echo '{"counted":{"cpu_ns":5,"matches":12,"group":null}}' ;;
    '"close"') echo '{"closed":{"began_at_ns":1,"ended_at_ns":2}}'; exit ;;
    *) echo '"exchanged"' ;;
    esac
done
"#;

/// The program of a peer's processes.
fn write_program(into: &Path, text: &str) {
    let path = into.join("python3");
    fs::write(&path, text).expect("a program");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program");
}

fn beside(program: &str, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    write_program(directory.path(), program);
    let path = std::env::var("PATH").unwrap_or_default();
    scale()
        .args([
            "--participants",
            "2",
            "--topics",
            "3",
            "--peer",
            "cyclone",
            "--json",
        ])
        .args(arguments)
        .env("PATH", format!("{}:{path}", directory.path().display()))
        .output()
        .expect("spindle starts")
}

#[test]
fn a_peer_is_measured_in_turns() {
    let output = beside(OBEDIENT, &["--repeat", "2"]);
    assert!(output.status.success(), "{}", said(&output));
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(outcome["peer"], "Cyclone DDS 9.9");
    let contenders = outcome["contenders"].as_array().expect("both");
    assert_eq!(contenders.len(), 2, "{outcome}");
    for (contender, name) in contenders.iter().zip(["spindle", "cyclone"]) {
        assert_eq!(contender["contender"], name, "{outcome}");
        assert_eq!(contender["rounds"], 2, "{outcome}");
        assert_eq!(contender["matches"], 24, "{outcome}");
    }
    // It takes a second, by its own word.
    let theirs = &contenders[1];
    assert_eq!(theirs["matched_s"]["max"], 1.0, "{outcome}");
    assert_eq!(theirs["views"], Value::Null);
    let ratio = &outcome["matched_ratio"];
    for end in ["min", "max"] {
        assert_eq!(ratio[end], contenders[0]["matched_s"][end], "{outcome}");
    }
}

#[test]
fn a_process_that_gives_up_ends_the_run_with_its_reason() {
    let gives_up = OBEDIENT.replace(
        r#"'"count"') "#,
        r#"'"count"') echo '{"failed":{"error":"out of luck"}}'; exit 1; "#,
    );
    let output = beside(&gives_up, &[]);
    assert!(!output.status.success(), "{}", said(&output));
    let said_first = said(&output);
    assert!(
        said_first.starts_with("spindle perf: 2 x 3 cyclone: "),
        "{said_first}"
    );
    assert!(said_first.contains("out of luck"), "{said_first}");
    // The reason comes before the way in which it ended.
    assert!(!said_first.contains("exit status"), "{said_first}");
    let loses_matches = OBEDIENT.replace("\"matches\":12", "\"matches\":11");
    let output = beside(&loses_matches, &[]);
    assert!(!output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("have 11 matches, not 12"),
        "{}",
        said(&output)
    );
}

/// A run takes longer: it waits before it reads what processes hold.
#[test]
fn a_run_ends_at_its_time_limit() {
    let output = scale()
        .args(["--participants", "1", "--topics", "1", "--timeout", "1"])
        .output()
        .expect("spindle starts");
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    let words = "1 of 1 processes have not done so within 1 s of the start (--timeout)";
    assert!(said.contains(words), "{said}");
}

/// The processes that this one has started.
fn children(of: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1));
        parent.and_then(|it| it.parse().ok()) == Some(of)
    };
    ids.filter(is_child).collect()
}

fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .expect("an id");
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

/// Waits for what will happen at some time; the limit is for what never does.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(600);
    while !is_so() {
        assert!(Instant::now() < limit, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Rounds without end.
fn start() -> Child {
    scale()
        .args(["--participants", "2", "--topics", "2", "--repeat", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spindle starts")
}

#[test]
fn a_process_that_dies_ends_the_run_with_its_reason() {
    let mut run = start();
    wait_until("the run ends", || {
        if let Some(child) = children(run.id()).first() {
            signal(*child, Signal::KILL);
        }
        run.try_wait().expect("a status").is_some()
    });
    let output = run.wait_with_output().expect("its output");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("spindle perf: 2 x 2 spindle: "), "{said}");
    assert!(said.contains("was killed by signal 9"), "{said}");
}

/// The signal is sent to the parent alone. Not SIGINT, which a shell's background jobs ignore.
#[test]
fn an_interrupted_run_leaves_no_process_behind() {
    let mut run = start();
    let mut started = Vec::new();
    wait_until("both processes run", || {
        started = children(run.id());
        started.len() == 2
    });
    signal(run.id(), Signal::TERM);
    let status = run.wait().expect("a status");
    assert_eq!(status.signal(), Some(15));
    // Processes without a parent have another one.
    let is_there = |id: &u32| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("scale-worker")
    };
    wait_until("they end", || !started.iter().any(is_there));
}
