//! The command line of `isolation`.

use clap::Args;

/// The options of `processes isolation`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Length of each of the seven phases.
    #[arg(long, default_value_t = 10.0)]
    pub(super) seconds: f64,
    /// Samples a second of the topics A and B, each.
    #[arg(long, default_value_t = 20_000.0)]
    pub(super) rate: f64,
    /// Send A as fast as there is room, instead of at the pace of B.
    #[arg(long)]
    pub(super) free: bool,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 64)]
    pub(super) size: usize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}
