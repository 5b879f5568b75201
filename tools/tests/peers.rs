//! `spindle bench --peers` in short: without any peer, and with two limits, which need
//! nothing but a C compiler.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str], programs: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["bench", "--peers", "--rounds", "1", "--seconds", "0.1"])
        .args(["--limit", "300", "--programs"])
        .arg(programs)
        .args(arguments)
        // Whatever is installed is not found.
        .env("PATH", "")
        .output()
        .expect("spindle starts")
}

fn lines(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// `benchmarks/competitors/native/NAME.c`, compiled.
fn compile(name: &str, into: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../benchmarks/competitors/native")
        .join(name)
        .with_extension("c");
    let output = Command::new("cc")
        .args(["-O2", "-std=c11", "-o"])
        .arg(into.join(name))
        .arg(source)
        .output()
        .expect("the C compiler that Rust links with");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn spindle_runs_alone_where_nothing_else_is_installed() {
    let nothing = tempfile::tempdir().expect("a directory");
    let output = bench(
        &["--sizes", "128", "--readers", "1,2", "--json"],
        nothing.path(),
    );
    let lines = lines(&output);
    let absent = of_kind(&lines, "absent");
    assert!(absent.len() >= 7, "{absent:?}");
    for line in absent {
        let how = line["install"].as_str().expect("how to install it");
        assert!(
            how.contains("apt-get") || how.contains("benchmarks/competitors/build"),
            "{how}"
        );
    }
    let rows = of_kind(&lines, "row");
    // What bytes cost by themselves, where all are read, is a part of it.
    let (rows, work): (Vec<&Value>, Vec<&Value>) = rows
        .into_iter()
        .partition(|line| line["row"]["contender"] == "spindle");
    let all_bytes = rows.iter().filter(|line| line["cell"]["read"] == "sum");
    assert_eq!(work.len(), all_bytes.count());
    for line in work {
        assert_eq!(line["row"]["contender"], "work", "{line}");
        assert_eq!(line["cell"]["read"], "sum", "{line}");
        assert!(
            line["row"]["ratio"]["median"].as_f64() > Some(0.0),
            "{line}"
        );
    }
    // Two ways to wait; throughput of two ways to read by two numbers of readers; latency.
    assert_eq!(rows.len(), 2 * (2 * 2 + 1), "{rows:?}");
    for line in rows {
        assert!(
            line["row"]["value"]["median"].as_f64() > Some(0.0),
            "{line}"
        );
        assert_eq!(line["row"]["ratio"]["median"], 1.0, "{line}");
        assert_eq!(line["row"]["lost"], 0, "{line}");
    }
}

#[test]
fn beside_the_limits() {
    let programs = tempfile::tempdir().expect("a directory");
    compile("memory", programs.path());
    compile("udp", programs.path());
    let limits = ["--only", "memcpy,memcpy-twice,udp"];
    let cells = ["--sizes", "1024", "--readers", "1", "--read", "touch"];
    let output = bench(
        &[&limits[..], &cells, &["--json"]].concat(),
        programs.path(),
    );
    let lines = lines(&output);
    assert!(of_kind(&lines, "absent").is_empty(), "{lines:?}");
    let rows = of_kind(&lines, "row");
    let with = |measure: &str, wait: &str| -> Vec<&str> {
        let of_cell = rows
            .iter()
            .filter(|line| line["cell"]["measure"] == measure && line["cell"]["wait"] == wait);
        of_cell
            .map(|line| line["row"]["contender"].as_str().expect("a name"))
            .collect()
    };
    // Memory has nothing to sleep on.
    let polling = ["spindle", "memcpy", "memcpy-twice", "udp"];
    for measure in ["throughput", "latency"] {
        assert_eq!(with(measure, "poll"), polling);
        assert_eq!(with(measure, "block"), ["spindle", "udp"]);
    }
    for line in &rows {
        assert!(
            line["row"]["ratio"]["median"].as_f64() > Some(0.0),
            "{line}"
        );
        let foreign = line["row"]["foreign"]["median"].as_f64();
        assert!(foreign >= Some(0.0) && foreign <= Some(1.0), "{line}");
        // A processor alone, or a busy one, has none.
        let distance = line["row"]["line_ns"]["median"].as_f64();
        assert!(distance.is_none_or(|ns| ns > 0.0), "{line}");
    }
}

/// A peer that fails, or says what makes no sense, is told of; the rest goes on.
#[test]
fn a_failed_contender_does_not_stop_the_others() {
    let programs = tempfile::tempdir().expect("a directory");
    // Programs that exist everywhere: one fails, one ends at once and says nothing.
    for (name, program) in [("udp", "/bin/false"), ("fastdds", "/bin/true")] {
        std::os::unix::fs::symlink(program, programs.path().join(name)).expect("a link");
    }
    let cells = ["--sizes", "128", "--readers", "1", "--read", "touch"];
    let others = ["--measure", "throughput", "--wait", "block"];
    let only = ["--only", "udp,fastdds"];
    let output = bench(&[&cells[..], &others, &only].concat(), programs.path());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}");
    for expected in [
        "udp           exit status: 1",
        "0 readers have printed a line",
    ] {
        assert!(table.contains(expected), "{expected}: {table}");
    }
    let ours = table.lines().find(|line| line.contains("  spindle "));
    assert!(ours.is_some_and(|line| line.contains("1.00")), "{table}");
}

#[test]
fn an_unknown_name_is_refused() {
    let nothing = tempfile::tempdir().expect("a directory");
    let output = bench(&["--only", "zenoh"], nothing.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("--only zenoh: not one of spindle, cyclone"),
        "{said}"
    );
}
