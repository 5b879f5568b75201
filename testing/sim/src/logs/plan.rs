//! What a life of logs contains.

use spindle_dds_core::storage::Degree;
use spindle_dds_transport::sim::Rng;

/// When a reader shows a sample: `spindle.log.deliver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownAfter {
    /// When it is delivered.
    Delivery,
    /// When the log of its participant has it; any one, if that does not log.
    LocalLog,
    /// When all logs have it.
    AllLogs,
}

impl ShownAfter {
    pub(super) fn degree(self) -> Option<Degree> {
        match self {
            Self::Delivery => None,
            Self::LocalLog => Some(Degree::Local),
            Self::AllLogs => Some(Degree::All),
        }
    }
}

/// The plan of a life of logs. Chances are of each step.
#[derive(Debug, Clone)]
pub struct LogPlan {
    /// Seed of all that is drawn while it runs.
    pub seed: u64,
    /// Hosts with a log.
    pub logs: usize,
    /// Hosts without.
    pub writers: usize,
    /// Steps with faults.
    pub steps: usize,
    /// That a participant starts.
    pub starts: f64,
    /// Of those that start, that it is in the second group.
    pub apart: f64,
    /// That a participant crashes.
    pub crashes: f64,
    /// Of those that crash, that the whole group does.
    pub total: f64,
    /// That a view changes, if there is anything to change.
    pub views: f64,
    /// That a participant does something.
    pub works: f64,
    /// That a participant that works writes.
    pub writes: f64,
    /// That a disk becomes full, or gets room.
    pub full: f64,
    /// That a sync fails.
    pub failing: f64,
    /// Of the disks that have lost their power, that a bit changes on one.
    pub flips: f64,
    /// What readers show.
    pub shown: ShownAfter,
    /// A negative control: what readers have shown on delivery is to be known after a restart, too.
    pub judges_shown_on_delivery: bool,
    /// A negative control: what was sent in a generation is acknowledged by the words of a later one, too.
    pub acknowledges_in_any_generation: bool,
    /// A negative control: what was sent in an earlier view is acknowledged when a majority of the present
    /// loggers is ready, and not all are.
    pub acknowledges_by_majority_of_proposed: bool,
}

impl LogPlan {
    /// The plan of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x10_95);
        let chance = |rng: &mut Rng, max: f64| rng.below(1000) as f64 / 1000.0 * max;
        let has_faults = rng.chance(0.4);
        // Draws that were added later have a generator of their own, so that old seeds keep their lives.
        let mut more = Rng::new(seed ^ 0xf1_1b);
        let flips = if more.chance(0.4) { 0.3 } else { 0.0 };
        let all = [
            ShownAfter::Delivery,
            ShownAfter::LocalLog,
            ShownAfter::AllLogs,
        ];
        let shown = all[more.below(all.len())];
        Self {
            seed,
            logs: 1 + rng.below(5),
            writers: rng.below(2),
            steps: 30 + rng.below(220),
            starts: 0.05 + chance(&mut rng, 0.4),
            apart: if rng.chance(0.6) { 0.3 } else { 0.0 },
            crashes: chance(&mut rng, 0.15),
            total: chance(&mut rng, 0.3),
            views: 0.1 + chance(&mut rng, 0.6),
            works: 0.2 + chance(&mut rng, 0.7),
            writes: chance(&mut rng, 0.5),
            full: if has_faults { 0.02 } else { 0.0 },
            failing: if has_faults && rng.chance(0.5) {
                0.01
            } else {
                0.0
            },
            flips,
            shown,
            judges_shown_on_delivery: false,
            acknowledges_in_any_generation: false,
            acknowledges_by_majority_of_proposed: false,
        }
    }
}
