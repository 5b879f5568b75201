//! Who can be measured.

use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use super::cell::Cell;
use super::cyclone::Cyclone;
use super::options::BenchOptions;
use super::program::Program;
use super::spindle::Spindle;
use super::work::Work;

/// A middleware, or a limit.
pub(super) trait Contender {
    /// What it is called in tables and on the command line.
    fn name(&self) -> &'static str;

    /// How to install it, if it is not.
    fn missing(&self) -> Option<String>;

    /// Whether it can do what the cell asks for.
    fn takes_part(&self, cell: &Cell) -> bool;

    /// The processes of a trial, in the order in which they are started.
    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String>;

    /// What they have printed, each.
    fn figures(&self, cell: &Cell, said: &[String]) -> Result<Figures, String>;
}

/// How a trial is run.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// No other trial has it: letters and digits.
    pub(super) session: String,
    /// How long samples are sent.
    pub(super) seconds: f64,
    /// As many as were sent in this time before.
    pub(super) samples: Option<u64>,
    /// The pace, where latency is measured.
    pub(super) rate_hz: f64,
    /// When it is killed.
    pub(super) limit: Duration,
}

/// What came out of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    /// At the slowest reader.
    pub(super) samples_per_s: f64,
    /// All that readers got.
    pub(super) samples: u64,
    /// All that readers missed.
    pub(super) lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<Latency>,
}

/// A time from sending on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) kind: LatencyKind,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
}

/// To where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LatencyKind {
    /// To the reader, by the clock that both share.
    OneWay,
    /// To the reader and back, halved.
    HalfRoundTrip,
    /// To the reader and back.
    RoundTrip,
}

/// All, Spindle first.
pub(super) fn all(options: &BenchOptions) -> Vec<Box<dyn Contender>> {
    let wait = options.spindle_wait.clone();
    let mut all: Vec<Box<dyn Contender>> = vec![Box::new(Spindle { wait }), Box::new(Cyclone)];
    for program in Program::all(&options.programs) {
        all.push(Box::new(program));
    }
    all.push(Box::new(Work));
    all
}

/// What the others are compared with.
pub(super) const SPINDLE: &str = "spindle";
/// What a datagram holds, give or take a header.
pub(super) const DATAGRAM_BYTES: u64 = 65_000;
