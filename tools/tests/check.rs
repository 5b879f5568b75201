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

/// What a build.rs would have, with and without options of its own.
#[test]
fn idl_to_rust() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let builder = || {
        spindle_dds_idl::Builder::new()
            .include_dir(data.join("include"))
            .file(data.join("right.idl"))
    };
    let generate = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(["idl", "generate", "right.idl", "-I", "include"])
            .args(more)
            .current_dir(&data)
            .output()
            .expect("spindle starts")
    };
    let (expected, _) = builder().generate_string().expect("right.idl is right");
    let said = generate(&[]);
    assert!(said.status.success());
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected);

    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("radar.rs");
    let said = generate(&[
        "--no-serde",
        "--runtime-path",
        "crate::rt",
        "--extern-module",
        "units=::other::units",
        "-o",
        out.to_str().expect("a path of text"),
    ]);
    assert!(said.status.success() && said.stdout.is_empty());
    let builder = builder().serde(false).runtime_path("crate::rt");
    let builder = builder.extern_module("units", "::other::units");
    let (expected, _) = builder.generate_string().expect("right.idl is right");
    let written = std::fs::read_to_string(&out).expect("the file is there");
    assert_eq!(written, expected);

    let wrong = generate(&["--runtime-path", "not a path"]);
    assert!(!wrong.status.success() && wrong.stdout.is_empty());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("`not a path` is not a Rust path"));
}

#[test]
fn idl_as_understood() {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["idl", "print", "print.idl"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .output()
        .expect("spindle starts");
    assert!(output.status.success());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
}
