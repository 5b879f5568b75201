//! The README's first command.

mod started;

use serde_json::{Value, json};
use started::Started;

#[test]
fn all_displays_take_the_same_samples_in_the_same_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_flight");
    let ended = Started::new(program, &["--rate", "max"], directory.path()).end();
    assert!(ended.success, "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    let outcome: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(outcome["identical"], true, "{outcome}");
    let published = outcome["published"].as_u64().expect("a count");
    assert!(published > 9_000, "{outcome}");
    assert_eq!(
        outcome["delivered"],
        json!([published, published, published])
    );
    let digests = outcome["digest"].as_array().expect("digests");
    assert!(digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0]));
    // The samples of the two feeds are interleaved.
    assert!(outcome["switches"].as_u64() > Some(10), "{outcome}");
}

#[test]
fn a_rate_without_a_number_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = env!("CARGO_BIN_EXE_flight");
    let ended = Started::new(program, &["--rate", "fast"], directory.path()).end();
    assert!(!ended.success && ended.stdout.is_empty(), "{ended:?}");
    assert!(ended.stderr.contains("a rate is max, or xN"), "{ended:?}");
}
