//! What can be measured.

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
    /// Its name in tables and on the command line.
    fn name(&self) -> &'static str;

    /// How to install it, if it is not.
    fn missing(&self) -> Option<String>;

    /// Whether it can do what the cell asks for.
    fn takes_part(&self, cell: &Cell) -> bool;

    /// The processes of a trial, in the order in which they are started.
    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String>;

    /// The figures from the output of each process.
    fn figures(&self, cell: &Cell, said: &[String]) -> Result<Figures, String>;
}

/// How a trial is run.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Unique to the trial: letters and digits.
    pub(super) session: String,
    /// Time for which samples are sent.
    pub(super) seconds: f64,
    /// Samples that were sent in this time before.
    pub(super) samples: Option<u64>,
    /// Samples per second in measurements of latency.
    pub(super) rate_hz: f64,
    /// Time after which the trial is killed.
    pub(super) limit: Duration,
}

/// The figures of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    /// At the slowest reader.
    pub(super) samples_per_s: f64,
    /// Samples that the readers received together.
    pub(super) samples: u64,
    /// Samples that the readers missed together.
    pub(super) lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency: Option<Latency>,
}

/// A time since sending.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) kind: LatencyKind,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
}

/// The end point of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LatencyKind {
    /// To the reader, by the clock that both processes share.
    OneWay,
    /// Half the time to the reader and back.
    HalfRoundTrip,
    /// To the reader and back.
    RoundTrip,
}

/// All contenders, Spindle first.
pub(super) fn all(options: &BenchOptions) -> Vec<Box<dyn Contender>> {
    let wait = options.spindle_wait.clone();
    let mut all: Vec<Box<dyn Contender>> = vec![Box::new(Spindle { wait }), Box::new(Cyclone)];
    for program in Program::all(&options.programs) {
        all.push(Box::new(program));
    }
    all.push(Box::new(Work));
    all
}

/// The contender with which the others are compared.
pub(super) const SPINDLE: &str = "spindle";
/// Bytes of payload in a datagram, about.
pub(super) const DATAGRAM_BYTES: u64 = 65_000;
