//! Each configuration switch has its effect, as the engine's counters show.

use super::*;
use crate::counters::Counters;
use crate::subgroup::{EpochPhase, SubgroupFigures};

/// Members of which only the first sends.
fn of_one_sender(members: u16, config: EngineConfig) -> World {
    let mut spec = spec(members);
    spec.senders.truncate(1);
    World::of(&spec, config)
}

/// The first of two members has sent this many messages, and both have stepped until no work is
/// left.
fn after(world: World, messages: usize) -> (World, [Counters; 2]) {
    send(&world.nodes[0], messages);
    world.run(&[0, 1]);
    let counters = [0, 1].map(|at: usize| world.nodes[at].handle().counters());
    (world, counters)
}

fn without(switch: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
    let mut config = EngineConfig::SPINDLE;
    switch(&mut config);
    config
}

/// Largest batches of a participant: sent, received, delivered.
fn greatest(counters: &Counters) -> [u64; 3] {
    [
        &counters.send_batches,
        &counters.receive_batches,
        &counters.delivery_batches,
    ]
    .map(|batches| batches.quantile(1.0))
}

#[test]
fn without_a_batching_a_stage_takes_one_at_a_time() {
    let check = |config, sender: [u64; 3], receiver: [u64; 3]| {
        let (_, [of_sender, of_receiver]) = after(of_one_sender(2, config), 4);
        assert_eq!(greatest(&of_sender), sender, "{config:?}");
        assert_eq!(greatest(&of_receiver), receiver, "{config:?}");
        assert_eq!([of_sender.delivered, of_receiver.delivered], [4, 4]);
        assert_eq!([of_sender.sent, of_receiver.received], [4, 4]);
    };
    check(EngineConfig::SPINDLE, [4, 0, 4], [0, 4, 4]);
    // A receiver that receives messages one by one also delivers them one by one.
    let one_sent = without(|config| config.send_batching = false);
    check(one_sent, [1, 0, 1], [0, 1, 1]);
    let one_received = without(|config| config.receive_batching = false);
    check(one_received, [4, 0, 1], [0, 1, 1]);
    let one_delivered = without(|config| config.delivery_batching = false);
    check(one_delivered, [4, 0, 1], [0, 4, 1]);
}

/// If a batch exceeds what a step delivers, room comes back in parts. The sink sees the end of a
/// batch for several steps together, but for at most a quarter of the rings' capacity.
#[test]
fn a_bounded_delivery_leaves_the_rest_to_the_next_step() {
    let ring = Some(RingSpec {
        messages: 128,
        bytes: 4096,
    });
    let world = |members: u16, config| {
        let mut spec = spec(members);
        spec.senders
            .iter_mut()
            .for_each(|it| it.rings = [ring, None]);
        World::of(&spec, config)
    };
    let check = |members: u16, config, most: u64, upcalls: u64| {
        let world = world(members, config);
        world.nodes.iter().for_each(|node| {
            send(node, 100);
        });
        let all: Vec<_> = (0..members.into()).collect();
        for _ in 0..4 {
            world.run(&all);
        }
        for (at, node) in world.nodes.iter().enumerate() {
            let counters = node.handle().counters();
            assert_eq!(counters.delivered, 100 * u64::from(members));
            assert_eq!(counters.delivery_batches.quantile(1.0), most, "{members}");
            // The second member has the first message of all before it has acknowledged it, and so
            // has the first member: this message ends a batch by itself.
            let early = u64::from(members == 2 && at == 1);
            assert_eq!(counters.upcalls, upcalls + early, "{members}");
        }
    };
    check(2, EngineConfig::SPINDLE, 32, 4);
    check(4, EngineConfig::SPINDLE, 32, 4);
    check(16, EngineConfig::SPINDLE, 64, 13);
    check(2, without(|it| it.bounded_deliveries = false), 192, 1);
}

/// Messages without a local reader are no delivery that others wait for: a step skips all of them,
/// unless it takes one at a time. The order is the same.
#[test]
fn unread_messages_are_skipped_without_a_bound() {
    let check = |config, most: [u64; 2]| {
        let mut spec = spec(2);
        spec.senders.truncate(1);
        spec.senders[0].rings[0] = Some(RingSpec {
            messages: 128,
            bytes: 4096,
        });
        let world = World::of(&spec, config);
        log(&world.nodes[1], |log| log.skips = true);
        send(&world.nodes[0], 100);
        // One at a time takes many steps.
        (0..20).for_each(|_| world.run(&[0, 1]));
        for (node, most) in world.nodes.iter().zip(most) {
            let counters = node.handle().counters();
            assert_eq!(counters.delivered, 100, "{config:?}");
            assert_eq!(counters.delivery_batches.quantile(1.0), most, "{config:?}");
        }
        log(&world.nodes[1], |log| assert!(log.order.is_empty()));
        assert!(world.nodes.iter().all(wedge));
        let ended = [0, 1].map(|at: usize| {
            let node = &world.nodes[at];
            freeze(node).expect("wedged");
            finish(node, &[100]).expect("frozen");
            log(node, |log| log.ended).expect("it ended")
        });
        assert_eq!(ended[0], ended[1], "the digest is one of all messages");
    };
    check(EngineConfig::SPINDLE, [32, 96]);
    check(without(|it| it.delivery_batching = false), [1, 1]);
    check(without(|it| it.batched_upcalls = false), [32, 32]);
}

#[test]
fn without_nulls_the_others_wait_for_a_silent_sender() {
    let silent = without(|config| config.null_sends = false);
    let (world, [sender, receiver]) = after(World::new(2, silent), 3);
    assert_eq!([sender.nulls, receiver.nulls], [0, 0]);
    // The first message of the order comes before every message of the second sender.
    assert_eq!([sender.delivered, receiver.delivered], [1, 1]);
    for node in &world.nodes {
        let subgroup = &node.figures().subgroups[0];
        let wait = subgroup.wait.as_ref().expect("messages that wait");
        assert_eq!((wait.messages, &wait.senders[..]), (2, &[1][..]));
    }
    let (world, [sender, receiver]) = after(World::new(2, EngineConfig::SPINDLE), 3);
    assert_eq!([sender.nulls, receiver.nulls], [0, 2]);
    assert_eq!([sender.delivered, receiver.delivered], [3, 3]);
    assert!(
        world
            .nodes
            .iter()
            .all(|it| it.figures().subgroups[0].wait.is_none())
    );
}

#[test]
fn unbatched_upcalls_are_one_a_message() {
    let (world, counters) = after(of_one_sender(2, EngineConfig::SPINDLE), 4);
    assert_eq!(counters.map(|it| it.upcalls), [1, 1]);
    assert_eq!(log(&world.nodes[1], |log| log.upcalls), 1);
    let unbatched = without(|it| it.batched_upcalls = false);
    let (world, counters) = after(of_one_sender(2, unbatched), 4);
    assert_eq!(counters.map(|it| it.upcalls), [4, 4]);
    assert_eq!(log(&world.nodes[1], |log| log.upcalls), 4);
}

/// Each message pushes as many bytes of payload as it has.
#[test]
fn a_batch_pushes_payload_headers_and_guard() {
    let (_, [sender, receiver]) = after(World::new(2, EngineConfig::SPINDLE), 4);
    assert_eq!(sender.sent_bytes, 64);
    // The other member's guard covers nulls only.
    let headers = 4 * HEADER_LEN as u64;
    assert_eq!(
        (sender.data.pushes, sender.data.bytes),
        (3, 64 + headers + 8)
    );
    assert_eq!((receiver.data.pushes, receiver.data.bytes), (1, 8));
    assert!(receiver.acks.pushes > 0 && receiver.acks.bytes >= receiver.acks.pushes * 8);
}

/// Of three members, the last holds all delivered messages.
#[test]
fn a_member_that_holds_messages_is_named_in_figures() {
    let world = World::new(3, EngineConfig::SPINDLE);
    log(&world.nodes[2], |log| log.holds = true);
    send(&world.nodes[0], 3);
    world.run(&[0, 1, 2]);
    let ring = |subgroup: &SubgroupFigures| {
        let ring = &subgroup.rings[0];
        (ring.messages, ring.sent, ring.unreleased.clone())
    };
    let figures = world.nodes[0].figures();
    let subgroup = &figures.subgroups[0];
    assert_eq!(
        (subgroup.phase, subgroup.unready.len()),
        (EpochPhase::Open, 0)
    );
    assert_eq!((subgroup.delivered, subgroup.delivered_bytes), (3, 48));
    assert_eq!(ring(subgroup), (3, 3, vec![2]));
    assert_eq!(figures.writers.len(), 1);
    assert_eq!(
        (figures.writers[0].messages, figures.writers[0].bytes),
        (3, 48)
    );
    let held = log(&world.nodes[2], |log| core::mem::take(&mut log.held));
    drop(held);
    world.run(&[0, 1, 2]);
    assert_eq!(ring(&world.nodes[0].figures().subgroups[0]), (0, 3, vec![]));
}

/// Of three members, the last does not step.
#[test]
fn a_missing_acknowledgement_is_named_in_figures() {
    let world = World::new(3, EngineConfig::SPINDLE);
    send(&world.nodes[0], 3);
    world.run(&[0, 1]);
    let missing = |world: &World| {
        let subgroup = &world.nodes[1].figures().subgroups[0];
        let wait = subgroup.wait.clone().expect("messages that wait");
        (wait.messages, wait.senders, wait.acknowledgements)
    };
    // The first message waits for its acknowledgement; its nulls are needed later.
    assert_eq!(missing(&world), (3, vec![], vec![2]));
    let world = of_one_sender(3, EngineConfig::SPINDLE);
    send(&world.nodes[0], 3);
    world.run(&[0, 1]);
    assert_eq!(missing(&world), (3, vec![], vec![2]));
}
