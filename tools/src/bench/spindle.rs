//! Spindle, by `spindle perf`: in place, atomic level, prefaulted.

use std::process::Command;

use serde::Deserialize;

use super::cell::Cell;
use super::contender::{Contender, Figures, Latency, LatencyKind, SPINDLE, Setup};
use super::options::{Measure, Read, Wait};

/// Spindle, by this program.
pub(super) struct Spindle {
    /// `spindle.wait`, except for the latency of blocking readers.
    pub(super) wait: String,
}

impl Contender for Spindle {
    fn name(&self) -> &'static str {
        SPINDLE
    }

    fn missing(&self) -> Option<String> {
        None
    }

    fn takes_part(&self, cell: &Cell) -> bool {
        cell.measure != Measure::RoundTrip
    }

    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String> {
        let mut command = match cell.measure {
            Measure::Throughput => {
                let mut command = perf("throughput")?;
                command.args(["--samples", &samples(cell, setup)]);
                command
            }
            Measure::Latency | Measure::RoundTrip => {
                let samples = (setup.rate_hz * setup.seconds).max(10.0) as u64;
                let (samples, rate) = (samples.to_string(), setup.rate_hz.to_string());
                let mut command = perf("latency")?;
                command.args(["--samples", &samples, "--rate", &rate]);
                command
            }
        };
        command.arg("--json");
        add_sizes(&mut command, cell);
        command.args(["--timeout", &setup.limit.as_secs().to_string()]);
        if cell.wait == Wait::Poll {
            command.arg("--poll");
        }
        // The latency of a wake-up is measured with readers that always sleep.
        let sleeps = cell.wait == Wait::Block && cell.measure != Measure::Throughput;
        command.args(["--wait", if sleeps { "block" } else { &self.wait }]);
        // Page faults are not measured.
        command.arg("--prefault");
        if cell.read == Read::Sum {
            command.arg("--fill");
        }
        Ok(vec![command])
    }

    fn figures(&self, _: &Cell, said: &[String]) -> Result<Figures, String> {
        figures(said)
    }
}

/// `spindle perf` of this program.
pub(super) fn perf(what: &str) -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(["perf", what]);
    Ok(command)
}

/// Number of samples in a measurement of throughput.
pub(super) fn samples(cell: &Cell, setup: &Setup) -> String {
    let samples = setup.samples.unwrap_or_else(|| first_guess(cell));
    samples.clamp(SAMPLES_MIN, SAMPLES_MAX).to_string()
}

pub(super) fn add_sizes(command: &mut Command, cell: &Cell) {
    let (size, readers) = (cell.size.to_string(), cell.readers.to_string());
    command.args(["--size", &size, "--readers", &readers]);
}

/// The figures from its output.
pub(super) fn figures(said: &[String]) -> Result<Figures, String> {
    let said = said.first().map_or("", String::as_str);
    let outcome: Outcome = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let readers = outcome.per_reader.iter().map(|one| one.samples);
    Ok(Figures {
        samples_per_s: outcome
            .samples_per_s
            .unwrap_or_else(|| outcome.samples as f64 / outcome.seconds.max(1e-9)),
        samples: readers.reduce(|a, b| a + b).unwrap_or(outcome.samples),
        lost: outcome.lost,
        latency: outcome.uncorrected.map(|times| Latency {
            kind: LatencyKind::OneWay,
            p50_ns: times.p50,
            p99_ns: times.p99,
        }),
    })
}

/// The fields of the output of `spindle perf --json` that are used.
#[derive(Deserialize)]
struct Outcome {
    samples: u64,
    seconds: f64,
    samples_per_s: Option<f64>,
    lost: u64,
    #[serde(default)]
    per_reader: Vec<OfReader>,
    /// Times since sending, as of the other middleware.
    uncorrected: Option<Times>,
}

#[derive(Deserialize)]
struct OfReader {
    samples: u64,
}

#[derive(Deserialize)]
struct Times {
    p50: f64,
    p99: f64,
}

/// Number of samples in the first trial.
fn first_guess(cell: &Cell) -> u64 {
    match cell.read {
        Read::Touch => 20_000,
        Read::Sum => (GUESS_BYTES / cell.size).min(20_000),
    }
}

const GUESS_BYTES: u64 = 200 << 20;
const SAMPLES_MIN: u64 = 100;
const SAMPLES_MAX: u64 = 100_000_000;
