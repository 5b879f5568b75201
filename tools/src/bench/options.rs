//! The command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

/// What `spindle bench` compares, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchOptions {
    /// Compare with the other middleware that is installed: what this command does, so the flag
    /// may be left out.
    #[arg(long)]
    peers: bool,
    /// Rounds that count; each contender runs once more before them, to warm up.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// Duration of each run in seconds.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub(super) seconds: f64,
    /// What to measure.
    #[arg(long, value_name = "MEASURE,...", value_enum, value_delimiter = ',',
          default_values_t = [Measure::Throughput, Measure::Latency])]
    pub(super) measure: Vec<Measure>,
    /// Bytes of payload in a sample. Sizes above a datagram are measured of Spindle, iceoryx2 and
    /// memcpy only.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',',
          default_values_t = [128, 1024, 10240, 1 << 20],
          value_parser = clap::value_parser!(u64).range(16..=1 << 26))]
    pub(super) sizes: Vec<u64>,
    /// Numbers of readers, each in its own process. Latency is measured with one reader.
    #[arg(long, value_name = "READERS,...", value_delimiter = ',', default_values_t = [1, 2, 4],
          value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(super) readers: Vec<u32>,
    /// Which bytes of a sample are written and read. Latency is measured with `touch`.
    #[arg(long, value_name = "READ,...", value_enum, value_delimiter = ',',
          default_values_t = [Read::Touch, Read::Sum])]
    pub(super) read: Vec<Read>,
    /// How readers wait. Polling and blocking readers are never compared with each other.
    #[arg(long, value_name = "WAIT,...", value_enum, value_delimiter = ',',
          default_values_t = [Wait::Poll, Wait::Block])]
    pub(super) wait: Vec<Wait>,
    /// Samples per second in measurements of latency.
    #[arg(long, default_value_t = 1000.0, value_parser = positive)]
    pub(super) rate: f64,
    /// `spindle.wait` of Spindle's participants. Spinning pays only with a processor for each of
    /// them. The latency of blocking readers is measured with `block`.
    #[arg(long, value_name = "WAIT", default_value = "balanced",
          value_parser = ["spin", "balanced", "block"])]
    pub(super) spindle_wait: String,
    /// Compare Spindle with these only.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Directory with the programs built by `benchmarks/competitors/build`.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "benchmarks/competitors/target/programs"
    )]
    pub(super) programs: PathBuf,
    /// Time limit of a run in seconds, after which it is killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(super) limit: u64,
    /// Print JSON lines instead of a table: one for each trial when it ends, and one for each row. If
    /// a round is run again, its last trials count.
    #[arg(long)]
    pub(super) json: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// Samples per second at the slowest reader.
    Throughput,
    /// From sending to reading, one way, with a writer that keeps a fixed rate.
    Latency,
    /// Round trip. Not measured of Spindle.
    RoundTrip,
}

/// Which bytes of a sample are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Read {
    /// The first and the last byte.
    Touch,
    /// All bytes: written, and summed.
    Sum,
}

/// How readers wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Wait {
    /// They poll.
    Poll,
    /// They sleep until woken.
    Block,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e6 => Ok(value),
        _ => Err("a number above 0 and at most 1000000".to_owned()),
    }
}
