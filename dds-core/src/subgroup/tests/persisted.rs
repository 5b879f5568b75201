//! What members have persisted: told, noted, and worth waking up for.

use spindle_dds_transport::WakeReason;

use super::waking::Sleepers;
use super::*;

fn logged(members: u16) -> SubgroupSpec {
    SubgroupSpec {
        is_logged: true,
        ..spec(members)
    }
}

fn handle(node: &Node) -> Arc<SubgroupHandle<SimFabric>> {
    node.handle().subgroup(SUBGROUP).expect("a subgroup")
}

/// What a member has seen of all.
fn seen(node: &Node) -> Vec<u64> {
    let handle = handle(node);
    let places = (0..handle.fabric().members() as u16).map(Rank);
    places.map(|place| handle.persisted(place)).collect()
}

/// How often the sink of each member was told of a rise since the last call.
fn told(world: &World) -> Vec<u64> {
    let nodes = world.nodes.iter();
    nodes
        .map(|node| log(node, |log| std::mem::take(&mut log.persisted)))
        .collect()
}

fn all(world: &World) -> Vec<usize> {
    (0..world.nodes.len()).collect()
}

/// Steps until the subgroup is idle everywhere.
fn rest(world: &World) {
    for _ in 0..3 {
        world.run(&all(world));
    }
    let is_idle = |node: &Node| handle(node).idle_flag.lasts();
    assert!(world.nodes.iter().all(is_idle));
}

#[test]
fn a_persisted_position_is_told_to_all() {
    let world = World::of(&logged(3), EngineConfig::SPINDLE);
    handle(&world.nodes[1]).set_persisted(7);
    assert_eq!(seen(&world.nodes[1]), [0; 3], "no step has told it");
    let outcome = world.nodes[1].step(0).expect("no other step");
    assert!(outcome.progress && outcome.stable);
    world.run(&all(&world));
    for node in &world.nodes {
        assert_eq!(seen(node), [0, 7, 0]);
    }
    assert_eq!(told(&world), [1; 3]);
    // Nothing that is not above it.
    for position in [7, 3, 0] {
        handle(&world.nodes[1]).set_persisted(position);
    }
    rest(&world);
    assert_eq!(seen(&world.nodes[0]), [0, 7, 0]);
    assert_eq!(told(&world), [0; 3]);
}

/// Both rises are found by one pass.
#[test]
fn the_sink_is_told_once_of_what_a_pass_finds() {
    let world = World::of(&logged(3), EngineConfig::SPINDLE);
    let changes = handle(&world.nodes[0]).changes();
    handle(&world.nodes[1]).set_persisted(7);
    handle(&world.nodes[2]).set_persisted(9);
    world.nodes[1].step(0);
    world.nodes[2].step(0);
    world.network.settle();
    world.nodes[0].step(0);
    assert_eq!(seen(&world.nodes[0]), [0, 7, 9]);
    assert_eq!(told(&world)[0], 1);
    assert_ne!(handle(&world.nodes[0]).changes(), changes);
}

#[test]
fn a_word_that_falls_is_ignored() {
    let spec = logged(2);
    let world = World::of(&spec, EngineConfig::SPINDLE);
    let layout = SegmentLayout::new(&spec).expect("a subgroup");
    let word = layout.columns(Rank(1)).persisted.expect("a word");
    let other = world.network.fabric(world.segment, Rank(1));
    let to: PeerSet = [Rank(0)].into_iter().collect();
    for (word_says, known) in [(9, 9), (4, 9), (0, 9), (12, 12)] {
        other.push_word(word, word_says, &to);
        other.wake(&to, WakeReason::Stability);
        world.run(&[0]);
        assert_eq!(seen(&world.nodes[0]), [0, known]);
    }
    assert_eq!(told(&world)[0], 2);
}

#[test]
fn without_logs_there_is_nothing_to_tell() {
    let world = World::new(2, EngineConfig::SPINDLE);
    rest(&world);
    let handle = handle(&world.nodes[0]);
    handle.set_persisted(7);
    assert!(!handle.is_logged() && handle.idle_flag.lasts());
    world.run(&all(&world));
    assert_eq!(seen(&world.nodes[1]), [0; 2]);
    assert_eq!(told(&world), [0; 2]);
}

/// All sleep, in idle epochs; then one member after the other persists more.
#[test]
fn sleeping_members_hear_what_is_persisted() {
    for shared in [false, true] {
        let sleepers = Sleepers::of(&logged(3), shared);
        rest(&sleepers.0);
        sleepers.sleep_all();
        let mut known = vec![0; 3];
        for (at, position) in [(0, 5), (2, 6), (1, 7), (0, 8)] {
            handle(&sleepers.0.nodes[at]).set_persisted(position);
            sleepers.run();
            known[at] = position;
            for node in &sleepers.0.nodes {
                assert_eq!(seen(node), known, "shared: {shared}");
            }
            rest(&sleepers.0);
            sleepers.sleep_all();
        }
        assert_eq!(told(&sleepers.0), [4; 3]);
    }
}

/// With messages: no member leaves it to another one to wake those that sleep for stability.
#[test]
fn a_pass_with_acknowledgements_wakes_for_what_is_persisted_too() {
    for shared in [false, true] {
        let sleepers = Sleepers::of(&logged(3), shared);
        for (from, position) in [(0, 5), (1, 6), (2, 7)] {
            send(&sleepers.0.nodes[from], 1);
            for node in &sleepers.0.nodes {
                handle(node).set_persisted(position);
            }
            sleepers.run();
            for node in &sleepers.0.nodes {
                assert_eq!(seen(node), [position; 3], "shared: {shared}");
            }
        }
    }
}

/// Where the layer above does not wait for it, only a thread that waits for acknowledgements does.
#[test]
fn members_that_do_not_wait_for_it_sleep_on() {
    let sleepers = Sleepers::of(&logged(2), true);
    for node in &sleepers.0.nodes {
        log(node, |log| log.awaits_nothing = true);
        handle(node).nudge();
    }
    rest(&sleepers.0);
    sleepers.sleep_all();
    handle(&sleepers.0.nodes[0]).set_persisted(5);
    sleepers.run();
    let slept = seen(&sleepers.0.nodes[1]);
    assert_eq!(
        (seen(&sleepers.0.nodes[0]), slept),
        (vec![5, 0], vec![0; 2])
    );
    let waiting = sleepers.0.nodes[1].handle().waiting_for_acks();
    sleepers.run();
    handle(&sleepers.0.nodes[0]).set_persisted(6);
    sleepers.run();
    assert_eq!(seen(&sleepers.0.nodes[1]), [6, 0]);
    drop(waiting);
}

/// An epoch that ends tells nothing more; one that goes on after all tells what came meanwhile.
#[test]
fn a_wedged_epoch_tells_it_when_it_goes_on() {
    let world = World::of(&logged(2), EngineConfig::SPINDLE);
    assert!(wedge(&world.nodes[0]));
    handle(&world.nodes[0]).set_persisted(5);
    world.run(&[0, 1]);
    assert_eq!(seen(&world.nodes[1]), [0, 0]);
    subgroups(&world.nodes[0], |subgroups| {
        let (subgroups, _) = subgroups.split();
        subgroups.iter_mut().for_each(SubgroupState::reopen);
    });
    world.run(&[0, 1]);
    assert_eq!(seen(&world.nodes[1]), [5, 0]);
}

#[test]
fn a_fenced_member_is_not_looked_at() {
    let world = World::of(&logged(3), EngineConfig::SPINDLE);
    handle(&world.nodes[1]).set_persisted(5);
    world.run(&[0, 1, 2]);
    fence(&world.nodes[0], 1);
    handle(&world.nodes[1]).set_persisted(6);
    world.run(&[0, 1, 2]);
    assert_eq!(
        (seen(&world.nodes[0]), seen(&world.nodes[2])),
        (vec![0, 5, 0], vec![0, 6, 0])
    );
}
