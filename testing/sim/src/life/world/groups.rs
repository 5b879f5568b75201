//! A life of one group; with logs, of several, one after the other.

use spindle_dds_transport::sim::Rng;

use super::{LifeReport, World};
use crate::life::logged::{LoggedPlan, Logs};
use crate::life::plan::LifePlan;
use crate::life::trace::Line;
use crate::violation::Violation;

/// Runs a life to its end.
pub fn live(plan: &LifePlan) -> Result<LifeReport, Violation> {
    live_groups(plan, None).0
}

/// Runs a life to its end, with a trace.
pub fn live_traced(plan: &LifePlan) -> (Result<LifeReport, Violation>, Vec<Line>) {
    live_groups(plan, Some(Vec::new()))
}

fn live_groups(
    plan: &LifePlan,
    mut trace: Option<Vec<Line>>,
) -> (Result<LifeReport, Violation>, Vec<Line>) {
    let mut rng = Rng::new(plan.seed ^ 0xb1ac_0075);
    let last = plan.logged.map_or(0, |it| it.blackouts);
    let mut logs = plan
        .logged
        .map(|it| Logs::new(plan.seed, &it, plan.subgroups));
    let mut previous = plan.previous.clone();
    let mut number = 0;
    loop {
        let group = LifePlan {
            seed: plan.seed ^ (number as u64) << 44,
            previous,
            logged: plan.logged.map(|it| LoggedPlan {
                blackout: (number < last).then(|| 1 + rng.below(plan.turns)),
                ..it
            }),
            ..plan.clone()
        };
        let mut world = World::new(&group, logs.take());
        world.trace = trace.take();
        let result = world.live();
        trace = world.trace.take();
        logs = world.logs.take();
        let result = result.map_err(|violation| Violation {
            seed: plan.seed,
            ..violation
        });
        match result {
            Ok(report) if number < last => {
                previous = report.left;
                number += 1;
            }
            result => return (result, trace.unwrap_or_default()),
        }
        if let Some(logs) = &mut logs {
            logs.black_out();
        }
    }
}

impl World<'_> {
    /// Whether all members lose their power now.
    pub(super) fn has_blackout(&self) -> bool {
        let blackout = self.plan.logged.and_then(|it| it.blackout);
        blackout.is_some_and(|turn| turn == self.turn)
    }
}
