//! The command line of `soak`.

use std::path::PathBuf;

use clap::Args;

/// The options of `processes soak`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// How long faults are injected.
    #[arg(long, default_value_t = 30.0)]
    pub(super) minutes: f64,
    /// Participants that stay, each in a process of its own.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=64))]
    pub(super) processes: u32,
    /// Topics; each participant has a writer and a reader of each.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(super) topics: u32,
    /// Samples a second of each writer.
    #[arg(long, default_value_t = 5.0)]
    pub(super) rate: f64,
    /// Seconds from one fault to the next.
    #[arg(long, default_value_t = 5.0)]
    pub(super) fault_every: f64,
    /// How long a process is stopped (SIGSTOP), in seconds: longer than the heartbeat timeout.
    #[arg(long, default_value_t = 5.0)]
    pub(super) stopped: f64,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(super) limit_ms: Option<u64>,
    /// Seconds without a fault before the first one, and after the last one.
    #[arg(long, default_value_t = 20.0)]
    pub(super) rest: f64,
    /// Draws the faults [default: one that is drawn itself, and printed].
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Writes a plot of what the processes held of the system, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}
