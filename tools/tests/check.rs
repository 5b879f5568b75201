//! `spindle idl check` and `spindle qos check`.

use std::path::Path;
use std::process::Command;

/// Runs `spindle` beside the fixtures; its exit code and what it said.
fn spindle(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .output()
        .expect("spindle starts");
    let code = output.status.code().expect("it ends by itself");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.stdout.is_empty());
    format!("exit {code}\n{said}")
}

#[test]
fn idl_that_is_right() {
    insta::assert_snapshot!(spindle(&["idl", "check", "right.idl", "-I", "include"]));
}

#[test]
fn idl_that_is_wrong() {
    insta::assert_snapshot!(spindle(&["idl", "check", "wrong.idl"]));
}

#[test]
fn idl_by_macros() {
    insta::assert_snapshot!(spindle(&[
        "idl",
        "check",
        "-D",
        "WIDE",
        "-D",
        "SIZE=4",
        "macros.idl"
    ]));
}

#[test]
fn idl_that_is_not_there() {
    insta::assert_snapshot!(spindle(&["idl", "check", "nowhere.idl"]));
}

#[test]
fn qos_that_is_right() {
    insta::assert_snapshot!(spindle(&["qos", "check", "right.xml"]));
}

#[test]
fn qos_that_is_wrong() {
    insta::assert_snapshot!(spindle(&["qos", "check", "wrong.xml"]));
}

#[test]
fn qos_that_is_not_supported_yet() {
    insta::assert_snapshot!(spindle(&["qos", "check", "later.xml"]));
}

#[test]
fn qos_that_is_not_there() {
    insta::assert_snapshot!(spindle(&["qos", "check", "nowhere.xml"]));
}
