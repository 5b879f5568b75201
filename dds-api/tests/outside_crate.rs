//! A user's crate: outside of this workspace, with two dependencies, an IDL
//! file and a build.rs, and nothing else. It must build, and talk to itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MANIFEST: &str = r#"
[package]
name = "outside"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
spindle-dds = { path = "ROOT/dds-api" }

[build-dependencies]
spindle-dds-idl = { path = "ROOT/idl" }
"#;

const BUILD: &str = r#"
fn main() -> Result<(), Box<dyn std::error::Error>> {
    spindle_dds_idl::Builder::new().file("outside.idl").generate()?;
    Ok(())
}
"#;

const IDL: &str = r#"
module outside {
    enum Colour { RED, GREEN, BLUE };
    struct Shape {
        @key string<128> name;
        Colour colour;
        double place[2];
        sequence<long, 10> history;
    };
};
"#;

const MAIN: &str = r#"
#![forbid(unsafe_code)]
#![deny(warnings)]

use spindle_dds::DomainParticipant;

spindle_dds::include_idl!("outside");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let participant = DomainParticipant::builder(0)
        .disabled()
        .create()?;
    let topic = participant.topic::<outside::Shape>("Shape").create()?;
    let reliable = spindle_dds::qos::DataReaderQos {
        reliability: spindle_dds::qos::Reliability::reliable(
            spindle_dds::qos::Duration::from_millis(100),
        ),
        history: spindle_dds::qos::History::keep_all(),
        ..Default::default()
    };
    let reader = participant.subscriber().create()?.reader(&topic).qos(reliable).create()?;
    let writer = participant.publisher().create()?.writer(&topic).create()?;
    participant.enable()?;
    let sent = outside::Shape {
        name: "circle".to_owned(),
        colour: outside::Colour::BLUE,
        place: [1.5, -2.5],
        history: vec![1, 2, 3],
    };
    writer.write(&sent)?;
    let received = loop {
        match reader.take(1) {
            Ok(samples) => {
                let first = samples.iter().next().ok_or("an empty take")?;
                break first.data()?;
            }
            Err(error) if error.return_code() == spindle_dds::ReturnCode::NoData => {
                std::thread::yield_now();
            }
            Err(error) => return Err(error.into()),
        }
    };
    assert_eq!(received, sent);
    participant.close()?;
    println!("received {received:?}");
    Ok(())
}
"#;

fn run(cargo: &mut Command) -> String {
    let output = cargo.output().expect("cargo runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[test]
fn a_crate_outside_builds_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the root");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        "Cargo.toml",
        &MANIFEST.replace("ROOT", &root.display().to_string()),
    );
    write("build.rs", BUILD);
    write("outside.idl", IDL);
    write("src/main.rs", MAIN);
    // The versions that are here already: this test needs no network.
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).expect("the lock file");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let output = run(Command::new(env!("CARGO"))
        .args(["run", "--offline", "--quiet"])
        .current_dir(folder.path())
        .env("CARGO_TARGET_DIR", target)
        .env("SPINDLE_DDS_DIR", folder.path().join("domains")));
    assert!(output.contains("circle"), "{output}");
}
