//! The command line of `crowd`.

use clap::Args;

use crate::hosts::FabricOptions;

/// The options of `processes crowd`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(crate) fabric: FabricOptions,
    /// Participants, each in a process of its own.
    #[arg(long, default_value_t = 100, value_parser = count)]
    pub(crate) participants: usize,
    /// How many runs are made.
    #[arg(long, default_value_t = 1)]
    pub(crate) repeat: u32,
    /// Samples of each participant, all of which every participant takes.
    #[arg(long, default_value_t = 3)]
    pub(crate) samples: u64,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=250) => Ok(count),
        _ => Err("from 1 to 250".to_owned()),
    }
}
