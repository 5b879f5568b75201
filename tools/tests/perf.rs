//! `spindle perf` in short: every figure is there and makes sense.

use std::process::Command;

use serde_json::Value;

fn perf(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .arg("perf")
        .args(arguments)
        .args(["--json"])
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

fn positive(outcome: &Value, name: &str) {
    assert!(
        outcome[name].as_f64().is_some_and(|value| value > 0.0),
        "{name}: {outcome}"
    );
}

fn check_throughput(arguments: &[&str], samples: u64) -> Value {
    let outcome = perf(&[&["throughput"], arguments].concat());
    assert_eq!(outcome["samples"], samples, "{outcome}");
    for name in ["bytes", "seconds", "samples_per_s", "bytes_per_s"] {
        positive(&outcome, name);
    }
    assert_eq!(outcome["lost"], 0, "{outcome}");
    assert!(
        outcome["cpu_seconds"]["total"].as_f64() > Some(0.0),
        "{outcome}"
    );
    let readers = outcome["per_reader"].as_array().expect("readers");
    assert!(
        readers.iter().all(|reader| reader["samples"] == samples),
        "{outcome}"
    );
    outcome
}

#[test]
fn throughput_in_place() {
    let arguments = [
        "--writers",
        "2",
        "--readers",
        "2",
        "--size",
        "128",
        "--samples",
        "2000",
    ];
    check_throughput(&arguments, 4000);
}

#[test]
fn throughput_between_hosts() {
    let hosts = ["--fabric", "tcp", "--hosts", "127.0.0.1,127.0.0.2"];
    let outcome = check_throughput(&[&hosts[..], &["--samples", "500"]].concat(), 500);
    assert_eq!(outcome["fabric"], "tcp");
    let peers = &outcome["per_writer"][0]["peers"];
    assert_eq!(*peers, serde_json::json!([{ "way": "tcp" }]));
}

#[test]
fn throughput_of_members_that_all_send() {
    let members = ["--members", "3", "--size", "64", "--samples", "1000"];
    let outcome = check_throughput(&members, 3000);
    for figures in ["per_writer", "per_reader"] {
        assert_eq!(outcome[figures].as_array().map(Vec::len), Some(3));
    }
    for writer in outcome["per_writer"].as_array().expect("writers") {
        assert_eq!(writer["samples"], 1000, "{outcome}");
        assert_eq!(writer["counters"]["sent"], 1000, "{outcome}");
    }
}

#[test]
fn throughput_of_some_members_that_send() {
    let members = ["--members", "3", "--senders", "1", "--size", "64"];
    let outcome = check_throughput(&[&members[..], &["--samples", "1000"]].concat(), 1000);
    assert_eq!(outcome["writers"], 1, "{outcome}");
    assert_eq!(outcome["readers"], 3, "{outcome}");
}

/// Each member sends in each topic, and gets what all send in all of them.
#[test]
fn throughput_of_several_topics() {
    let members = ["--members", "2", "--topics", "3", "--size", "64"];
    let outcome = check_throughput(&[&members[..], &["--samples", "500"]].concat(), 3000);
    for writer in outcome["per_writer"].as_array().expect("writers") {
        assert_eq!(writer["samples"], 1500, "{outcome}");
    }
}

/// What is measured are the samples of the others, and these all arrive.
#[test]
fn throughput_beside_one_that_is_late_or_silent() {
    let members = ["--members", "3", "--size", "64", "--samples", "1000"];
    let lates = [
        ["--delay-one", "100ms"],
        ["--sleep-one", "100ms"],
        ["--silent-one", "60s"],
    ];
    for late in lates {
        let outcome = check_throughput(&[&members[..], &late].concat(), 2000);
        let sent = |at: usize| outcome["per_writer"][at]["samples"].as_u64();
        assert_eq!((sent(0), sent(1)), (Some(1000), Some(1000)), "{outcome}");
        assert!(sent(2) < Some(1000), "{outcome}");
        let is_silent = late[0] == "--silent-one";
        assert_eq!(sent(2) == Some(0), is_silent, "{outcome}");
    }
    // Blocked members continue when it has deleted its writer.
    let stopped = ["--silent-one", "1s", "--without", "null_sends"];
    let outcome = check_throughput(&[&members[..], &stopped].concat(), 2000);
    assert!(outcome["seconds"].as_f64() > Some(0.2), "{outcome}");
}

/// Nothing is pushed in epochs when all is said.
#[test]
fn throughput_and_idling() {
    let members = ["--members", "3", "--size", "64", "--samples", "1000"];
    let outcome = check_throughput(
        &[&members[..], &["--still", "1s", "--stamp"]].concat(),
        3000,
    );
    assert_eq!(outcome["still_pushes"], serde_json::json!([0, 0, 0]));
    let latency = &outcome["latency_ns"];
    assert!(latency["mean"].as_f64() > Some(0.0), "{outcome}");
    assert!(
        latency["p99"].as_u64() >= latency["p50"].as_u64(),
        "{outcome}"
    );
}

#[test]
fn throughput_of_listeners_that_take_their_time() {
    let few = ["--size", "64", "--samples", "200", "--upcall", "1ms"];
    let outcome = check_throughput(&few, 200);
    assert_eq!(outcome["listener"], true, "{outcome}");
    // The clock starts when the first sample's millisecond is over.
    assert!(outcome["seconds"].as_f64() >= Some(0.198), "{outcome}");
    let once = check_throughput(&[&few[..], &["--upcall-once"]].concat(), 200);
    assert_eq!(once["scenario"]["is_upcall_once"], true, "{once}");
}

#[test]
fn scenarios_without_meaning_are_refused() {
    for (arguments, words) in [
        (&["--delay-one", "100us"][..], "--members"),
        (&["--members", "3", "--delay-one", "100"], "100us"),
        (
            &["--members", "2", "--senders", "3"],
            "--senders 3: it is 1 to 2",
        ),
        (
            &["--members", "2", "--senders", "1", "--silent-one", "1s"],
            "it is 2 to 2",
        ),
        (
            &["--members", "3", "--sleep-one", "1s", "--delay-one", "1s"],
            "cannot be used with",
        ),
        (&["--poll", "--upcall", "1us"], "cannot be used with"),
        (&["--upcall-once"], "--upcall"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        let output = command
            .args(["perf", "throughput"])
            .args(arguments)
            .output();
        let output = output.expect("spindle starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

/// What is off is off in every participant, and all arrives nonetheless.
#[test]
fn throughput_without_optimisations() {
    let few = ["--samples", "500", "--size", "100"];
    let without = [
        "--without",
        "send_batching,receive_batching,delivery_batching",
    ];
    let outcome = check_throughput(&[&few[..], &without].concat(), 500);
    let of_several = |role: &str, stage: &str| -> u64 {
        let buckets = &outcome[role][0]["counters"][stage]["buckets"];
        let buckets = buckets.as_array().expect("buckets").iter();
        let of_several = buckets.filter(|bucket| bucket[0] != 1);
        of_several.filter_map(|bucket| bucket[1].as_u64()).sum()
    };
    assert_eq!(of_several("per_writer", "send_batch"), 0, "{outcome}");
    assert_eq!(of_several("per_reader", "receive_batch"), 0, "{outcome}");
    // Once its writer ends, what is left is delivered at the end of the view, at once.
    assert!(of_several("per_reader", "delivery_batch") <= 1, "{outcome}");
    let outcome = check_throughput(&[&few[..], &["--baseline"]].concat(), 500);
    let off = outcome["without"].as_array().expect("switches");
    assert!(off.iter().any(|it| it == "null_sends"), "{outcome}");
    let reader = &outcome["per_reader"][0]["counters"];
    assert_eq!(reader["upcalls"], reader["delivered"], "{outcome}");
}

#[test]
fn switches_that_there_are_not_are_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    let output = command
        .args(["perf", "throughput", "--without", "luck"])
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("null_sends"),
        "{said}"
    );
}

/// Hosts, devices and what carries the samples have to fit.
#[test]
fn places_that_do_not_fit_are_refused() {
    for (arguments, words) in [
        (
            &["--hosts", "127.0.0.1"][..],
            "are for --fabric tcp and rdma",
        ),
        (
            &["--secret-file", "/nowhere"],
            "are for --fabric tcp and rdma",
        ),
        (
            &["--fabric", "tcp", "--hosts", "127.0.0.1"],
            "two --hosts or more",
        ),
        (
            &["--fabric", "rdma", "--hosts", "127.0.0.1,127.0.0.2"],
            "as many --devices",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        let output = command.args(["perf", "latency"]).args(arguments).output();
        let output = output.expect("spindle starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

#[test]
fn throughput_of_readers_that_poll() {
    let poll = ["--poll", "--wait", "spin", "--readers", "2"];
    let outcome = check_throughput(&[&poll[..], &["--samples", "2000"]].concat(), 2000);
    assert_eq!(outcome["poll"], true);
}

#[test]
fn throughput_of_large_samples() {
    let large = ["--size", "1000000", "--samples", "200"];
    check_throughput(&large, 200);
    check_throughput(&[&large[..], &["--copy"]].concat(), 200);
}

#[test]
fn throughput_of_every_byte() {
    let arguments = [
        "--size",
        "10000",
        "--samples",
        "500",
        "--fill",
        "--doorbell",
        "event",
    ];
    check_throughput(&arguments, 500);
    check_throughput(&[&arguments[..], &["--copy"]].concat(), 500);
}

#[test]
fn throughput_unordered() {
    check_throughput(
        &["--level", "unordered", "--size", "64", "--samples", "2000"],
        2000,
    );
}

/// Participants keep what is delivered, and all of it arrives.
#[test]
fn throughput_of_samples_that_are_kept() {
    for durability in ["transient-local", "transient", "persistent"] {
        let arguments = ["--durability", durability, "--samples", "2000"];
        let outcome = check_throughput(&arguments, 2000);
        assert_eq!(outcome["durability"], durability, "{outcome}");
    }
}

/// With `each`, one sync for each sample; with `batch`, no more.
#[test]
fn throughput_of_samples_that_are_logged() {
    for (sync, is_each) in [("each", true), ("batch", false)] {
        let arguments = ["--durability", "persistent", "--log-sync", sync];
        let arguments = [&arguments[..], &["--samples", "500", "--size", "100"]].concat();
        let outcome = check_throughput(&arguments, 500);
        let logs = &outcome["logs"];
        assert_eq!(logs["sync"], sync, "{outcome}");
        positive(logs, "of_plain");
        let per_log = logs["per_log"].as_array().expect("logs");
        assert_eq!(per_log.len(), 2, "{outcome}");
        for log in per_log {
            assert_eq!(log["records"], 500, "{outcome}");
            let syncs = log["syncs"].as_u64().expect("a count");
            assert!((1..=500).contains(&syncs), "{outcome}");
            assert!(!is_each || syncs == 500, "{outcome}");
            let beside = log["beside_per_sample"].as_f64();
            assert!((Some(1.0)..=Some(112.0)).contains(&beside), "{outcome}");
        }
    }
}

/// Members that only read stay until the one that writes has its acknowledgements.
#[test]
fn throughput_of_members_that_log() {
    let members = ["--members", "3", "--senders", "1"];
    let arguments = [
        &members[..],
        &["--durability", "persistent", "--samples", "300"],
    ]
    .concat();
    let outcome = check_throughput(&arguments, 300);
    let per_log = outcome["logs"]["per_log"].as_array().expect("logs");
    let records: Vec<_> = per_log.iter().map(|log| &log["records"]).collect();
    assert_eq!(records, [300, 300, 300], "{outcome}");
}

#[test]
fn syncs_of_logs_that_are_not_there() {
    let arguments = ["perf", "throughput", "--log-sync", "each"];
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("--log-sync goes with"), "{said}");
}

#[test]
fn latency() {
    let outcome = perf(&[
        "latency",
        "--samples",
        "300",
        "--rate",
        "2000",
        "--readers",
        "2",
    ]);
    assert_eq!(outcome["samples"], 600, "{outcome}");
    let quantiles: Vec<u64> = ["min", "p50", "p90", "p99", "p999", "max"]
        .iter()
        .map(|name| outcome[name].as_u64().expect("nanoseconds"))
        .collect();
    assert!(quantiles.is_sorted() && quantiles[0] > 0, "{outcome}");
}

#[test]
fn idle() {
    let outcome = perf(&["idle", "--seconds", "0.5", "--wakes", "5"]);
    for doorbell in ["futex", "event"] {
        let one = &outcome["doorbells"][doorbell];
        assert_eq!(one["wakes"], 10, "{outcome}");
        assert!(one["cpu_percent"].as_f64() >= Some(0.0), "{outcome}");
    }
}

/// By streams nothing is a work request.
#[test]
fn idle_between_hosts() {
    let hosts = ["--fabric", "tcp", "--hosts", "127.0.0.1,127.0.0.2"];
    let idle = ["idle", "--participants", "2", "--seconds", "0.5"];
    let wakes = ["--wakes", "5", "--doorbell", "auto"];
    let outcome = perf(&[&idle[..], &wakes, &hosts].concat());
    let one = &outcome["doorbells"]["auto"];
    assert_eq!(one["wakes"], 5, "{outcome}");
    let traffic = one["traffic"].as_array().expect("of each participant");
    assert_eq!(traffic.len(), 2, "{outcome}");
    for of_one in traffic {
        assert_eq!(of_one["subgroup_pushes"], 0, "{outcome}");
        assert_eq!(of_one["work_requests"], 0, "{outcome}");
    }
}

#[test]
fn a_sample_larger_than_the_ring() {
    let arguments = [
        "perf",
        "throughput",
        "--size",
        "100000",
        "--ring-bytes",
        "65536",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .output()
        .expect("spindle starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("writer 0: out of resources"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// 2 processes with 3 topics: each endpoint matches those of both.
fn check_scale(contender: &Value) {
    assert_eq!(contender["matches"], 2 * 3 * 2 * 2, "{contender}");
    for time in ["participants_s", "endpoints_s", "matched_s", "cpu_s"] {
        positive(&contender[time], "min");
    }
    let stages = contender["stages"].as_array().expect("stages");
    let names: Vec<&str> = stages
        .iter()
        .filter_map(|it| it["stage"].as_str())
        .collect();
    let few = [
        "start",
        "matched",
        "one_sample_a_topic",
        "one_sample_a_writer",
    ];
    assert_eq!(names[..4], few, "{contender}");
    for stage in stages {
        let kinds = ["pss_bytes", "anonymous_bytes", "program_bytes"];
        for held in [&kinds[..], &["descriptors", "mappings", "threads"]].concat() {
            positive(&stage[held], "min");
        }
    }
}

#[test]
fn scale() {
    let outcome = perf(&["scale", "--participants", "2", "--topics", "3", "--burst"]);
    assert_eq!(outcome["participants"], 2);
    assert_eq!(outcome["topics"], 3);
    let ours = &outcome["contenders"][0];
    check_scale(ours);
    assert_eq!(ours["contender"], "spindle");
    for group in [
        "views",
        "epochs",
        "control_pushes",
        "control_pushed_bytes",
        "packets",
        "packet_bytes",
        "rows",
        "subgroup_pushes",
        "subgroup_pushed_bytes",
        "close_s",
    ] {
        positive(&ours[group], "min");
    }
    // It is at work from the second stage on, in memory that both processes map.
    let (before, stages) = (
        &ours["stages"][0],
        ours["stages"].as_array().expect("stages"),
    );
    assert_eq!(stages.len(), 5, "{ours}");
    for stage in &stages[1..] {
        assert!(
            stage["threads"]["min"].as_f64() > before["threads"]["max"].as_f64(),
            "{stage}"
        );
        positive(&stage["shared_bytes"], "min");
        positive(&stage["added_bytes"], "min");
    }
    assert_eq!(outcome["matched_ratio"], Value::Null);
}

/// A participant has descriptors for its peers, and none for topics.
#[test]
fn descriptors_do_not_grow_with_topics() {
    let descriptors = |topics: &str| {
        let outcome = perf(&["scale", "--participants", "3", "--topics", topics]);
        let stages = outcome["contenders"][0]["stages"].as_array().cloned();
        let stages = stages.expect("stages");
        // The last stage is at rest.
        let held = stages.last().expect("a stage")["descriptors"].clone();
        (held["min"].as_f64(), held["max"].as_f64())
    };
    let few = descriptors("2");
    assert!(few.0 > Some(0.0) && few.0 == few.1, "{few:?}");
    assert_eq!(few, descriptors("20"));
}

#[test]
fn scale_with_one_that_joins_late() {
    let outcome = perf(&["scale", "--participants", "2", "--topics", "3", "--late"]);
    let ours = &outcome["contenders"][0];
    check_scale(ours);
    for figure in ["matched_s", "gap_before_s", "gap_s", "gap_ratio"] {
        positive(&ours["late"][figure], "min");
    }
}

/// The page has a plot for each figure over the participants, and over the topics.
#[test]
fn scale_from_one_upwards() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html");
    let path = page.to_str().expect("a path");
    let size = ["scale", "--participants", "2", "--topics", "2"];
    let outcome = perf(&[&size[..], &["--curve", "--report", path]].concat());
    let curve = outcome["curve"].as_array().expect("sizes").iter();
    let sizes = curve.map(|cell| (cell["participants"].as_u64(), cell["topics"].as_u64()));
    let expected = [(1, 2), (2, 1), (2, 2)].map(|(n, t)| (Some(n), Some(t)));
    assert_eq!(sizes.collect::<Vec<_>>(), expected, "{outcome}");
    let page = std::fs::read_to_string(page).expect("the page");
    assert_eq!(page.matches("<svg").count(), 10, "{page}");
    assert!(page.contains("perf scale --participants 2"), "{page}");
}
