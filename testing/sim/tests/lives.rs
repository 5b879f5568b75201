//! Lives under the simulator: seeds without a violation, scripts, and a crash at every step of a
//! view change.

use std::thread;

use spindle_dds_sim::{Action, Blunder, LifePlan, Scenario, Violation, live};

/// Few, as each takes long: applications write much.
const BUSY_LIVES: u64 = 8;

/// Runs `plans` on two threads. Returns the first violation.
fn first_violation(plans: &[LifePlan]) -> Option<Violation> {
    let half = |first: usize| {
        let mut plans = plans.iter().skip(first).step_by(2);
        plans.find_map(|plan| live(plan).err())
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        half(0).or_else(|| other.join().expect("the other half has run"))
    })
}

fn drawn(seeds: u64, change: impl Fn(&mut LifePlan)) -> Vec<LifePlan> {
    drawn_from(Scenario::Any, seeds, change)
}

fn drawn_from(scenario: Scenario, seeds: u64, change: impl Fn(&mut LifePlan)) -> Vec<LifePlan> {
    let plan = |seed| {
        let mut plan = scenario.draw(seed);
        change(&mut plan);
        plan
    };
    (0..seeds).map(plan).collect()
}

fn assert_sound(plans: &[LifePlan]) {
    assert_eq!(
        first_violation(plans).map(|violation| violation.to_string()),
        None
    );
}

/// A number of lives that take seconds; all of them with `SPINDLE_EXHAUSTIVE`.
fn some_of(lives: u64) -> u64 {
    match std::env::var_os("SPINDLE_EXHAUSTIVE") {
        Some(_) => lives,
        None => lives / 6,
    }
}

#[test]
fn lives_have_no_violation() {
    assert_sound(&drawn(some_of(300), |_| {}));
}

/// A life as it was drawn by earlier versions, in which all members read, and claims were short
/// and of the committed length.
fn as_before(seed: u64) -> LifePlan {
    let mut plan = LifePlan::draw(seed);
    (plan.large, plan.partial, plan.mute) = (0.0, 0.0, 0.0);
    plan.durable = 0.0;
    plan.config.batched_upcalls = true;
    plan
}

/// Lives that violated a property once. All members leave at once, by two proposals that
/// make the same next view: the domain's record may take only one of them. And a member that
/// leaves takes over from a leader that left by the same view change, and learns of it when the
/// domain is two views further.
#[test]
fn past_violations_do_not_come_back() {
    let plans = [13_066, 13_695, 6_570].map(|seed| LifePlan {
        invalid_requests: 0.0,
        unready: 0.0,
        ack_waits: 0.0,
        slow: 0.0,
        cuts: 0.0,
        preempted: 0.0,
        ..as_before(seed)
    });
    assert_sound(&plans);
}

/// Room that came back while an epoch was wedged in vain was never reported (6868). And members
/// that wait for a majority, with their epochs wedged, are not quiescent, when all room must be
/// back: two members on two hosts that lose each other in the middle of their messages, of which
/// neither has a majority, both leave the group in the end.
#[test]
fn all_room_is_back_when_a_life_is_quiescent() {
    assert_sound(&[as_before(6868)]);
    let divided = (0..20).map(|seed| LifePlan {
        hosts: 2,
        divisions: 0.002,
        ..LifePlan::quiet(seed, 2, 60)
    });
    let both_left = divided.filter(|plan| {
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        (report.members, report.gone) == (2, 2)
    });
    let both_left = both_left.count();
    assert!(both_left > 3, "{both_left}");
}

/// A domain's record keeps the decisions of the previous group. A new group with the same steps
/// once took them for its own.
#[test]
fn a_group_does_not_take_decisions_of_the_previous_group() {
    let mut again: Vec<LifePlan> = (0..20).map(|seed| LifePlan::quiet(seed, 4, 2)).collect();
    for plan in &mut again {
        plan.script = [(600, 1), (900, 0), (1200, 3)]
            .map(|(turn, member)| (turn, Action::Leave(member)))
            .to_vec();
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        plan.previous = report.left;
    }
    assert_sound(&again);
}

/// Refusals do not delay other members' requests.
#[test]
fn requests_that_cannot_be_fulfilled_are_refused() {
    let plans = drawn(100, |plan| {
        (plan.invalid_requests, plan.updates, plan.joins) = (0.5, 0.02, 0.01);
    });
    let refused = plans.iter().filter(|plan| {
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        report.refused > 0
    });
    assert!(refused.count() > 50);
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in [3, 44, 178] {
        let plan = LifePlan::draw(seed);
        assert_eq!(live(&plan), live(&plan));
    }
}

/// All members' views have the same notes, whichever members fail and whichever rows are forged.
#[test]
fn notes_come_and_go_with_their_members() {
    // Many updates, for each of which members may lack something: where each preparation took its
    // whole time, they would take too long.
    let noting = |plan| LifePlan {
        notes: 0.7,
        updates: 0.02,
        slow: 0.0,
        ..plan
    };
    let mut plans: Vec<LifePlan> = (0..60).map(LifePlan::draw).map(noting).collect();
    plans.extend((0..20).map(|seed| noting(LifePlan::hostile(seed, 400))));
    assert_sound(&plans);
}

/// First turn of the view change in `quiet` lives.
const BEGINS: usize = 600;
/// Turn by which the view change has ended in nearly all of them.
const OVER: usize = 1400;

/// All causes of a view change, with 3 members and 2 messages each.
const CHANGES: [Action; 4] = [
    Action::Update(1),
    Action::Join,
    Action::Leave(1),
    Action::Crash(1),
];

/// A fault at every `stride`th turn of each view change: of the leader, the next leader, a
/// follower, the joining member.
fn everywhere(
    seed: u64,
    stride: usize,
    fault: impl Fn(&mut LifePlan, usize) -> Action,
) -> Vec<LifePlan> {
    let mut plans = Vec::new();
    for change in CHANGES {
        for victim in [0, 1, 2, 3] {
            let first = BEGINS + (seed as usize * 7 + victim) % stride;
            for turn in (first..OVER).step_by(stride) {
                let mut plan = LifePlan::quiet(seed, 3, 2);
                let fault = fault(&mut plan, victim);
                plan.script = vec![(BEGINS, change), (turn, fault)];
                plans.push(plan);
            }
        }
    }
    plans
}

#[test]
fn a_crash_at_any_step_of_a_view_change_harms_no_other_member() {
    let full = std::env::var_os("SPINDLE_EXHAUSTIVE").is_some();
    let (seeds, stride) = if full { (10, 1) } else { (4, 40) };
    for seed in 0..seeds {
        assert_sound(&everywhere(seed, stride, |_, victim| Action::Crash(victim)));
    }
}

/// A member that pauses for less than the heartbeat timeout is not suspected, at any turn, though
/// others wait in vain while they prepare a view.
fn pauses_everywhere(seed: u64, stride: usize) -> Vec<LifePlan> {
    everywhere(seed, stride, |plan, member| {
        plan.slow = 0.4;
        Action::Pause(member, plan.limit / 2)
    })
}

/// A joining member crashes at every `stride`th turn of its join, while another one joins: views
/// may still contain the first, and members learn of its crash at different turns.
fn joins_called_off_everywhere(seed: u64, stride: usize) -> Vec<LifePlan> {
    let mut plans = Vec::new();
    for (members, after) in [(1, 0), (2, 0), (2, 30), (2, 300)] {
        let first = BEGINS + seed as usize % stride;
        for turn in (first..OVER).step_by(stride) {
            let mut plan = LifePlan::quiet(seed, members, 2);
            plan.slow = 0.4;
            let crash = (turn, Action::Crash(members));
            let second = (turn + after, Action::Join);
            plan.script = vec![(BEGINS, Action::Join), crash, second];
            plans.push(plan);
        }
    }
    plans
}

#[test]
fn a_member_that_prepares_a_view_is_not_suspected() {
    let full = std::env::var_os("SPINDLE_EXHAUSTIVE").is_some();
    let (seeds, stride) = if full { (10, 1) } else { (4, 40) };
    for seed in 0..seeds {
        assert_sound(&pauses_everywhere(seed, stride));
        assert_sound(&joins_called_off_everywhere(seed, stride));
    }
}

/// All members pause and resume, in every order: one group goes on, or none.
#[test]
fn members_that_all_pause_and_resume_are_one_group_or_none() {
    let limit = LifePlan::draw(0).limit;
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    let mut plans = Vec::new();
    for seed in 0..5 {
        for order in orders {
            let mut plan = LifePlan::quiet(seed, 3, 20);
            plan.script = (0..)
                .zip(order)
                .map(|(at, member)| (BEGINS, Action::Pause(member, limit * 2 + at * limit / 2)))
                .collect();
            plans.push(plan);
        }
    }
    assert_sound(&plans);
}

/// A member pauses in the middle of its work, is expelled, resumes, and goes on writing.
#[test]
fn an_expelled_member_that_resumes_harms_no_other_member() {
    let limit = LifePlan::draw(0).limit;
    let mut plans = Vec::new();
    for seed in 0..40 {
        let mut plan = LifePlan::quiet(seed, 3, 60);
        let pause = limit + 100 * seed;
        plan.script = vec![(BEGINS, Action::Pause(seed as usize % 3, pause))];
        plans.push(plan);
    }
    assert_sound(&plans);
}

/// The leader crashes while two members join.
#[test]
fn the_leader_crashes_while_two_join() {
    let mut plans = Vec::new();
    for seed in 0..60 {
        let mut plan = LifePlan::quiet(seed, 3, 20);
        let when = BEGINS + 10 * seed as usize;
        plan.script = vec![
            (BEGINS, Action::Join),
            (BEGINS + 20, Action::Join),
            (when, Action::Crash(0)),
        ];
        plans.push(plan);
    }
    assert_sound(&plans);
}

/// A network partition where availability is preferred: both sides go on, and all properties hold
/// on each side.
#[test]
fn partitioned_hosts_go_on_apart_if_configured() {
    let plans = drawn(80, |plan| {
        (plan.hosts, plan.availability) = (2 + plan.seed as usize % 2, true);
        plan.divisions = 0.002;
        plan.members = plan.members.max(3);
    });
    let branches = plans.iter().map(|plan| {
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        report.branches
    });
    let branches = branches.sum::<u64>();
    assert!(branches > 15, "{branches}");
}

/// Two members of six are left, and each tells of the deaths on its own host. If they are on two
/// hosts, they know that all others are dead, and go on; on one host, they may be the minority.
#[test]
fn known_deaths_on_another_host_do_not_count_against_the_majority() {
    let mut went_on = 0;
    for seed in 0..40 {
        let mut plan = LifePlan::quiet(seed, 6, 2);
        plan.hosts = 2;
        plan.script = [2, 3, 4, 5]
            .map(|member| (BEGINS, Action::Crash(member)))
            .to_vec();
        let report = live(&plan).unwrap_or_else(|violation| panic!("{violation}"));
        went_on += usize::from(report.gone == 4);
    }
    // 19 with these seeds, and 5 if members knew only of the deaths on the leader's host.
    assert!(went_on > 10, "{went_on}");
}

/// Forged rows: no member fails by reading them, their member is expelled, and the others go on
/// and agree.
#[test]
fn hostile_rows_harm_no_other_member() {
    let (mut forged, mut expelled) = (0, 0);
    for seed in 0..40 {
        let plan = LifePlan::hostile(seed, 400);
        let report = live(&plan).unwrap_or_else(|violation| panic!("{violation}"));
        forged += report.forged;
        let found = |(cause, _): &(&String, &usize)| !cause.contains("process ended");
        expelled += report
            .expelled
            .iter()
            .filter(found)
            .map(|(_, times)| times)
            .sum::<usize>();
    }
    assert!(forged > 4_000 && expelled > 20, "{forged} {expelled}");
}

/// And they come in all phases of a change: were they likely in all at once, most would come in the
/// first, and few changes would reach the last.
#[test]
fn crashes_while_views_change_harm_no_other_member() {
    let mut crashes = [0; 6];
    for plan in drawn_from(Scenario::Crashes, some_of(360), |_| {}) {
        let report = live(&plan).unwrap_or_else(|violation| panic!("{violation}"));
        for (sum, count) in crashes.iter_mut().zip(report.crashes) {
            *sum += count;
        }
    }
    let all = crashes.iter().sum::<usize>();
    let is_reached = |count: &usize| count * 40 > all;
    assert!(all > 60 && crashes.iter().all(is_reached), "{crashes:?}");
}

#[test]
fn members_that_come_back_send_again_what_was_not_delivered() {
    let plans = drawn_from(Scenario::Returning, some_of(60), |_| {});
    assert_sound(&plans);
}

#[test]
fn readers_that_come_late_or_back_get_history() {
    let late = drawn_from(Scenario::Storage, some_of(120), |_| {});
    let back = drawn_from(Scenario::Returning, some_of(60), |plan| plan.durable = 0.8);
    let (mut historical, mut returned) = (0, 0);
    for plan in late.iter().chain(&back) {
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        historical += report.historical;
        returned += report.returned.0;
    }
    assert!(historical > 0 && returned > 0, "{historical} {returned}");
}

/// All are starved at once; those that are expelled come back.
#[test]
fn members_that_all_pause_and_come_back_are_one_group() {
    let mut back = 0;
    let plan = |seed: u64| {
        let mut plan = LifePlan::quiet(seed, 4, 20);
        (plan.returns, plan.members_max) = (1.0, 12);
        (plan.limit, plan.turns) = (1000, 12_000);
        let pause = |at: usize| (500, Action::Pause(at, plan.limit * (at as u64 + 1) / 2));
        plan.script = (0..4).map(pause).collect();
        plan
    };
    for seed in 0..some_of(60) {
        let report = live(&plan(seed)).unwrap_or_else(|violation| panic!("{violation}"));
        back += report.returned.0;
    }
    assert!(back > 0, "none was expelled");
}

#[test]
fn promises_to_busy_applications_are_kept() {
    let mut outcomes = [0; 3];
    for plan in drawn_from(Scenario::Busy, BUSY_LIVES, |_| {}) {
        let report = live(&plan).unwrap_or_else(|violation| panic!("{violation}"));
        for (sum, count) in outcomes.iter_mut().zip(report.outcomes) {
            *sum += count;
        }
    }
    let [acknowledged, refused, unknown] = outcomes;
    assert!(
        acknowledged > 300 && refused > 40 && unknown > 20,
        "{outcomes:?}"
    );
}

/// Newcomers come at a pace, and each of them is let in or refused in the end, also where it waits
/// behind others that are refused.
#[test]
fn a_crowd_of_newcomers_is_let_in_at_a_pace() {
    let plans = drawn_from(Scenario::Crowd, some_of(180), |_| {});
    assert_sound(&plans);
    let refused = |plan: &mut LifePlan| {
        (plan.crashes, plan.pauses, plan.cuts) = (0.0, 0.0, 0.0);
        (plan.invalid_requests, plan.leaves) = (0.7, 0.0);
        // No other request has the leader look again at those that wait.
        plan.updates = 0.0;
    };
    let plans = drawn_from(Scenario::Crowd, some_of(72), refused);
    let crowded = plans.iter().filter(|plan| {
        let report = live(plan).unwrap_or_else(|violation| panic!("{violation}"));
        report.refused > 8
    });
    assert!(crowded.count() > plans.len() / 4);
}

#[track_caller]
fn must_be_found(what: &str, properties: &[&str], plans: &[LifePlan]) {
    let Some(violation) = first_violation(plans) else {
        panic!("{what} was not found");
    };
    println!("{what}: {violation}");
    assert!(properties.contains(&violation.property), "{violation}");
}

/// A driver that goes to sleep too early, or asks for too few wakes, misses messages, or its
/// member is suspected.
#[test]
fn blunders_of_the_driver_are_found() {
    for blunder in [Blunder::NoSecondLook, Blunder::WantsTooLittle] {
        let plans = drawn_from(Scenario::Short, 400, |plan| plan.blunder = Some(blunder));
        must_be_found(&format!("{blunder:?}"), &["L2", "V10"], &plans);
    }
}

#[test]
fn no_subgroup_starves_among_many() {
    let found = first_violation(&drawn_from(Scenario::ManySubgroups, 60, |_| {}));
    assert_eq!(found.map(|violation| violation.to_string()), None);
}

/// A keeper is asked late for what it had let go of before it left the subgroup and came back to it.
#[test]
fn a_keeper_that_came_back_to_a_subgroup_knows_nothing_of_earlier_transfers() {
    let mut plan = Scenario::Returning.draw(27);
    plan.durable = 0.8;
    assert_sound(&[plan]);
}
