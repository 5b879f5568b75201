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

/// What creating an entity refuses, checking a file does too: with the place and the nearest name.
/// Errors do not hide what is not supported.
#[test]
fn qos_with_properties_that_are_wrong() {
    insta::assert_snapshot!(spindle(&["qos", "check", "properties.xml"]));
}

#[test]
fn qos_that_is_not_supported_yet_is_an_error_if_asked_for() {
    insta::assert_snapshot!(spindle(&["qos", "check", "--strict", "later.xml"]));
    assert_eq!(
        spindle(&["qos", "check", "--strict", "right.xml"]),
        "exit 0\n"
    );
}

/// Without files, those that a participant would read.
#[test]
fn qos_of_default_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let check = |variables: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(["qos", "check"])
            .current_dir(folder.path())
            .env_remove("SPINDLE_QOS_PROFILES")
            .env_remove("NDDS_QOS_PROFILES")
            .envs(variables.iter().copied())
            .output()
            .expect("spindle starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(
        check(&[]),
        "no file is named, and there are no default files\n"
    );
    let text = std::fs::read_to_string(data.join("later.xml")).expect("it is there");
    std::fs::write(folder.path().join("USER_QOS_PROFILES.xml"), &text).expect("written");
    let said = "USER_QOS_PROFILES.xml:5:9: warning: LIFESPAN is not supported yet: \
                duration 1s\n";
    assert_eq!(check(&[]), said);
    let other = text.replace("Radar", "Other");
    std::fs::write(folder.path().join("other.xml"), other).expect("written");
    let other = said.replace("USER_QOS_PROFILES", "other");
    let theirs = ("NDDS_QOS_PROFILES", "other.xml");
    assert_eq!(check(&[theirs]), format!("{said}{other}"));
    assert_eq!(check(&[theirs, ("SPINDLE_QOS_PROFILES", "")]), said);
}

#[test]
fn qos_explained() {
    let explain = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(["qos", "explain", "explained.xml"])
            .args(arguments)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
            .output()
            .expect("spindle starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code().expect("it ends by itself");
        format!(
            "exit {code}\n{said}{}",
            String::from_utf8_lossy(&output.stdout)
        )
    };
    insta::assert_snapshot!(explain(&["Radar::Plots", "--topic", "Plot1"]));
    // Of other topics, the filter's line and those below it have no effect.
    let other = explain(&["Radar::Plots"]);
    assert!(other.contains("for others say --topic: Plot*"), "{other}");
    assert!(!other.contains("explained.xml:18"), "{other}");
    let alone = explain(&["Radar::Alone"]);
    assert!(alone.starts_with("exit 0\ndatareader_qos\n"), "{alone}");
    assert!(alone.contains("de ad"), "{alone}");
    assert_eq!(
        explain(&["Radar::Plot"]),
        "exit 1\nno QoS profile is named 'Radar::Plot'; did you mean 'Radar::Plots'?\n"
    );
}

#[test]
fn participants_of_files() {
    insta::assert_snapshot!(spindle(&["qos", "check", "participants_wrong.xml"]));
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["qos", "explain", "participants_right.xml", "Parts::Gauge"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
        .output()
        .expect("spindle starts");
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout));
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
