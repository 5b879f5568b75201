//! The command line of `logged`.

use clap::Args;

use crate::hosts::FabricOptions;

/// The options of `processes logged`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) fabric: FabricOptions,
    /// Hosts that are network namespaces, among which the participants are dealt out, and which reach each
    /// other by TCP. As root.
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["fabric", "hosts", "devices"],
          value_parser = clap::value_parser!(u32).range(2..=15))]
    pub(super) netns: Option<u32>,
    /// How often all participants are killed after something was acknowledged. In every eighth round or so
    /// they are killed before, too, which does not count.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) rounds: u32,
    /// Participants, each with a log, a writer and a reader.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(3..=15))]
    pub(super) participants: u32,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=65536))]
    pub(super) size: u32,
    /// Samples a second of each writer.
    #[arg(long, default_value_t = 500.0)]
    pub(super) rate: f64,
    /// Most milliseconds from the first acknowledgement of a round to the kill, which comes at a random
    /// moment.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) round_ms: u32,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(super) limit_ms: Option<u64>,
    /// Draws the moments.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    pub(super) json: bool,
}
