//! Traces of the main view changes; and shrinking of failing lives.

use spindle_dds_sim::{Action, Blunder, LifePlan, Scenario, live, live_traced, shrink};

/// First turn of the view change.
const BEGINS: usize = 600;

/// The trace of a view change of three members, without the turns.
fn trace(actions: &[Action]) -> String {
    let mut plan = LifePlan::quiet(5, 3, 6);
    plan.script = actions.iter().map(|action| (BEGINS, *action)).collect();
    let (report, trace) = live_traced(&plan);
    report.unwrap_or_else(|violation| panic!("{violation}"));
    let change = trace.iter().filter(|line| line.turn >= BEGINS);
    let lines = change.map(|line| {
        let (member, view, what) = (line.member, line.view, &line.what);
        format!("{member} in {view}: {what}\n")
    });
    lines.collect()
}

#[test]
fn the_main_view_changes_have_these_traces() {
    insta::assert_snapshot!("an_update", trace(&[Action::Update(1)]));
    insta::assert_snapshot!("a_join", trace(&[Action::Join]));
    insta::assert_snapshot!("a_leave", trace(&[Action::Leave(1)]));
    insta::assert_snapshot!("the_leader_leaves", trace(&[Action::Leave(0)]));
    insta::assert_snapshot!("a_follower_dies", trace(&[Action::Crash(2)]));
    insta::assert_snapshot!("the_leader_dies", trace(&[Action::Crash(0)]));
    let both = [Action::Crash(0), Action::Join];
    insta::assert_snapshot!("the_leader_dies_while_one_joins", trace(&both));
}

#[test]
fn a_failing_life_is_shrunk() {
    // A driver that asks for too few wakes.
    let fails = |seed| {
        let mut plan = Scenario::Short.draw(seed);
        plan.blunder = Some(Blunder::WantsTooLittle);
        live(&plan).err().map(|violation| (plan, violation))
    };
    let (plan, violation) = (0..1500).find_map(fails).expect("a violation is found");
    let (small, found) = shrink(&plan).expect("it fails");
    assert_eq!(found.property, violation.property);
    assert_eq!(live(&small), Err(found));
    assert!(small.turns < plan.turns && small.members_max <= plan.members_max);
    println!("{small:#?}");
}
