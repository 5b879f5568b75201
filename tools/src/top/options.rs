//! Options of `spindle top`.

use std::path::PathBuf;
use std::time::Duration;

/// The domain to monitor, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct TopOptions {
    /// The domain to monitor.
    #[arg(long, default_value_t = 0)]
    pub(super) domain: u32,
    /// Directory of the domains on this host, as `spindle.directory`.
    #[arg(long)]
    pub(super) directory: Option<PathBuf>,
    /// Seconds between snapshots.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub(super) interval: f64,
    /// Time for participants to answer, in milliseconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub(super) patience_ms: u64,
    /// Take two snapshots, show the rates between them, and end.
    #[arg(long)]
    pub(super) once: bool,
    /// Print a line of JSON for each snapshot instead of drawing.
    #[arg(long)]
    pub(super) json: bool,
}

impl TopOptions {
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval)
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience_ms)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0.01 to 3600".to_owned()),
    }
}
