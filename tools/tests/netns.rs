//! `spindle perf netns`: hosts in network namespaces, of which nothing is left behind. As root;
//! elsewhere it says what is missing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A run whose directories are in a directory of its own.
fn netns(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(["perf", "netns"])
        .args(arguments)
        .env("TMPDIR", directory);
    command
}

fn output(arguments: &[&str]) -> Output {
    let directory = TempDir::new().expect("a directory");
    let output = netns(directory.path(), arguments).output();
    let left = entries(directory.path());
    assert!(left.is_empty(), "{left:?}");
    output.expect("spindle starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Whether network namespaces can be made here.
fn can_run() -> bool {
    let directory = TempDir::new().expect("a directory");
    let few = ["throughput", "--samples", "1"];
    let output = netns(directory.path(), &few).output();
    let output = output.expect("spindle starts");
    let said = said(&output);
    let lacks = ["take root", "no network namespaces", "install iproute2"];
    let is_lacking = lacks.iter().any(|text| said.contains(text));
    assert!(output.status.success() || is_lacking, "{said}");
    if is_lacking {
        eprintln!("skipped: {said}");
    }
    !is_lacking
}

fn json(arguments: &[&str]) -> Value {
    let output = output(arguments);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).expect("JSON")
}

fn numbers(hosts: &Value, path: &str) -> Vec<f64> {
    let hosts = hosts["hosts"].as_array().expect("hosts");
    let numbers = hosts.iter().map(|host| host.pointer(path));
    let numbers = numbers.map(|it| it.and_then(Value::as_f64));
    numbers.map(|it| it.expect("a number")).collect()
}

#[test]
fn every_host_is_counted() {
    if !can_run() {
        return;
    }
    let arguments = ["--hosts", "3", "--members", "2", "--json"];
    let few = ["throughput", "--size", "1000", "--samples", "200"];
    let outcome = json(&[&arguments[..], &few].concat());
    assert_eq!(outcome["samples"], 6 * 200, "{outcome}");
    assert_eq!(outcome["lost"], 0, "{outcome}");
    assert_eq!(outcome["fabric"], "tcp", "{outcome}");
    let per_host = &outcome["per_host"];
    assert_eq!(per_host["samples"], 6 * 200, "{outcome}");
    assert_eq!(numbers(per_host, "/participants"), [2.0; 3]);
    // The samples of two writers go to the four members on the other hosts, and those of four
    // writers come to two.
    let of_eight_pairs = 8.0 * 200.0 * 1000.0;
    for end in ["streams", "link"] {
        for path in ["bytes_sent", "bytes_received"].map(|it| format!("/{end}/{it}")) {
            let bytes = numbers(per_host, &path);
            assert!(
                bytes.iter().all(|it| *it > of_eight_pairs),
                "{path}: {outcome}"
            );
        }
    }
    let counts = [
        "/link/packets_sent",
        "/streams/send_calls",
        "/streams/receive_calls",
    ];
    for path in [&counts[..], &["/voluntary_switches", "/cpu_ns"]].concat() {
        let counted = numbers(per_host, path);
        assert!(counted.iter().all(|it| *it > 0.0), "{path}: {outcome}");
        let all = per_host["all"].pointer(path).and_then(Value::as_f64);
        assert_eq!(all, Some(counted.iter().sum()), "{path}: {outcome}");
    }
    let paths = &outcome["per_writer"][0]["peers"];
    let by_stream = paths.as_array().into_iter().flatten();
    let by_stream = by_stream.filter(|path| path["way"] == "tcp");
    assert_eq!(by_stream.count(), 4, "{outcome}");
}

#[test]
fn latency_is_measured_to_all_other_participants() {
    if !can_run() {
        return;
    }
    let arguments = ["--members", "2", "latency", "--samples", "50", "--json"];
    let outcome = json(&arguments);
    assert_eq!(outcome["samples"], 3 * 50, "{outcome}");
    // Those to warm up count: they go over the links as well.
    assert_eq!(outcome["per_host"]["samples"], 55, "{outcome}");
}

/// A kernel with netem delays; another one is told to lack it, in one line. A rate needs none.
#[test]
fn links_are_shaped_or_the_kernel_lacks_netem() {
    if !can_run() {
        return;
    }
    let few = ["latency", "--samples", "20", "--rate", "100", "--json"];
    let shape = ["--delay", "5ms", "--loss", "0%", "--rate", "100mbit"];
    let output = output(&[&shape[..], &few].concat());
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(outcome["links"]["delay_ns"], 5_000_000, "{outcome}");
        assert!(outcome["min"].as_u64() >= Some(5_000_000), "{outcome}");
    } else {
        let said = said(&output);
        assert!(said.contains("modprobe sch_netem"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let outcome = json(&[&["--rate", "100mbit"], &few[..]].concat());
    assert_eq!(
        outcome["links"]["rate_bits_per_s"], 100_000_000,
        "{outcome}"
    );
}

/// The network namespaces to which a process has descriptors.
fn namespaces(process: u32) -> BTreeSet<String> {
    let links = entries(&PathBuf::from(format!("/proc/{process}/fd")));
    let links = links.iter().filter_map(|link| fs::read_link(link).ok());
    let links = links.map(|link| link.to_string_lossy().into_owned());
    links.filter(|link| link.starts_with("net:[")).collect()
}

/// Processes that are in one of the namespaces, or hold it, and namespaces with a name.
fn holders(of: &BTreeSet<String>) -> Vec<PathBuf> {
    let name = |path: &Path| path.file_name().map(|it| it.to_string_lossy().into_owned());
    let processes = entries(Path::new("/proc")).into_iter();
    let processes = processes.filter(|path| name(path).is_some_and(|it| it.parse::<u32>().is_ok()));
    let holds = |path: &PathBuf| {
        let inside = fs::read_link(path.join("ns/net")).ok();
        let inside = inside.is_some_and(|it| of.contains(&*it.to_string_lossy()));
        let process = name(path).and_then(|it| it.parse().ok());
        inside || process.is_some_and(|it| !of.is_disjoint(&namespaces(it)))
    };
    let named = entries(Path::new("/run/netns")).into_iter();
    let named = named.filter(|path| {
        let inode = path.metadata().map(|it| format!("net:[{}]", it.ino()));
        inode.is_ok_and(|it| of.contains(&it))
    });
    processes.filter(holds).chain(named).collect()
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run that would take an hour, once its workers are on their hosts. Returns its namespaces.
fn start(directory: &Path) -> (Child, BTreeSet<String>) {
    let long = ["latency", "--samples", "3600000", "--timeout", "3600"];
    let mut child = netns(directory, &long)
        .stdout(Stdio::null())
        .spawn()
        .expect("spindle starts");
    let of_all = wait_for("the workers", || {
        assert_eq!(child.try_wait().expect("a status"), None);
        let of_all = namespaces(child.id());
        // Two hosts and the bridge, held by this process; and two workers.
        let is_complete = of_all.len() == 3 && holders(&of_all).len() == 3;
        is_complete.then_some(of_all)
    });
    (child, of_all)
}

#[test]
fn nothing_is_left_behind_by_a_run_that_a_signal_ends() {
    if !can_run() {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let (mut child, namespaces) = start(directory.path());
        let process = Pid::from_child(&child);
        kill_process(process, signal).expect("it runs");
        assert!(!child.wait().expect("a status").success());
        wait_for("the namespaces end", || {
            holders(&namespaces).is_empty().then_some(())
        });
        // Its directory is removed by the next run.
        assert_eq!(entries(directory.path()).len(), 1);
    }
    let few = ["throughput", "--samples", "1"];
    let next = netns(directory.path(), &few)
        .output()
        .expect("spindle starts");
    assert!(next.status.success(), "{}", said(&next));
    assert_eq!(entries(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn without_root_it_says_so() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.args(["perf", "netns"]);
    if fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0) {
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return eprintln!("skipped: only root may run this program: {error}"),
    };
    let said = said(&output);
    assert!(
        !output.status.success() && said.contains("run it with sudo"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn what_does_not_fit_is_refused() {
    for (arguments, words) in [
        (
            &["throughput", "--fabric", "tcp"][..],
            "netns makes the hosts",
        ),
        (
            &["latency", "--hosts", "127.0.0.1"],
            "netns makes the hosts",
        ),
        (
            &["--hosts", "9", "--members", "4"],
            "at most 32 are possible",
        ),
        (
            &["--hosts", "3", "throughput"],
            "2 participants cannot be on 3 hosts",
        ),
        (
            &["--members", "2", "throughput", "--members", "4"],
            "--members is given twice",
        ),
        (
            &["--members", "2", "throughput", "--readers", "2"],
            "--writers, --readers and --poll do not go with them",
        ),
        (
            &["--members", "2", "latency", "--writers", "4"],
            "as many --writers as participants",
        ),
        (&["--loss", "0.1"], "for example 0.1%"),
        (&["--rate", "1"], "for example 1gbit"),
        (&["--delay", "1"], "for example 100us"),
    ] {
        let output = output(arguments);
        let said = said(&output);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

/// An id without privileges, of users and of groups.
const UNPRIVILEGED: u32 = 65534;
/// For what happens at once unless the machine is overloaded.
const PATIENCE: Duration = Duration::from_secs(600);
