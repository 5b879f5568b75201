//! `spindle doctor` names conditions that are made real: limits, file systems and namespaces.
//!
//! Limits are those of a shell that starts it. Mounts and control groups take root.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_dds::DomainParticipant;
use spindle_dds::qos::DataReaderQos;

spindle_dds::include_idl!("perf");
use perf::Probe;

const DIRECTORY: &str = "SPINDLE_TEST_DOCTOR_DIRECTORY";
const TOPICS: &str = "SPINDLE_TEST_DOCTOR_TOPICS";
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a program as the first process of a new pid namespace, which ends with the starter.
const NEW_PIDS: [&str; 5] = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

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
    // Root may exceed it: another user.
    let become_other = match is_root() {
        true => "exec setpriv --reuid 4711 --clear-groups --inh-caps=-all sh -ec 'ulimit -u 3",
        false => "exec sh -ec 'ulimit -u 3",
    };
    let home = private();
    let program = home.path().join("spindle");
    std::fs::copy(env!("CARGO_BIN_EXE_spindle"), &program).expect("copied");
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("set");
    let program = program.display();
    let output = Command::new("sh")
        .arg("-ec")
        .arg(format!(
            "{become_other}; exec {program} doctor --json --peers 5 --topics 5'"
        ))
        .output()
        .expect("sh runs");
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

#[test]
fn a_full_file_system_of_the_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().to_str().expect("text");
    let mount = |options: &str| format!("mount -t tmpfs -o mode=700,{options} dds {path}");
    let arguments = ["--directory", path, "--peers", "5", "--topics", "2"];
    let report = doctor_after(&mount("size=8k"), &arguments);
    expect(&report, "directory-space", "error", "8 KiB");
    let report = doctor_after(&mount("size=32k"), &arguments);
    expect(&report, "directory-space", "warning", "32 KiB");
    let report = doctor_after(&mount("size=1m,nr_inodes=4"), &arguments);
    expect(&report, "directory-space", "error", "3 files free");
    let report = doctor_after(&mount("size=1m"), &arguments);
    expect(&report, "directory-space", "ok", "1 MiB");
}

#[test]
fn a_read_only_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().to_str().expect("text");
    let mount = format!("mount -t tmpfs -o mode=700,ro dds {path}");
    for directory in [path.to_owned(), format!("{path}/domains")] {
        let report = doctor_after(&mount, &["--directory", &directory]);
        expect(&report, "directory", "error", "is read-only");
        assert_eq!(report["fit"], false);
    }
}

#[test]
fn a_small_dev_shm_is_told() {
    if !is_root() {
        return;
    }
    let report = doctor_after("mount -t tmpfs -o size=512k x /dev/shm", &[]);
    expect(&report, "dev-shm", "warning", "512 KiB of 512 KiB free");
}

/// A system made anew below /run, in a mount namespace.
const NEW_RUN: &str = "mount -t tmpfs -o mode=755 run /run\n";

#[test]
fn a_cleaner_of_the_place_of_the_directory_is_told() {
    if !is_root() {
        return;
    }
    let home = private();
    let path = home.path().join("spindle-dds-0");
    let path = path.to_str().expect("text");
    let rule = |line: &str| {
        format!(
            "{NEW_RUN}mkdir -p /run/systemd/system /run/tmpfiles.d\n\
             echo '{line}' > /run/tmpfiles.d/spindle-test.conf\n"
        )
    };
    let above = home.path().display();
    let arguments = ["--directory", path];
    let report = doctor_after(&rule(&format!("d {above} 0700 root root 7d")), &arguments);
    expect(
        &report,
        "directory-place",
        "warning",
        "files not used for 7d are removed",
    );
    expect(
        &report,
        "directory-place",
        "warning",
        "/run/tmpfiles.d/spindle-test.conf",
    );
    let report = doctor_after(&rule(&format!("x {above}/spindle-dds-*")), &arguments);
    let findings = of(&report, "directory-place");
    let says = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("not used for"))
    };
    assert!(!findings.iter().any(|it| says(&it)), "{findings:#?}");
}

#[test]
fn a_directory_that_goes_with_a_login_is_told() {
    if !is_root() {
        return;
    }
    let made = format!("{NEW_RUN}mkdir -p -m 700 /run/user/4711/dds\n");
    let report = doctor_after(&made, &["--directory", "/run/user/4711/dds"]);
    expect(
        &report,
        "directory-place",
        "warning",
        "logs out for the last time",
    );
}

#[test]
fn a_directory_that_one_container_or_service_has_for_itself_is_told() {
    if !is_root() {
        return;
    }
    let made = format!(
        "{NEW_RUN}touch /run/.containerenv\nmount -t tmpfs -o mode=1777,size=64m shm /dev/shm\n"
    );
    let report = doctor_after(&made, &["--directory", "/dev/shm/spindle-dds-0"]);
    expect(
        &report,
        "directory-place",
        "warning",
        "of this container alone (tmpfs at /dev/shm)",
    );
    let home = private();
    let private_tmp = home.path().join("systemd-private-1-feed.service-x/tmp");
    std::fs::create_dir_all(&private_tmp).expect("made");
    let other = home.path().join("tmp");
    std::fs::create_dir(&other).expect("made");
    let bound = format!("mount --bind {} {}", private_tmp.display(), other.display());
    let inside = other.join("dds");
    let report = doctor_after(&bound, &["--directory", inside.to_str().expect("text")]);
    expect(&report, "directory-place", "warning", "PrivateTmp");
}

/// This program once more, as another participant; ended with the test.
struct Part(Child);

impl Part {
    /// `by`: programs that start it.
    fn start(by: &[&str], directory: &Path, topics: u32) -> Self {
        let this = std::env::current_exe().expect("this program");
        let this = this.to_str().expect("text");
        let words = [by, &[this]].concat();
        let child = Command::new(words[0])
            .args(&words[1..])
            .args(["--exact", "a_part_of_the_test", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(TOPICS, topics.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("it starts"))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// No test but in a process that was started for it.
#[test]
fn a_part_of_the_test() {
    let (Ok(directory), Ok(topics)) = (std::env::var(DIRECTORY), std::env::var(TOPICS)) else {
        return;
    };
    // The test holds the other end for as long as it lives.
    thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let topics: u32 = topics.parse().expect("a number");
    let mut builder = DomainParticipant::builder(0).property("spindle.directory", &directory);
    for number in 0..topics {
        let subgroup = format!("spindle.topic.T{number}.subgroup");
        builder = builder.property(&subgroup, &(number + 1).to_string());
    }
    let participant = builder.disabled().create().expect("a participant");
    let publisher = participant.publisher().create().expect("a publisher");
    let subscriber = participant.subscriber().create().expect("a subscriber");
    let endpoints: Vec<_> = (0..topics)
        .map(|number| {
            let topic = participant.topic::<Probe>(&format!("T{number}")).create();
            let topic = topic.expect("a topic");
            let reader = subscriber
                .reader(&topic)
                .qos(DataReaderQos::default())
                .create();
            let writer = publisher.writer(&topic).create();
            (reader.expect("a reader"), writer.expect("a writer"))
        })
        .collect();
    participant.enable().expect("it is let in");
    while endpoints.len() == topics as usize {
        thread::sleep(PATIENCE);
    }
}

/// Reports of the directory until one has so many members and topics.
fn doctor_once_there(directory: &Path, members: u64, topics: u64) -> Value {
    let directory = directory.to_str().expect("text");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let report = doctor(&["--directory", directory]);
        let seen = &report["members"];
        if (seen["recorded"].as_u64(), seen["topics"].as_u64()) == (Some(members), Some(topics)) {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:#}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_domain_in_two_directories_is_told() {
    let (first, second) = (private(), private());
    let _here = Part::start(&[], first.path(), 1);
    let there = Part::start(&[], second.path(), 1);
    doctor_once_there(second.path(), 1, 1);
    let report = doctor_once_there(first.path(), 1, 1);
    let pid = there.0.id();
    expect(
        &report,
        "second-directory",
        "warning",
        second.path().to_str().expect("text"),
    );
    expect(&report, "second-directory", "warning", &pid.to_string());
    // Another domain there is none of this one's business.
    let directory = first.path().to_str().expect("text");
    let report = doctor(&["--directory", directory, "--domain", "3"]);
    let findings = of(&report, "second-directory");
    let names = |it: &&Value| it["what"].as_str().is_some_and(|it| it.contains(directory));
    assert!(!findings.iter().any(|it| names(&it)), "{findings:#?}");
}

#[test]
fn limits_are_compared_for_the_running_domain() {
    let directory = private();
    let parts = [0, 1].map(|_| Part::start(&[], directory.path(), 3));
    let report = doctor_once_there(directory.path(), 2, 3);
    expect(
        &report,
        "open-files",
        "ok",
        "2 peers and 3 topics (the running domain and one more)",
    );
    expect(&report, "domain", "ok", "2 members in the record");
    expect(&report, "member-limits", "ok", "2 processes have room");
    // One of them has used up nearly all.
    let pid = parts[1].0.id();
    let used = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("files")
        .count();
    let limit = Command::new("prlimit")
        .args([
            "--pid",
            &pid.to_string(),
            &format!("--nofile={}:", used + 1),
        ])
        .status();
    assert!(limit.expect("prlimit (util-linux) runs").success());
    let report = doctor_once_there(directory.path(), 2, 3);
    let words = format!("process {pid} ");
    expect(&report, "member-limits", "error", &words);
}

#[test]
fn members_in_other_namespaces_are_told() {
    if !is_root() {
        return;
    }
    let directory = private();
    let _contained = Part::start(&NEW_PIDS, directory.path(), 1);
    let report = doctor_once_there(directory.path(), 1, 1);
    let level = of(&report, "namespaces");
    let pid = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("another pid"))
    };
    assert!(level.iter().any(|it| pid(&it)), "{level:#?}");
    expect(&report, "namespaces", "warning", "another mnt namespace");
    // From inside of another container, the process itself is not seen.
    let output = Command::new(NEW_PIDS[0])
        .args(&NEW_PIDS[1..])
        .arg(env!("CARGO_BIN_EXE_spindle"))
        .args(["doctor", "--json", "--directory"])
        .arg(directory.path())
        .output()
        .expect("unshare (util-linux) runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = of(&report, "namespaces");
    let hidden = |it: &&&Value| {
        it["what"]
            .as_str()
            .is_some_and(|it| it.contains("not seen here"))
    };
    assert!(findings.iter().any(|it| hidden(&it)), "{findings:#?}");
}

/// Counts of a process: open files, threads, mappings.
fn counts(pid: u32) -> [u64; 3] {
    let entries = |name: &str| {
        let entries = std::fs::read_dir(PathBuf::from(format!("/proc/{pid}")).join(name));
        entries.expect("a process").count() as u64
    };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    [entries("fd"), entries("task"), maps.lines().count() as u64]
}

/// What doctor says that participants need is what they need: no less, and not much more.
#[test]
fn what_is_needed_is_what_participants_take() {
    let directory = private();
    let mut parts = Vec::new();
    for members in 1..=4 {
        parts.push(Part::start(&[], directory.path(), 8));
        doctor_once_there(directory.path(), members, 8);
    }
    let path = directory.path().to_str().expect("text");
    let report = doctor(&["--directory", path, "--peers", "3", "--topics", "8"]);
    let needed = |check: &str| {
        let needed = &of(&report, check)[0]["figures"]["needed"];
        needed.as_u64().expect("a figure")
    };
    // Of threads, those of the one participant that is missing at least.
    let needed = [
        needed("open-files"),
        needed("user-threads"),
        needed("mappings"),
    ];
    for part in &parts {
        let counts = counts(part.0.id());
        eprintln!("{counts:?} of {needed:?}");
        for (count, needed) in counts.iter().zip(needed) {
            assert!(*count <= needed, "{counts:?} of {needed:?}");
            assert!(needed <= 4 * count, "{counts:?} of {needed:?}");
        }
    }
}
