//! The command line of `faults`.

use clap::Args;

use super::injector::Phase;
use super::script::{Over, Role};

/// The options of `processes faults`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// What carries the samples, or keeps them too.
    #[arg(long, value_enum, default_value_t = Over::Shm)]
    pub(super) fabric: Over,
    /// The participant whose calls fail [default: each].
    #[arg(long, value_enum)]
    pub(super) role: Option<Role>,
    /// When they fail [default: each phase].
    #[arg(long, value_enum)]
    pub(super) phase: Option<Phase>,
    /// The kind of call, for instance `openat` [default: each].
    #[arg(long)]
    pub(super) call: Option<String>,
    /// Thread and subject of the call, for instance 'spindle-control /proc/N/stat' [default: each].
    #[arg(long)]
    pub(super) place: Option<String>,
    /// The position of the call within the phase at its place, from 0 [default: each].
    #[arg(long)]
    pub(super) position: Option<usize>,
    /// The errno, for instance `ENOSPC` [default: each of the call].
    #[arg(long)]
    pub(super) errno: Option<String>,
    /// Only so many positions of each kind of call at each place in each phase.
    #[arg(long, value_name = "COUNT")]
    pub(super) first: Option<usize>,
    /// Only a fixed few: one for each way in which a failure is handled.
    #[arg(long)]
    pub(super) quick: bool,
    /// All calls of the kind fail for so many milliseconds, not only one.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(super) for_ms: u64,
    /// Only so many runs, drawn from all with this seed.
    #[arg(long, num_args = 2, value_names = ["COUNT", "SEED"])]
    pub(super) sample: Option<Vec<u64>>,
    /// Failures that are known, instead of those in `known.txt` when this was built.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) known: Option<std::path::PathBuf>,
    /// Runs at a time.
    #[arg(long, default_value_t = 4)]
    pub(super) jobs: usize,
    /// Print each run on standard error.
    #[arg(long)]
    pub(super) verbose: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

impl Options {
    /// Whether all runs of the fabric are made.
    pub(super) fn is_complete(&self) -> bool {
        self.role.is_none()
            && self.phase.is_none()
            && self.call.is_none()
            && self.place.is_none()
            && self.position.is_none()
            && self.errno.is_none()
            && self.first.is_none()
            && self.sample.is_none()
            && !self.quick
            && self.for_ms == 0
    }
}
