//! When a leader announces the next view: at once, or after a pause in which requests gather.

use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::Rng;

use super::world::{LIMIT, World, endpoint, member};
use crate::membership::row::Text;
use crate::membership::*;

/// Time between two steps.
const STEP: u64 = 10;
/// How long the members need to enter the view.
const TOOK: u64 = 200;

/// Three members that are about to begin a view, which the first one has announced.
fn entering() -> World {
    let members = (1..=3).map(|id| member(id, &mut Rng::new(0)));
    let mut world = World::of(members.collect());
    world.nodes[0].membership.pace = Pace::default().announced(3, 0, world.now);
    world
}

fn ask(world: &mut World, at: usize) {
    let node = &mut world.nodes[at];
    node.membership.request(Request::Update(Update {
        member: node.id,
        number: 1,
        put: vec![(9, endpoint(&mut Rng::new(1)))],
        remove: Vec::new(),
        notes: Notes::default(),
    }));
}

/// Steps members for this long. Returns when the leader has announced a view, if it has.
fn pass(world: &mut World, time: u64, stepped: &[usize]) -> Option<u64> {
    let until = world.now + time;
    while world.now < until {
        world.now += STEP;
        for &at in stepped {
            let node = &mut world.nodes[at];
            node.membership.step(world.now, &mut node.subgroups);
        }
        world.network.settle();
        if world.nodes[0].membership.rows.has(Rank(0), Text::Intent) {
            return Some(world.now);
        }
    }
    None
}

#[test]
fn a_view_is_announced_at_once_where_nothing_was_asked_when_the_last_one_was_entered() {
    let mut world = entering();
    pass(&mut world, TOOK, &[0, 1, 2]);
    ask(&mut world, 1);
    let asked_at = world.now;
    let announced_at = pass(&mut world, LIMIT, &[0, 1, 2]);
    assert!(announced_at.is_some_and(|at| at <= asked_at + 3 * STEP));
}

#[test]
fn requests_gather_for_as_long_as_the_last_view_took_where_some_were_there_already() {
    let mut world = entering();
    ask(&mut world, 1);
    assert_eq!(pass(&mut world, TOOK, &[0, 2]), None, "one has not begun");
    let entered_at = world.now;
    // Asked in the pause: it is in the same view.
    assert_eq!(pass(&mut world, TOOK / 2, &[0, 1, 2]), None);
    ask(&mut world, 2);
    let announced_at = pass(&mut world, LIMIT, &[0, 1, 2]).expect("a view");
    let paused = announced_at - entered_at;
    assert!((TOOK..TOOK + 10 * STEP).contains(&paused), "{paused}");
    let preparation = &world.nodes[0].membership.announced.as_ref();
    let proposal = &preparation.expect("a view").preparation.proposal;
    assert_eq!(proposal.updates.len(), 2);
}

#[test]
fn a_pause_is_a_part_of_the_heartbeat_timeout_at_most() {
    let mut world = entering();
    ask(&mut world, 1);
    assert_eq!(pass(&mut world, LIMIT, &[0, 2]), None);
    let entered_at = world.now;
    let announced_at = pass(&mut world, LIMIT, &[0, 1, 2]).expect("a view");
    assert!(announced_at - entered_at < LIMIT / 8 + 10 * STEP);
}
