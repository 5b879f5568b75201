//! The command line of `history`.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::hosts::FabricOptions;

/// The options of `processes history`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) fabric: FabricOptions,
    /// How long joiners come and go.
    #[arg(long, default_value_t = 10.0)]
    pub(super) seconds: f64,
    /// Samples a second of each writer while they do.
    #[arg(long, default_value_t = 500.0)]
    pub(super) rate: f64,
    /// MiB of payload that the writers have written together before.
    #[arg(long, value_name = "M", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(super) history_mib: u64,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(16..=65536))]
    pub(super) size: u32,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) writers: u32,
    /// Joiners that are there at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) joiners: u32,
    /// DURABILITY of all [default: transient-local; transient with --kill].
    #[arg(long, value_enum)]
    pub(super) durability: Option<Durability>,
    /// Kill a `donor` (SIGKILL), again and again, while a joiner gets history: a process that keeps
    /// the topic, and has joined before all others that are left. The joiner must have all history
    /// nevertheless, so this needs TRANSIENT.
    #[arg(long, value_enum, value_name = "VICTIM")]
    pub(super) kill: Option<Victim>,
    /// Processes that keep the topic beside the writers [default: 2 with --kill, else 0].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=16))]
    pub(super) keepers: Option<u32>,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(super) limit_ms: Option<u64>,
    /// Draws what happens to the joiners.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Print one JSON object instead of some lines.
    #[arg(long)]
    pub(super) json: bool,
}

/// DURABILITY of the writers and readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Durability {
    /// Each writer's participant keeps what it has written.
    TransientLocal,
    /// Each participant keeps what all have written.
    Transient,
}

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Victim {
    /// A process that keeps the topic.
    Donor,
}

impl Options {
    pub(super) fn durability(&self) -> Result<Durability, Failure> {
        match (self.durability, self.kill) {
            (Some(Durability::TransientLocal), Some(Victim::Donor)) => {
                let text = "--kill donor needs --durability transient: with transient-local the \
                            history of a writer ends with its process";
                Err(Failure::Run(text.to_owned()))
            }
            (Some(durability), _) => Ok(durability),
            (None, Some(Victim::Donor)) => Ok(Durability::Transient),
            (None, None) => Ok(Durability::TransientLocal),
        }
    }

    pub(super) fn keepers(&self) -> Result<u32, Failure> {
        match (self.keepers, self.kill) {
            (Some(0), Some(Victim::Donor)) => {
                let text = "--kill donor needs --keepers: there is none to be killed";
                Err(Failure::Run(text.to_owned()))
            }
            (Some(keepers), _) => Ok(keepers),
            (None, kill) => Ok(if kill.is_some() { 2 } else { 0 }),
        }
    }

    /// Samples that each writer has written before the joiners come.
    pub(super) fn history_samples(&self) -> u64 {
        let bytes_of_each = (self.history_mib << 20) / u64::from(self.writers);
        bytes_of_each.div_ceil(u64::from(self.size)).max(1)
    }
}
