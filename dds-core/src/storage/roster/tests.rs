//! The rules of this module in random lives of groups, with keepers that are no more than their rules.

mod keeper;
mod rules;
mod world;

use rules::Rules;
use world::World;

/// Lives that are tried, or `ROSTER_SEEDS` of them.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let text = std::env::var("ROSTER_SEEDS").ok();
    let range = text.and_then(|it| {
        let (from, to) = it.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    range.unwrap_or(0..count)
}

fn found(rules: Rules, seeds: std::ops::Range<u64>) -> Option<(u64, String)> {
    for seed in seeds {
        if let Err(what) = World::new(seed, rules, false).live() {
            return Some((seed, what));
        }
    }
    None
}

#[test]
fn what_is_acknowledged_is_in_every_group_that_opens() {
    let (mut acknowledged, mut openings) = (0, 0);
    for seed in seeds(20_000) {
        let mut world = World::new(seed, Rules::ALL, false);
        if let Err(what) = world.live() {
            panic!("seed {seed}: {what}");
        }
        acknowledged += world.acknowledged;
        openings += world.openings;
    }
    assert!(acknowledged > 1000 && openings > 1000, "{acknowledged} {openings}");
}
