//! `processes flight` in short: without faults, with each fault, and with bad options.

#[path = "../../../examples/tests/started/mod.rs"]
mod started;

use serde_json::Value;
use started::{Ended, Started};

fn flight(arguments: &[&str]) -> Ended {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_processes");
    let arguments = [&["flight"], arguments].concat();
    Started::new(program, &arguments, directory.path()).end()
}

/// The last line of output.
fn outcome(ended: &Ended) -> Value {
    let last = ended.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn all_displays_agree() {
    let ended = flight(&["--frames", "4000", "--rate", "max"]);
    assert!(ended.success, "{ended:?}");
    let outcome = outcome(&ended);
    assert_eq!(outcome["identical"], true, "{outcome}");
    assert_eq!(outcome["fifo_identical"], true, "{outcome}");
    assert_eq!(outcome["lost"], 0, "{outcome}");
    let published = outcome["published"].as_u64().expect("a count");
    assert!(published > 3000, "{outcome}");
    assert_eq!(
        outcome["delivered"],
        serde_json::json!([published, published, published])
    );
    let digests = outcome["digest"].as_array().expect("digests");
    assert!(digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0]));
    assert!(
        outcome["switches"].as_u64() > Some(published / 100),
        "{outcome}"
    );
    // The table has an aircraft of the first minutes of the recording.
    assert!(ended.stdout.contains("AFR76LT"), "{ended:?}");
}

/// The hosts are two addresses of this one.
#[test]
fn displays_on_two_hosts_agree() {
    let hosts = ["--hosts", "127.0.0.1,127.0.0.2"];
    let ended = flight(&[&hosts[..], &["--frames", "2000", "--rate", "max"]].concat());
    assert!(ended.success, "{ended:?}");
    let outcome = outcome(&ended);
    assert_eq!(outcome["identical"], true, "{outcome}");
    let feeds = outcome["peers"].as_array().expect("the peers of each feed");
    let peers = || feeds.iter().flat_map(|it| it.as_array()).flatten();
    assert!(peers().any(|peer| peer["way"] == "shm"), "{outcome}");
    assert!(peers().any(|peer| peer["way"] != "shm"), "{outcome}");
    let one = flight(&[&hosts[..], &["--devices", "a"]].concat());
    assert!(one.stderr.contains("1 devices for 2 hosts"), "{one:?}");
}

#[test]
fn repeated_runs_with_other_numbers_of_processes_agree() {
    let ended = flight(&[
        "--frames",
        "1000",
        "--rate",
        "max",
        "--feeds",
        "3",
        "--displays",
        "1",
        "--repeat",
        "2",
    ]);
    assert!(ended.success, "{ended:?}");
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[..2]
            .iter()
            .all(|run| run["feeds"] == 3 && run["displays"] == 1)
    );
    assert_eq!(lines[2]["runs"], 2);
    assert_eq!(lines[2]["identical"], 2);
}

#[test]
fn the_rate_of_the_recording_is_kept() {
    let started = std::time::Instant::now();
    // The first 400 frames were received within some twenty seconds.
    let ended = flight(&["--frames", "400", "--rate", "x20"]);
    assert!(ended.success, "{ended:?}");
    assert!(started.elapsed() > std::time::Duration::from_millis(500));
}

#[test]
fn best_effort_keeps_the_order_of_each_feed() {
    let ended = flight(&[
        "--frames",
        "4000",
        "--rate",
        "max",
        "--profile",
        "Flight::BestEffort",
    ]);
    assert!(ended.success, "{ended:?}");
    let outcome = outcome(&ended);
    let counted = outcome["lost"].as_u64().is_some_and(|lost| lost > 0);
    assert!(outcome["fifo_identical"] == true || counted, "{outcome}");
}

/// Fails with one line of error output that contains these texts, and prints nothing else.
fn check_refused(arguments: &[&str], texts: &[&str]) {
    let ended = flight(arguments);
    assert!(!ended.success, "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for text in texts {
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
}

#[test]
fn a_missing_recording_is_refused() {
    let texts = ["nowhere.csv.gz", "No such file"];
    check_refused(&["--recording", "nowhere.csv.gz"], &texts);
}

#[test]
fn a_malformed_recording_is_refused() {
    let texts = ["flight.xml", "line 1"];
    let xml = concat!(env!("CARGO_MANIFEST_DIR"), "/qos/flight.xml");
    check_refused(&["--recording", xml], &texts);
}

#[test]
fn a_broken_qos_file_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let broken = directory.path().join("broken.xml");
    std::fs::write(
        &broken,
        "<dds>\n  <qos_library name=\"L\">\n    <qos_profil/>\n",
    )
    .expect("it can be written");
    let broken = broken.to_str().expect("text");
    let ended = flight(&["--frames", "10", "--rate", "max", "--qos", broken]);
    assert!(!ended.success, "{ended:?}");
    assert!(ended.stderr.contains("broken.xml:3:"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn an_unknown_profile_is_refused() {
    check_refused(
        &[
            "--frames",
            "10",
            "--rate",
            "max",
            "--profile",
            "Flight::Atomc",
        ],
        &["Flight::Atomc", "Flight::Atomic"],
    );
}

/// The outcome of a run with a fault, of which everything held.
fn run_with_fault(arguments: &[&str]) -> Value {
    let ended = flight(&[&["--rate", "max", "--at", "3000"], arguments].concat());
    assert!(ended.success, "{ended:?}");
    let outcome = outcome(&ended);
    for name in ["held", "identical", "exactly_once"] {
        assert_eq!(outcome[name], true, "{name}: {outcome}");
    }
    let number = |name: &str| outcome[name].as_u64().expect("a number");
    assert!(number("at_sample") >= 3000, "{outcome}");
    assert!(number("view") > number("view_before"), "{outcome}");
    let outages = outcome["outage_ms"].as_array().expect("outages");
    assert!(
        outages.iter().all(|outage| outage.as_f64() > Some(0.0)),
        "{outcome}"
    );
    outcome
}

fn delivered(outcome: &Value) -> Vec<u64> {
    let counts = outcome["delivered"].as_array().expect("counts");
    counts.iter().filter_map(Value::as_u64).collect()
}

#[test]
fn displays_agree_on_the_last_sample_of_a_killed_feed() {
    let outcome = run_with_fault(&["--kill", "feed:1"]);
    let (at, published) = (&outcome["at_sample"], &outcome["published"]);
    let all = at.as_u64().expect("a count") + published.as_u64().expect("a count");
    assert_eq!(delivered(&outcome), [all, all, all]);
}

#[test]
fn displays_go_on_without_a_killed_display() {
    let outcome = run_with_fault(&["--kill", "display"]);
    let published = outcome["published"].as_u64().expect("a count");
    let counts = delivered(&outcome);
    assert_eq!(counts[1..], [published, published]);
    assert!(counts[0] < published, "{outcome}");
}

#[test]
fn a_display_that_joins_has_what_the_others_have() {
    let profile = ["--profile", "Flight::Volatile"];
    let outcome = run_with_fault(&[&["--join", "display"], &profile[..]].concat());
    let (counts, at) = (delivered(&outcome), outcome["at_sample"].as_u64());
    assert_eq!(counts[..3], [counts[0]; 3]);
    assert!(counts[3] > 0 && counts[3] < counts[0], "{outcome}");
    assert!(
        at.is_some_and(|at| at + counts[3] <= counts[0]),
        "{outcome}"
    );
}

#[test]
fn a_display_that_joins_has_all_that_the_feeds_keep() {
    let profile = ["--profile", "Flight::TransientLocal"];
    let outcome = run_with_fault(&[&["--join", "display"], &profile[..]].concat());
    let counts = delivered(&outcome);
    assert_eq!(counts, [counts[0]; 4], "{outcome}");
    assert_eq!(outcome["kept"], "all", "{outcome}");
}

fn a_display_joins_with(profile: &str) {
    let outcome = run_with_fault(&["--join", "display", "--profile", profile]);
    let counts = delivered(&outcome);
    assert_eq!(counts[..3], [counts[0]; 3]);
    assert!(counts[3] > 0 && counts[3] < counts[0], "{outcome}");
    assert_eq!(outcome["kept"]["last"]["depth"], 1, "{outcome}");
}

#[test]
fn a_display_that_joins_has_the_whole_table() {
    a_display_joins_with("Flight::Transient");
}

#[test]
fn a_display_that_joins_has_the_whole_table_of_logs() {
    a_display_joins_with("Flight::Persistent");
}

#[test]
fn a_stopped_display_comes_back_and_has_the_whole_table_of_logs() {
    let stop = ["--stop", "display", "--limit-ms", "300"];
    let profile = ["--profile", "Flight::Persistent"];
    let outcome = run_with_fault(&[&stop[..], &profile].concat());
    assert_eq!(outcome["missed"], 0, "{outcome}");
}

#[test]
fn a_stopped_display_comes_back_and_has_missed_nothing() {
    let stop = ["--stop", "display:2", "--limit-ms", "300"];
    let profile = ["--profile", "Flight::TransientLocal"];
    let outcome = run_with_fault(&[&stop[..], &profile].concat());
    let counts = delivered(&outcome);
    assert_eq!(counts, [counts[0]; 3], "{outcome}");
    assert_eq!(outcome["missed"], 0, "{outcome}");
}

#[test]
fn a_stopped_display_comes_back_and_has_the_whole_table() {
    let stop = ["--stop", "display", "--limit-ms", "300"];
    let profile = ["--profile", "Flight::Transient"];
    let outcome = run_with_fault(&[&stop[..], &profile].concat());
    assert_eq!(outcome["missed"], 0, "{outcome}");
}

#[test]
fn a_stopped_display_comes_back_and_has_the_common_order() {
    let outcome = run_with_fault(&["--stop", "display:2", "--limit-ms", "300"]);
    let counts = delivered(&outcome);
    assert_eq!(counts[0], counts[1]);
    let missed = outcome["missed"].as_u64().expect("a count");
    // Alerts that were the last ones of a feed are not known to be lost.
    assert!(missed > 0 && counts[2] + missed <= counts[0], "{outcome}");
}

#[test]
fn a_stopped_feed_comes_back_and_loses_nothing() {
    let limit = ["--limit-ms", "300", "--stopped-ms", "1000"];
    let outcome = run_with_fault(&[&["--stop", "feed:1"], &limit[..]].concat());
    let published = outcome["published"].as_u64().expect("a count");
    assert_eq!(delivered(&outcome), [published; 3], "{outcome}");
}

#[test]
fn a_stopped_process_comes_back_over_tcp() {
    let hosts = ["--hosts", "127.0.0.1,127.0.0.2", "--limit-ms", "300"];
    for victim in ["display", "feed"] {
        run_with_fault(&[&["--stop", victim], &hosts[..]].concat());
    }
}

#[test]
fn faults_that_leave_too_few_processes_are_refused() {
    for (arguments, text) in [
        (["--kill", "feed", "--feeds", "1"], "none is left"),
        (["--stop", "display:3", "--displays", "3"], "no number 3"),
        (["--stop", "feed", "--feeds", "1"], "none is left"),
    ] {
        check_refused(&arguments, &[text]);
    }
}

#[test]
fn a_fault_with_a_best_effort_profile_is_refused() {
    let arguments = ["--rate", "max", "--at", "1000", "--join", "display"];
    let best_effort = ["--profile", "Flight::BestEffort"];
    check_refused(&[&arguments[..], &best_effort].concat(), &["RELIABLE"]);
}
