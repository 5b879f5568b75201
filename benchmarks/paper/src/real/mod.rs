//! The paper's experiments with real processes: 2 to 4 members on this machine, over shared
//! memory, by `spindle perf throughput`.
//!
//! ```text
//!   run        one run: a command of `spindle perf`
//!   outcome    its output, and the load of the machine; rounds, and their medians
//!   plan       the runs of a figure: panels, tables, and the paper's statements
//!   scale      numbers of members and messages
//!   figures    the plan of each figure
//!   lab        runs the plans, in turns
//! ```

mod figures;
mod lab;
mod outcome;
mod plan;
mod run;
mod scale;

pub(super) use figures::{SUBJECTS, plan};
/// The subcommand of `spindle` that runs a group of processes; this program has it too.
pub(super) const COMMAND: &str = "perf";
pub(super) use lab::Lab;
pub(super) use plan::Plan;
pub(super) use scale::Scale;
