//! What the main changes of views look like, step by step; and failing lives made small.

use spindle_dds_sim::{Action, Blunder, LifePlan, Scenario, live, live_traced, shrink};

/// When the change begins.
const BEGINS: usize = 600;

/// What three members and what comes after them tell of a change, without the turns.
fn trace(deeds: &[Action]) -> String {
    let mut plan = LifePlan::quiet(5, 3, 6);
    plan.script = deeds.iter().map(|action| (BEGINS, *action)).collect();
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
fn the_main_changes_of_views_are_these() {
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
fn a_life_that_goes_wrong_is_made_smaller() {
    // A driver that sleeps through what it should wake for.
    let wrong = |seed| {
        let mut plan = Scenario::Short.draw(seed);
        plan.blunder = Some(Blunder::WantsTooLittle);
        live(&plan).err().map(|violation| (plan, violation))
    };
    let (plan, violation) = (0..1500).find_map(wrong).expect("a bug that is found");
    let (small, found) = shrink(&plan).expect("it goes wrong");
    assert_eq!(found.property, violation.property);
    assert_eq!(live(&small), Err(found));
    assert!(small.turns < plan.turns && small.members_max <= plan.members_max);
    println!("{small:#?}");
}
