//! The engine under the simulator: seeds without a violation, planted bugs
//! found, the same seed the same run.

use std::thread;

use spindle_dds_core::{EngineConfig, PlantedBug, SubgroupId};
use spindle_dds_sim::{Blunder, GroupPlan, Plan, Violation, run};
use spindle_dds_transport::{Rank, sim};

/// Runs `seeds` seeds on two threads; the first violation, if any.
fn first_violation(seeds: u64, change: impl Fn(&mut Plan) + Sync) -> Option<Violation> {
    let half = |odd: u64| {
        (odd..seeds).step_by(2).find_map(|seed| {
            let mut plan = Plan::draw(seed);
            change(&mut plan);
            run(&plan).err()
        })
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        half(0).or_else(|| other.join().expect("the other half ran"))
    })
}

#[test]
fn a_thousand_seeds_without_a_violation() {
    assert_eq!(
        first_violation(1000, |_| {}).map(|violation| violation.to_string()),
        None
    );
}

/// Runs that once went wrong. Who was left of several senders, and did not read, published its last
/// messages, and was woken by nothing to say that it has received them. And who left told the layer
/// above nothing of what it had delivered last.
#[test]
fn what_went_wrong_once_does_not_again() {
    for seed in [1_782, 3_547] {
        run(&Plan::draw(seed)).unwrap_or_else(|violation| panic!("{violation}"));
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 17, 233] {
        let plan = Plan::draw(seed);
        assert_eq!(run(&plan), run(&plan));
    }
}

/// Every Spindle optimisation off but the null-sends, without which a silent
/// sender stops the others: the same order, only slower.
#[test]
fn the_baseline_keeps_the_same_promises() {
    let found = first_violation(100, |plan| {
        plan.config = EngineConfig {
            null_sends: true,
            ..EngineConfig::BASELINE
        };
    });
    assert_eq!(found.map(|violation| violation.to_string()), None);
}

fn must_be_found(what: &str, properties: &[&str], change: impl Fn(&mut Plan) + Sync) {
    let Some(violation) = first_violation(400, change) else {
        panic!("{what} was not found in 400 seeds");
    };
    println!("{what}: {violation}");
    assert!(
        properties.contains(&violation.property),
        "{what}: {violation}"
    );
}

#[test]
fn bugs_of_the_engine_are_found() {
    let corrupted = ["A1", "A2", "A3", "A6", "L2", "L7", "M3"];
    let stuck = ["L2", "L7", "I8"];
    // Nulls without end look like a guard that nobody can have reached.
    let endless = ["L2", "L7", "I8", "A6"];
    let unstable = ["A3", "A4", "A6"];
    for (bug, properties) in [
        (PlantedBug::GuardFirst, &corrupted[..]),
        (PlantedBug::NullsBeforeHeaders, &corrupted),
        (PlantedBug::MissingRelease, &stuck),
        (PlantedBug::ReleaseTooFar, &corrupted),
        (PlantedBug::DeliverUnstable, &unstable),
        (PlantedBug::ImpliesTooMuch, &unstable),
        (PlantedBug::SilentNotAwaited, &unstable),
        (PlantedBug::NullsTooFew, &stuck),
        (PlantedBug::NullsForEver, &endless),
        (PlantedBug::WildGuard, &["A6"]),
        (PlantedBug::LeaverNotForgotten, &stuck),
        (PlantedBug::RestsForEver, &stuck),
        (PlantedBug::NotStirred, &stuck),
    ] {
        must_be_found(&format!("{bug:?}"), properties, |plan| {
            plan.config.planted = Some(bug)
        });
    }
}

/// Where many hold what they read while they leave.
#[test]
fn leaving_with_loans_is_found() {
    must_be_found("LeavesHolding", &["M3"], |plan| {
        plan.config.planted = Some(PlantedBug::LeavesHolding);
        (plan.hold_chance, plan.hold_turns) = (0.5, 1000);
        plan.leavers = vec![Rank(0)];
    });
}

/// Where there are many lanes, in which little happens.
#[test]
fn sleeping_on_a_glance_is_found() {
    let many = |plan: &mut Plan| {
        let drawn = plan.groups.clone();
        let (groups, ids) = (drawn.into_iter().cycle(), (0..12).map(SubgroupId));
        plan.groups = groups
            .zip(ids)
            .map(|(group, subgroup)| GroupPlan { subgroup, ..group })
            .collect();
        let senders = plan.groups.iter_mut().flat_map(|group| &mut group.senders);
        for messages in senders.flat_map(|sender| &mut sender.messages) {
            *messages = (*messages).min(3);
        }
    };
    assert!(first_violation(200, many).is_none());
    must_be_found("SleepsOnAGlance", &["L2", "L7", "I8"], |plan| {
        many(plan);
        plan.config.planted = Some(PlantedBug::SleepsOnAGlance);
    });
}

/// Where lanes are replaced and members fail all the time.
fn often(plan: &mut Plan) {
    (plan.changes, plan.change_chance, plan.expel_chance) = (4, 0.02, 0.9);
}

#[test]
fn a_few_hundred_seeds_of_members_that_fail() {
    let found = first_violation(300, often);
    assert_eq!(found.map(|violation| violation.to_string()), None);
}

#[test]
fn bugs_of_the_end_of_a_lane_are_found() {
    for (bug, properties) in [
        (PlantedBug::CommitAfterWedge, &["A2", "A3", "A6", "L2"][..]),
        (PlantedBug::AckAfterFreeze, &["A3", "A6", "A4"]),
        (PlantedBug::StopsAtHole, &["A3", "A2", "L2"]),
        (PlantedBug::EndsUntold, &["L8"]),
    ] {
        must_be_found(&format!("{bug:?}"), properties, |plan| {
            often(plan);
            plan.config.planted = Some(bug);
        });
    }
    must_be_found("OwnTrim", &["A3"], |plan| {
        often(plan);
        plan.blunder = Some(Blunder::OwnTrim);
    });
}

#[test]
fn blunders_of_the_driver_are_found() {
    for blunder in [Blunder::NoSecondLook, Blunder::WantsTooLittle] {
        must_be_found(&format!("{blunder:?}"), &["L2", "L7"], |plan| {
            plan.blunder = Some(blunder)
        });
    }
}

/// What breaks the contract of the fabric breaks the promises of the engine:
/// the proof that the engine relies on the contract, and that the harness sees.
/// (Torn words need counters above 2^32: the conformance suite has them.)
#[test]
fn bugs_of_the_fabric_are_found() {
    let any = ["A1", "A2", "A3", "A4", "A5", "A6", "L2", "L7", "M3", "I8"];
    for bug in [
        sim::PlantedBug::LostPush,
        sim::PlantedBug::LateWord,
        sim::PlantedBug::MergedPush,
        sim::PlantedBug::Overtaking,
        sim::PlantedBug::StoresOutOfOrder,
        sim::PlantedBug::RingWithoutFence,
        sim::PlantedBug::SleepNotAnnounced,
        sim::PlantedBug::EpochNotAnswered,
    ] {
        must_be_found(&format!("{bug:?}"), &any, |plan| {
            plan.network = plan.network.clone().plant(bug);
        });
    }
}
