//! Lives of logs: what is acknowledged is recovered, whatever happens.

use spindle_dds_sim::{LogPlan, ShownAfter, live_logs};

fn first_violation(change: impl Fn(&mut LogPlan)) -> Option<&'static str> {
    (0..3_000).find_map(|seed| {
        let mut plan = LogPlan::draw(seed);
        change(&mut plan);
        let (result, _) = live_logs(&plan, false);
        result.err().map(|it| it.property)
    })
}

#[test]
fn what_is_acknowledged_is_recovered() {
    let (mut openings, mut acknowledged) = (0, 0);
    for seed in 0..300 {
        let (result, _) = live_logs(&LogPlan::draw(seed), false);
        let report = result.unwrap();
        openings += report.openings;
        acknowledged += report.acknowledged;
    }
    assert!(
        openings > 500 && acknowledged > 500,
        "{openings}, {acknowledged}"
    );
}

/// The logs that go on after an opening need not have what was sent before it.
#[test]
fn words_of_a_later_generation_acknowledge_nothing_of_an_earlier_one() {
    let found = first_violation(|plan| plan.acknowledges_in_any_generation = true);
    assert_eq!(found, Some("D1"));
}

/// What a reader shows on delivery, the logs of a later opening need not have.
#[test]
fn what_is_shown_on_delivery_may_be_unknown_later() {
    let found = first_violation(|plan| {
        plan.shown = ShownAfter::Delivery;
        plan.judges_shown_on_delivery = true;
    });
    assert_eq!(found, Some("D3"));
}

/// Another group had opened the logs in between, and logged other samples at the same positions: those of
/// the first one counted as logged.
#[test]
fn what_was_logged_elsewhere_is_not_what_was_delivered_here() {
    for seed in [2_995, 3_487, 3_985] {
        let (result, _) = live_logs(&LogPlan::draw(seed), false);
        result.unwrap();
    }
}

#[test]
fn one_seed_is_one_life() {
    let live = |seed| live_logs(&LogPlan::draw(seed), true);
    for seed in 0..20 {
        assert_eq!(live(seed), live(seed));
    }
}
