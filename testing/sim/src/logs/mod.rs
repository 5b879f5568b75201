//! Logs without the engine: the keepers of a topic in groups that are founded, joined, left and lost.
//!
//! The real keepers, logs and rosters, over disks in memory. Views are agreed by themselves, messages are
//! delivered in one order by themselves. So a life takes less than a millisecond, and what
//! only a strange order of crashes, views, announcements and words shows can be found.

mod participant;
mod plan;
mod reader;
mod show;
mod world;

pub use plan::{LogPlan, ShownAfter};

use crate::violation::Violation;

/// What a life of logs contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogReport {
    /// Times that a view was found to take samples.
    pub openings: usize,
    /// Samples written.
    pub written: usize,
    /// Samples acknowledged.
    pub acknowledged: usize,
    /// Samples that readers have shown.
    pub shown: usize,
    /// Bits that have changed on disks, and logs that were mended after that.
    pub flipped: (usize, usize),
}

/// Lives a life of logs. The second part is its trace, if that was asked for.
pub fn live_logs(plan: &LogPlan, is_traced: bool) -> (Result<LogReport, Violation>, Vec<String>) {
    let mut world = world::World::new(plan.clone(), is_traced);
    let result = world.live();
    let report = LogReport {
        openings: world.openings,
        written: world.written,
        acknowledged: world.acknowledged,
        shown: world.shown,
        flipped: world.flipped,
    };
    let result = result
        .map(|()| report)
        .map_err(|(property, what)| Violation {
            seed: plan.seed,
            property,
            what,
            turn: world.step,
        });
    (result, world.trace.unwrap_or_default())
}
