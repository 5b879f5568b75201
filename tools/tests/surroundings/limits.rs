//! Limits of this process, its user and its control group.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::{doctor, doctor_after, expect, is_root, of, private};

#[test]
fn a_low_limit_of_open_files_is_told() {
    let size = ["--peers", "20", "--topics", "20"];
    let report = doctor_after("ulimit -n 100", &size);
    expect(&report, "open-files", "error", "soft limit 100");
    let figures = &of(&report, "open-files")[0]["figures"];
    assert_eq!(figures["limit"], 100);
    assert!(figures["needed"].as_u64() > Some(100));
    assert_eq!(report["fit"], false);
    let report = doctor_after("ulimit -n 100", &["--peers", "1", "--topics", "1"]);
    expect(&report, "open-files", "ok", "soft limit 100");
}

#[test]
fn a_low_limit_of_locked_memory_is_told() {
    let report = doctor_after("ulimit -l 64", &[]);
    assert_eq!(of(&report, "pinned-memory")[0]["figures"]["limit"], 65536);
}

#[test]
fn a_low_limit_of_a_users_threads_is_told() {
    // Root may exceed it: another user, with a program that this one can run.
    let home = private();
    let program = home.path().join("spindle");
    std::fs::copy(env!("CARGO_BIN_EXE_spindle"), &program).expect("copied");
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("set");
    let other = [
        "setpriv",
        "--reuid=4711",
        "--clear-groups",
        "--inh-caps=-all",
    ];
    let limited = ["prlimit", "--nproc=3"];
    let words = match is_root() {
        true => [&other[..], &limited].concat(),
        false => limited.to_vec(),
    };
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(&program)
        .args(["doctor", "--json", "--peers", "5", "--topics", "5"])
        .output()
        .expect("setpriv and prlimit (util-linux) run");
    let said = String::from_utf8_lossy(&output.stdout);
    let report: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said} {output:?}"));
    expect(&report, "user-threads", "error", "limit 3");
}

/// Runs doctor in a new control group with this limit; `None` where it cannot be made.
fn doctor_in_group(controller: &str, limits: [(&str, &str); 2], size: &[&str]) -> Option<Value> {
    if !is_root() {
        return None;
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let point = |line: &str| Some(line.split(' ').nth(4)?.to_owned());
    let legacy = mounts.lines().find(|line| {
        let (_, rest) = line.split_once(" - cgroup ").unwrap_or_default();
        rest.split([' ', ',']).any(|it| it == controller)
    });
    let unified = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let mount = legacy.or(unified).and_then(point)?;
    let group = Path::new(&mount).join(format!("spindle-test-{controller}-{}", std::process::id()));
    std::fs::create_dir(&group).ok()?;
    let written = limits
        .iter()
        .any(|(file, text)| std::fs::write(group.join(file), text).is_ok());
    let report = written.then(|| {
        let enter = format!("echo $$ > {}/cgroup.procs", group.display());
        doctor_after(&enter, size)
    });
    while group.exists() && std::fs::remove_dir(&group).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    if report.is_none() {
        eprintln!("skipped: the controller {controller} is not to be had here");
    }
    report
}

#[test]
fn a_low_limit_of_threads_of_a_control_group_is_told() {
    let limits = [("pids.max", "30"), ("pids.max", "30")];
    if let Some(report) = doctor_in_group("pids", limits, &["--peers", "9", "--topics", "1"]) {
        expect(&report, "group-threads", "error", "pids.max 30");
    }
}

#[test]
fn a_low_limit_of_memory_of_a_control_group_is_told() {
    let limits = [("memory.max", "100M"), ("memory.limit_in_bytes", "100M")];
    if let Some(report) = doctor_in_group("memory", limits, &["--peers", "9", "--topics", "9"]) {
        expect(&report, "memory", "warning", "of 100 MiB used");
    }
}

#[test]
fn too_few_mappings_for_a_large_domain_are_told() {
    let report = doctor(&["--peers", "255", "--topics", "10000"]);
    expect(&report, "mappings", "error", "vm.max_map_count");
}
