//! The programs that teach one thing each, and what they print.

mod started;

use started::Started;

/// What a program prints.
fn run(program: &str) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let ended = Started::new(program, &[], directory.path()).end();
    assert!(ended.success, "{ended:?}");
    assert_eq!(ended.stderr, "");
    ended.stdout
}

#[test]
fn keyed() {
    let expected = "\
track 1: 2000 ft
track 1: 3000 ft
track 1: NotAliveDisposed
track 2: 22000 ft
track 2: 23000 ft
track 2: NotAliveNoWriters
track 3: 42000 ft
track 3: 43000 ft
";
    assert_eq!(run(env!("CARGO_BIN_EXE_keyed")), expected);
}

#[test]
fn waitset() {
    let stdout = run(env!("CARGO_BIN_EXE_waitset"));
    let of_samples = stdout.lines().filter(|line| line.starts_with("reading"));
    let expected = ["reading 1: 20.5", "reading 2: 21", "reading 3: 21.5"];
    assert_eq!(of_samples.collect::<Vec<_>>(), expected, "{stdout}");
    assert!(stdout.contains("matched with"), "{stdout}");
    assert_eq!(stdout.lines().last(), Some("asked to stop"), "{stdout}");
}

#[test]
fn loans() {
    let expected = "\
while image 1 is held, there is room for 3
image 1 is as it was: 1
there is room again once it is given back
";
    assert_eq!(run(env!("CARGO_BIN_EXE_loans")), expected);
}

#[test]
fn async_reader() {
    let stdout = run(env!("CARGO_BIN_EXE_async_reader"));
    let messages = stdout.lines().filter(|line| line.starts_with("message"));
    let expected = (1..=5).map(|number| format!("message {number}: hello, {number}"));
    assert!(messages.eq(expected), "{stdout}");
    for line in ["matched\n", "acknowledged\n"] {
        assert!(stdout.contains(line), "{line} {stdout}");
    }
}
