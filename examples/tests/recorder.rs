//! What `recorder` has said to be on disk is there after all processes were killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

mod started;

use started::Started;

const PROGRAM: &str = env!("CARGO_BIN_EXE_recorder");

fn write(directory: &Path, logs: &str) -> Child {
    Command::new(PROGRAM)
        .args(["write", logs])
        .env("SPINDLE_DDS_DIR", directory.join("domains"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

#[test]
fn what_is_on_disk_survives_all_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let logs = directory.path().join("logs").display().to_string();
    for round in ["first", "second"] {
        let mut writer = write(directory.path(), &logs);
        let mut input = writer.stdin.take().expect("piped");
        writeln!(input, "{round} life").expect("written");
        let output = BufReader::new(writer.stdout.take().expect("piped"));
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "  is on disk"));
        writer.kill().expect("killed");
        writer.wait().expect("it has ended");
    }
    let shown = Started::new(PROGRAM, &["show", &logs], directory.path()).end();
    assert!(shown.success, "{}", shown.stderr);
    let texts: Vec<&str> = shown
        .stdout
        .lines()
        .filter_map(|line| line.split(": ").nth(1))
        .collect();
    assert_eq!(texts, ["first life", "second life"], "{shown:?}");
}
