//! `processes soak` in short.

#[path = "../../../examples/tests/started/mod.rs"]
mod started;

use serde_json::Value;
use started::Started;

#[test]
fn a_short_soak_run_shows_what_it_has_seen() {
    let directory = tempfile::tempdir().expect("a directory");
    let plot = directory.path().join("soak.svg");
    let arguments = [
        "soak --processes 5 --topics 3 --minutes 0.25 --fault-every 1 --stopped 4 --rest 2",
        "--seed 4 --json --plot",
    ];
    let arguments = arguments.iter().flat_map(|it| it.split(' '));
    let arguments = arguments.chain([plot.to_str().expect("UTF-8")]);
    let arguments: Vec<&str> = arguments.collect();
    let program = env!("CARGO_BIN_EXE_processes");
    let ended = Started::new(program, &arguments, directory.path()).end();
    assert!(ended.success, "{ended:?}");
    assert!(ended.stderr.contains("seed 4"), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap_or_default();
    let outcome: Value = serde_json::from_str(last).expect("JSON");
    let faults = outcome["faults"].as_object().expect("counts");
    assert!(faults.len() > 2, "{outcome}");
    let count = |name: &str| outcome[name].as_u64().expect("a count");
    // Each of five participants takes what is written.
    assert!(count("taken") > 2 * count("written"), "{outcome}");
    let plot = std::fs::read_to_string(&plot).expect("a plot");
    assert!(
        plot.starts_with("<svg") && plot.contains("<polyline"),
        "{plot}"
    );
}
