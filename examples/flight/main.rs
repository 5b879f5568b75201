//! A recorded flight on three displays, each feed and each display in a process of its own.
//!
//! ```text
//!   feed 0 (even frames)      feed 1 (odd frames)     decode the recording, publish aircraft
//!             |                        |
//!             +-----------+------------+              atomic multicast: one order
//!             |           |            |
//!         display 0   display 1    display 2          digest the samples that they take
//! ```
//!
//! The launcher, which starts the other processes, compares the digests and prints one line of
//! JSON: `"identical":true` if all displays took the same samples in the same order.
#![forbid(unsafe_code)]

mod display;
mod feed;
mod recording;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use clap::Parser;
use serde_json::{Value, json};
use spindle_dds::DomainParticipant;

spindle_dds::include_idl!("flight");

const FEEDS: usize = 2;
const DISPLAYS: usize = 3;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A recorded flight on three displays.
#[derive(Parser)]
struct Options {
    /// How fast the recording is replayed: xN, as x100, or max.
    #[arg(long, default_value = "max", value_parser = parse_rate)]
    rate: f64,
    /// Be this feed, instead of the launcher.
    #[arg(long, hide = true)]
    feed: Option<usize>,
    /// Be a display, instead of the launcher.
    #[arg(long, hide = true)]
    display: bool,
}

/// As a multiple of the recorded rate.
fn parse_rate(text: &str) -> std::result::Result<f64, &'static str> {
    let times = match text {
        "max" => Some(f64::INFINITY),
        _ => text.strip_prefix('x').and_then(|it| it.parse().ok()),
    };
    let positive = times.filter(|times| *times > 0.0);
    positive.ok_or("a rate is max, or xN with N above 0")
}

fn main() -> Result<()> {
    let options = Options::parse();
    match (options.feed, options.display) {
        (Some(index), _) => feed::run(index, options.rate),
        (None, true) => display::run(),
        (None, false) => launch(),
    }
}

/// Runs all processes. Fails if the displays differ.
fn launch() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let start = |role: &str| -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).arg(role);
        // The participants of this run meet in a directory of their own.
        command.env("SPINDLE_DDS_DIR", directory.path().join("domains"));
        Ok(Process(command.stdout(Stdio::piped()).spawn()?))
    };
    let started = Instant::now();
    let feeds = (0..FEEDS).map(|index| start(&format!("--feed={index}")));
    let feeds = feeds.collect::<Result<Vec<_>>>()?;
    let displays = (0..DISPLAYS).map(|_| start("--display"));
    let displays = displays.collect::<Result<Vec<_>>>()?;

    let reports = |processes: Vec<Process>| processes.into_iter().map(Process::report);
    let fed = reports(feeds).collect::<Result<Vec<_>>>()?;
    let shown = reports(displays).collect::<Result<Vec<_>>>()?;
    let published: u64 = fed.iter().filter_map(Value::as_u64).sum();
    let mut identical = shown[0]["delivered"] == published;
    identical &= shown.iter().all(|display| *display == shown[0]);
    let all = |name| shown.iter().map(|it| it[name].clone()).collect::<Value>();
    let outcome = json!({
        "feeds": FEEDS,
        "displays": DISPLAYS,
        "published": published,
        "delivered": all("delivered"),
        "digest": all("digest"),
        "identical": identical,
        "switches": shown[0]["switches"],
        "seconds": started.elapsed().as_secs_f64(),
    });
    println!("{outcome}");
    Ok(identical.then_some(()).ok_or("the displays differ")?)
}

/// A process, which is killed if the launcher gives up.
struct Process(Child);

impl Process {
    /// Waits for its end, and reads the line of JSON that it has printed.
    fn report(mut self) -> Result<Value> {
        let mut line = String::new();
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_string(&mut line)?;
        }
        match self.0.wait()?.success() {
            true => Ok(serde_json::from_str(&line)?),
            false => Err("a feed or a display has failed".into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A participant with the QoS of `qos/flight.xml`.
fn create_participant() -> spindle_dds::Result<DomainParticipant> {
    DomainParticipant::builder(0)
        .qos_profiles_str(include_str!("../qos/flight.xml"))?
        .profile("Flight::Ordered")
        .create()
}
