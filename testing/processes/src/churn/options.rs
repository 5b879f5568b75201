//! The command line of `churn`.

use clap::Args;

use crate::hosts::FabricOptions;

/// The options of `processes churn`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(crate) fabric: FabricOptions,
    /// How long endpoints come and go, and how long they do not: half before, half after.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// Another run instead: endpoints and participants come and go until so many views have
    /// begun; it fails if a process holds more of the system afterwards.
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) views: Option<u64>,
    /// Leave a descriptor open in each round, to show that it is noticed.
    #[arg(long, hide = true, requires = "views")]
    pub(crate) forget: bool,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Samples a second of the topic that no change touches; with --views, of the one that the
    /// changes touch.
    #[arg(long, default_value_t = 10_000.0)]
    pub(crate) rate: f64,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 64)]
    pub(crate) size: usize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
