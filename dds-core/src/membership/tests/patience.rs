//! How long members wait for each other: for answers to an intent, and for heartbeats; and which
//! steps they skip.

use std::collections::BTreeMap;

use spindle_dds_transport::Rank;
use spindle_dds_transport::sim::Rng;

use super::world::{LIMIT, World, endpoint, member};
use crate::membership::*;

/// Time between two steps of a member.
const STEP: u64 = 50;

fn world(members: u128) -> World {
    let members = (1..=members).map(|id| member(id, &mut Rng::new(0)));
    World::of(members.collect())
}

/// Three members, the first of which asks for an endpoint.
fn asking() -> World {
    let mut world = world(3);
    let first = &mut world.nodes[0];
    first.membership.request(Request::Update(Update {
        member: first.id,
        number: 1,
        put: vec![(9, endpoint(&mut Rng::new(1)))],
        remove: Vec::new(),
        notes: Notes::default(),
    }));
    world
}

/// Steps members for this long. `answering` are those whose drivers prepare views.
fn pass(world: &mut World, time: u64, stepped: &[usize], answering: &[usize]) {
    for _ in 0..time / STEP {
        world.now += STEP;
        for &at in stepped {
            let node = &mut world.nodes[at];
            let action = node.membership.step(world.now, &mut node.subgroups);
            if let Some(Action::Prepare(preparation)) = action
                && answering.contains(&at)
            {
                node.membership.prepared(preparation.number, Ok(()));
            }
        }
        world.network.settle();
    }
}

/// The members that the first one suspects, with the causes.
fn suspects(world: &World) -> BTreeMap<u16, &str> {
    let suspects = world.nodes[0].membership.suspects();
    suspects.map(|(Rank(rank), cause)| (rank, cause)).collect()
}

const NO_ANSWER: &str = "it did not prepare the next view in time";

#[test]
fn only_a_member_that_does_not_answer_in_time_is_suspected() {
    let mut world = asking();
    pass(&mut world, LIMIT - 10 * STEP, &[0, 1, 2], &[0, 1]);
    assert_eq!(suspects(&world), BTreeMap::new());
    pass(&mut world, 20 * STEP, &[0, 1, 2], &[0, 1]);
    assert_eq!(suspects(&world), BTreeMap::from([(2, NO_ANSWER)]));
}

/// What they still prepare would wait for that member.
#[test]
fn members_stop_preparing_once_another_one_lacks_something() {
    let mut world = asking();
    let (mut stopped, mut reasons) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        world.now += STEP;
        for (at, node) in world.nodes.iter_mut().enumerate() {
            match node.membership.step(world.now, &mut node.subgroups) {
                Some(Action::Prepare(preparation)) if at == 2 => {
                    let lack = Err("no memory".to_owned());
                    node.membership.prepared(preparation.number, lack);
                }
                Some(Action::StopPreparing { number: 1 }) => stopped.push(at),
                Some(Action::Refused(refused)) => {
                    reasons.extend(refused.into_iter().map(|(_, refusal)| refusal.reason));
                }
                _ => {}
            }
        }
        world.network.settle();
    }
    assert_eq!(
        (&stopped[..], &reasons[..]),
        (&[0, 1][..], &["no memory".to_owned()][..])
    );
    assert_eq!(suspects(&world), BTreeMap::new());
}

#[test]
fn a_leader_that_was_paused_waits_for_answers_anew() {
    let mut world = asking();
    pass(&mut world, LIMIT / 2, &[0, 1, 2], &[0, 1]);
    world.now += LIMIT;
    pass(&mut world, LIMIT - 10 * STEP, &[0, 1, 2], &[0, 1]);
    assert_eq!(suspects(&world), BTreeMap::new());
    pass(&mut world, 20 * STEP, &[0, 1, 2], &[0, 1]);
    assert_eq!(suspects(&world), BTreeMap::from([(2, NO_ANSWER)]));
}

#[test]
fn members_that_are_late_all_at_once_are_suspected_later_than_one() {
    const STOPPED: &str = "its heartbeat has stopped";
    let mut one_late = world(4);
    pass(&mut one_late, LIMIT, &[0, 1, 2, 3], &[]);
    pass(&mut one_late, 2 * LIMIT, &[0, 1, 2], &[]);
    assert_eq!(suspects(&one_late), BTreeMap::from([(3, STOPPED)]));

    let mut all_late = world(4);
    pass(&mut all_late, LIMIT, &[0, 1, 2, 3], &[]);
    pass(&mut all_late, 3 * LIMIT, &[0], &[]);
    assert_eq!(suspects(&all_late), BTreeMap::new());
    pass(&mut all_late, 2 * LIMIT, &[0], &[]);
    let all = BTreeMap::from([(1, STOPPED), (2, STOPPED), (3, STOPPED)]);
    assert_eq!(suspects(&all_late), all);
}

#[test]
fn seven_of_eight_steps_may_be_skipped_while_a_view_is_silent() {
    let mut world = world(2);
    pass(&mut world, 10 * STEP, &[0, 1], &[]);
    let membership = &mut world.nodes[0].membership;
    let skipped: Vec<bool> = (0..16).map(|_| membership.may_skip_step()).collect();
    let eight = [true, true, true, true, true, true, true, false];
    assert_eq!(skipped, [eight, eight].concat());
    // A step that is taken all the same begins the row anew.
    assert!((0..5).all(|_| membership.may_skip_step()));
    pass(&mut world, 11 * STEP, &[0, 1], &[]);
    let membership = &mut world.nodes[0].membership;
    let skipped: Vec<bool> = (0..8).map(|_| membership.may_skip_step()).collect();
    assert_eq!(skipped, eight);
    membership.request(Request::Leave);
    assert!(!membership.may_skip_step());
}
