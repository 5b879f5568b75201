//! The command line of `closing`.

use clap::Args;

use crate::hosts::FabricOptions;

/// The options of `processes closing`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(crate) fabric: FabricOptions,
    /// Participants, each in a process of its own; the last one closes.
    #[arg(long, default_value_t = 4, value_parser = count)]
    pub(crate) participants: usize,
    /// Topics of which each participant has a writer and a reader.
    #[arg(long, default_value_t = 1000)]
    pub(crate) topics: u32,
    /// How long samples are exchanged before one participant closes, and after.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Samples a second of each participant that stays.
    #[arg(long, default_value_t = 2000.0)]
    pub(crate) rate: f64,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 2..=100) => Ok(count),
        _ => Err("from 2 to 100".to_owned()),
    }
}
