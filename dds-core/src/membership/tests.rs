//! The view protocol alone, over the simulated network: random crashes, pauses, joins, leaves and
//! updates; subgroups are counters.

mod faults;
mod patience;
mod pauses;
mod requests;
mod subgroups;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::Rng;

use super::*;
use world::{Check, World, endpoint, member};

/// Makes a world from a seed.
type Make = fn(u64) -> World;

fn check(make: Make, seed: u64) -> Check {
    let result = make(seed).run();
    result.map_err(|what| format!("seed {seed}: {what}"))
}

/// Runs this many worlds, or `MEMBERSHIP_SEEDS` of them.
fn check_many(make: Make, seeds: u64) {
    let seeds = std::env::var("MEMBERSHIP_SEEDS").map_or(seeds, |end| end.parse().unwrap());
    (0..seeds).for_each(|seed| check(make, seed).unwrap());
}

#[test]
fn views_are_agreed_whatever_happens() {
    check_many(World::new, 60);
}

#[test]
fn views_are_agreed_while_leaders_are_replaced() {
    check_many(World::contested, 60);
}

/// Three to five members, some on one host, and the network divides: a strict majority goes on, the
/// rest stops.
#[test]
fn a_divided_network_has_at_most_one_group() {
    let mut went_on = 0;
    for seed in 0..60 {
        let mut world = World::divided(seed, false);
        let members = world.nodes.len();
        let apart = world.apart_then.len();
        world.run().unwrap();
        let up: BTreeSet<_> = (0..members).filter(|&at| world.is_up(at)).collect();
        let majority = (members - apart).max(apart);
        if majority * 2 > members {
            assert_eq!(up.len(), majority, "seed {seed}: {}", world.describe());
            went_on += 1;
        } else {
            assert!(up.is_empty(), "seed {seed}: {}", world.describe());
        }
    }
    assert!(went_on > 20);
}

/// The same with availability preferred: both sides go on.
#[test]
fn a_divided_network_has_two_groups_if_that_is_preferred() {
    for seed in 0..60 {
        let mut world = World::divided(seed, true);
        world.run().unwrap();
        let up = (0..world.nodes.len()).all(|at| world.is_up(at));
        assert!(up, "seed {seed}: {}", world.describe());
        let view = |node: &world::Node| node.membership.view().clone();
        let views: Vec<_> = world.nodes.iter().map(view).collect();
        for (node, view) in world.nodes.iter().zip(&views) {
            let apart = |id: &MemberId| world.apart.contains(id);
            let side = world.nodes.iter().map(|node| node.id);
            let side: Vec<_> = side.filter(|id| apart(id) == apart(&node.id)).collect();
            let there: Vec<_> = view.members.iter().map(|it| it.id).collect();
            assert_eq!(there, side, "seed {seed}");
        }
    }
}

/// A member with an incomplete report is suspected by the leader, not the leader by others.
#[test]
fn a_report_that_leaves_out_a_subgroup_violates_the_protocol() {
    let mut rng = Rng::new(0);
    let mut members: Vec<Member> = (11..13).map(|id| member(id, &mut rng)).collect();
    members[0].endpoints = Default::default();
    let sender = (0, endpoint(&mut Rng::new(3)));
    members[1].endpoints = BTreeMap::from([sender]).into();
    let mut world = World::of(members);
    world.nodes[1].subgroups.omits_report = true;
    world.nodes[1].membership.request(Request::Leave);
    for _ in 0..500 {
        world.now += 1;
        world.network.step();
        let now = world.now;
        for node in &mut world.nodes {
            let action = node.membership.step(now, &mut node.subgroups);
            if let Some(Action::Prepare(preparation)) = action {
                node.membership.prepared(preparation.number, Ok(()));
            }
        }
    }
    let suspects = |at: usize| {
        let suspects = world.nodes[at].membership.suspects();
        let text = |(rank, cause): (Rank, &str)| (rank, cause.to_owned());
        suspects.map(text).collect::<Vec<_>>()
    };
    let named = (Rank(1), "its report violates the protocol".to_owned());
    assert_eq!(suspects(0), [named]);
    assert_eq!(suspects(1), []);
}

/// What one member lacks may be why others do not reach it, which these see later.
#[test]
fn a_request_is_refused_with_the_reason_that_was_told_first() {
    let mut rng = Rng::new(0);
    let members = (11..14).map(|id| member(id, &mut rng)).collect();
    let mut world = World::of(members);
    let newcomer = Request::Join(member(20, &mut rng));
    world.nodes[1].membership.request(newcomer.clone());
    let mut prepares_at = [None; 3];
    let mut refused = Vec::new();
    for _ in 0..500 {
        world.now += 1;
        world.network.step();
        let now = world.now;
        for (at, node) in world.nodes.iter_mut().enumerate() {
            match node.membership.step(now, &mut node.subgroups) {
                Some(Action::Prepare(it)) => prepares_at[at] = Some((now, it.number)),
                Some(Action::Refused(them)) => refused.extend(them),
                _ => {}
            }
            let (after, answer) = match at {
                0 => (100, Err("it is not reached".to_owned())),
                1 => (50, Ok(())),
                _ => (0, Err("it has no memory".to_owned())),
            };
            if let Some((since, number)) = prepares_at[at]
                && now >= since + after
            {
                node.membership.prepared(number, answer);
                prepares_at[at] = None;
            }
        }
    }
    let [(request, refusal)] = &refused[..] else {
        panic!("one refusal, not {refused:?}");
    };
    assert_eq!(*request, newcomer);
    assert_eq!(refusal.reason, "it has no memory");
}
