//! The paper's experiments with real processes: 2 to 4 members on this machine, over shared
//! memory, by `spindle perf throughput`.
//!
//! ```text
//!   run        one run: a command of `spindle perf`
//!   outcome    what it prints, and how busy the machine was; rounds of it, and their medians
//!   plan       a figure's runs: panels, tables, and what the paper says of them
//!   scale      how many members and messages
//!   figures    the plan of each
//!   lab        runs them, in turns
//! ```

mod figures;
mod lab;
mod outcome;
mod plan;
mod run;
mod scale;

pub(super) use figures::{SUBJECTS, plan};
/// The command of `spindle` that runs a group of processes; this program has it too.
pub(super) const COMMAND: &str = "perf";
pub(super) use lab::Lab;
pub(super) use plan::Plan;
pub(super) use scale::Scale;
