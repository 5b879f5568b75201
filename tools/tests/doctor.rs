//! `spindle doctor`, and what it leaves behind at those it calls: nothing.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use spindle_dds::DomainParticipant;

/// Its exit code, what it printed, and what it complained of.
fn doctor(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .arg("doctor")
        .args(arguments)
        .output()
        .expect("spindle starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("it ends by itself");
    (code, text(output.stdout), text(output.stderr))
}

/// Files with what is in them, but for sockets.
fn files(directory: &Path) -> Vec<(String, Option<String>)> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).ok();
            (path.display().to_string(), text)
        })
        .collect();
    files.sort();
    files
}

/// A place in the network that no other test has.
fn place() -> String {
    let [low, high, ..] = std::process::id().to_le_bytes();
    format!("127.210.{high}.{low}:7400")
}

/// A directory that is this user's alone.
fn private() -> tempfile::TempDir {
    let mode = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().permissions(mode).tempdir();
    made.expect("a directory")
}

struct Home {
    directory: tempfile::TempDir,
    secret: std::path::PathBuf,
    _other: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let (directory, other) = (private(), private());
        let secret = other.path().join("secret");
        write_secret(&secret, "open sesame");
        Self {
            directory,
            secret,
            _other: other,
        }
    }
}

fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn a_check_does_not_disturb_the_participant_that_it_calls() {
    let home = Home::new();
    let here = home.directory.path().to_str().expect("text");
    let secret = home.secret.to_str().expect("text");
    let contact = place();
    let participant = DomainParticipant::builder(3)
        .property("spindle.directory", here)
        .property("spindle.listen", &contact)
        .property("spindle.secret_file", secret)
        .create()
        .expect("a participant");
    let elsewhere = private();
    let elsewhere = elsewhere.path();
    let away = elsewhere.to_str().expect("text");
    let before = files(home.directory.path());

    let ask = |directory: &str, domain: &str, secret: &str| {
        let (code, out, err) = doctor(&[
            "--domain",
            domain,
            "--directory",
            directory,
            "--contacts",
            &contact,
            "--secret-file",
            secret,
            "--require",
            "contacts",
        ]);
        assert_eq!(err, "");
        (code, out)
    };
    let (code, said) = ask(here, "3", secret);
    assert!(
        said.contains("answers from this host, over shared memory"),
        "{said}"
    );
    assert!(said.contains("1 member in the record"), "{said}");
    assert_eq!(code, 0, "{said}");
    for _ in 0..3 {
        let (code, said) = ask(away, "3", secret);
        assert!(
            said.contains("answers from another host, over TCP"),
            "{said}"
        );
        assert_eq!(code, 0, "{said}");
    }
    let (code, said) = ask(away, "4", secret);
    assert!(said.contains("is of domain 4") && code == 1, "{said}");
    let wrong = elsewhere.with_file_name(format!("wrong-{}", std::process::id()));
    write_secret(&wrong, "open barley");
    let (code, said) = ask(away, "3", wrong.to_str().expect("text"));
    std::fs::remove_file(&wrong).expect("removed");
    assert!(said.contains("another secret") && code == 1, "{said}");

    // The record and the called participant have the same members as before.
    assert_eq!(files(home.directory.path()), before);
    assert_eq!(files(elsewhere), []);
    let others = participant.discovered_participants().expect("enabled");
    assert_eq!(others, []);
    // A new participant can still join.
    let late = DomainParticipant::builder(3)
        .property("spindle.directory", here)
        .property("spindle.listen", &contact)
        .property("spindle.secret_file", secret)
        .create()
        .expect("it gets in");
    let end = Instant::now() + Duration::from_secs(60);
    while participant
        .discovered_participants()
        .expect("enabled")
        .len()
        != 1
    {
        assert!(Instant::now() < end, "it is not seen");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(late);
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let home = tempfile::tempdir().expect("a directory");
    let nowhere = home.path().join("domains");
    let nowhere = nowhere.to_str().expect("text");
    let contact = place().replace("7400", "7401");
    let (code, said, _) = doctor(&["--directory", nowhere, "--contacts", &contact]);
    assert!(said.contains("the directory does not exist"), "{said}");
    assert!(said.contains("no program listens there"), "{said}");
    assert_eq!(code, 0, "{said}");
    assert_eq!(files(home.path()), []);
}

#[test]
fn a_directory_that_others_may_use_is_unfit() {
    let home = tempfile::tempdir().expect("a directory");
    let mode = Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), mode).expect("set");
    let (code, said, _) = doctor(&["--directory", home.path().to_str().expect("text")]);
    assert!(
        said.contains("ERROR") && said.contains("chmod 700"),
        "{said}"
    );
    assert_eq!(code, 1);
}

#[test]
fn json_says_the_same() {
    let (code, out, _) = doctor(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["fit"], serde_json::Value::Bool(code == 0));
    assert!(report["machine"]["rdma"]["devices"].is_array());
    assert_eq!(report["fabrics"][0]["fabric"], "shm");
}

#[test]
fn what_makes_no_sense_is_usage() {
    for arguments in [
        &["--contacts", "here"][..],
        &["--contacts", "a:0"],
        &["--require", "luck"],
        &["--require", "contacts"],
        &["--patience-ms", "0"],
    ] {
        let (code, out, err) = doctor(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(arguments[0]), "{err}");
    }
}
