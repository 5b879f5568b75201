//! Makes a life that violates a property smaller, as long as it violates the same property.

use super::plan::LifePlan;
use super::world::live;
use crate::violation::Violation;

/// Seeds that are tried with each smaller plan.
const TRIES: u64 = 6;

/// Makes a plan that violates a property smaller: fewer members, messages, turns and kinds of
/// faults. Returns the smallest that still violates it, with the violation; `None` if the plan
/// violates nothing.
pub fn shrink(plan: &LifePlan) -> Option<(LifePlan, Violation)> {
    let mut violation = live(plan).err()?;
    let mut plan = plan.clone();
    while let Some((smaller, found)) = smaller(&plan, &violation) {
        (plan, violation) = (smaller, found);
    }
    Some((plan, violation))
}

fn smaller(plan: &LifePlan, violation: &Violation) -> Option<(LifePlan, Violation)> {
    let candidates = candidates(plan, violation).into_iter();
    let mut tried = candidates.flat_map(|candidate| {
        (0..TRIES).map(move |more| LifePlan {
            seed: candidate.seed.wrapping_add(more),
            ..candidate.clone()
        })
    });
    tried.find_map(|candidate| {
        let found = live(&candidate).err()?;
        (found.property == violation.property).then_some((candidate, found))
    })
}

/// Smaller plans, the smallest first.
fn candidates(plan: &LifePlan, violation: &Violation) -> Vec<LifePlan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut LifePlan)| {
        let mut candidate = plan.clone();
        change(&mut candidate);
        if weight(&candidate) < weight(plan) {
            all.push(candidate);
        }
    };
    with(&|it| it.turns = it.turns.min(violation.turn + 1));
    with(&|it| it.hosts = 1);
    with(&|it| it.divisions = 0.0);
    with(&|it| it.pauses = 0.0);
    with(&|it| it.crashes = 0.0);
    with(&|it| it.leaves = 0.0);
    with(&|it| it.joins = 0.0);
    with(&|it| it.updates = 0.0);
    with(&|it| it.invalid_requests = 0.0);
    with(&|it| it.unready = 0.0);
    with(&|it| it.ack_waits = 0.0);
    with(&|it| it.slow = 0.0);
    with(&|it| it.lacking = 0.0);
    with(&|it| it.lacking_always = 0.0);
    with(&|it| it.hold_chance = 0.0);
    with(&|it| it.durable = 0.0);
    with(&|it| it.subgroups = 1);
    with(&|it| it.messages /= 2);
    with(&|it| it.hostile /= 2);
    with(&|it| it.members_max = it.members_max.saturating_sub(1).max(it.members));
    with(&|it| it.members = (it.members - 1).max(1));
    with(&|it| it.turns = it.turns * 3 / 4);
    all
}

/// Size of a plan.
fn weight(plan: &LifePlan) -> usize {
    let chances = [
        plan.divisions,
        plan.pauses,
        plan.crashes,
        plan.leaves,
        plan.joins,
        plan.updates,
        plan.invalid_requests,
        plan.unready,
        plan.ack_waits,
        plan.slow,
        plan.hold_chance,
        plan.durable,
    ];
    let harms = chances.iter().filter(|chance| **chance > 0.0).count();
    let sizes = plan.members + plan.members_max + plan.messages + plan.hosts + plan.subgroups;
    harms * 10_000 + sizes * 100 + plan.turns + plan.hostile
}
