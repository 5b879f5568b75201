//! A ring that is empty goes on at its start, and what its receivers make of that.

use spindle_dds_transport::sim::Rng;

use super::*;
use crate::config::RingStretch;
use crate::limits::GRANULE;
use crate::subgroup::layout::RingColumns;

const RING: RingSpec = RingSpec {
    messages: 32,
    bytes: 2048,
};
/// Header slots that are used at least before a restart.
const STRETCH: u32 = 4;

fn config() -> EngineConfig {
    EngineConfig {
        ring_stretch: RingStretch {
            messages: STRETCH,
            bytes: 256,
        },
        ..EngineConfig::SPINDLE
    }
}

fn spec(members: u16) -> SubgroupSpec {
    let mut spec = super::spec(members);
    for sender in &mut spec.senders {
        sender.rings = [Some(RING); 2];
    }
    spec
}

fn columns(sender: u16, class: DeliveryClass) -> RingColumns {
    let layout = SegmentLayout::new(&spec(3)).expect("a subgroup");
    layout.columns(Rank(sender)).rings[class.index()].expect("a sender")
}

/// Header slots of member 0's ring in which anything was ever written, and the granules of payload.
fn used(world: &World, class: DeliveryClass) -> (usize, usize) {
    let row = world.network.fabric(world.segment, Rank(0));
    let row = row.row(Rank(0)).clone();
    let columns = columns(0, class);
    let slots = (0..RING.messages.into()).filter(|&it| row.load(columns.header(it)) != 0);
    let granules = (0..RING.memory() as usize / GRANULE)
        .filter(|it| row.load(columns.payload + it * GRANULE) != 0);
    (slots.count(), granules.count())
}

/// Sends one message of this many bytes, all of which are set, to be processed by later steps.
fn send_bytes(node: &Node, class: DeliveryClass, len: u32) {
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let mut claim = subgroup.claim(class, len).expect("room");
    claim.bytes().fill(0xff);
    node.send(&mut claim, len, &META).expect("a commit");
}

fn counted(node: &Node) -> Vec<u64> {
    let figures = node.figures();
    let rings = &figures.subgroups[0].rings;
    rings.iter().map(|it| it.sent).collect()
}

#[test]
fn a_writer_that_sends_rarely_uses_the_start_of_its_ring_alone() {
    for class in DeliveryClass::BOTH {
        let world = World::of(&spec(3), config());
        let others = DeliveryClass::BOTH.map(|it| if it == class { 300 } else { 0 });
        for _ in 0..300 {
            send_bytes(&world.nodes[0], class, 24);
            world.run(&[0, 1, 2]);
        }
        assert_eq!(
            used(&world, class),
            (STRETCH as usize, 2 * STRETCH as usize)
        );
        assert_eq!(counted(&world.nodes[0]), others);
        for node in &world.nodes {
            let order = log(node, |log| log.order.clone());
            assert_eq!(order, Vec::from_iter((1..=300).map(|it| (Rank(0), it))));
            assert_eq!(node.suspects(), []);
        }
        let figures = world.nodes[0].figures();
        assert_eq!(figures.subgroups[0].wait, None);
    }
}

/// Payload of few large messages goes on at its start too, and their headers only after a stretch.
#[test]
fn a_stretch_of_payload_alone_restarts_the_payload() {
    let world = World::of(&spec(3), config());
    for _ in 0..3 {
        send_bytes(&world.nodes[0], DeliveryClass::Ordered, 256);
        world.run(&[0, 1, 2]);
    }
    assert_eq!(used(&world, DeliveryClass::Ordered), (3, 16));
}

/// As long as a message is held anywhere, the ring goes on where it is, and all of it can be used.
#[test]
fn a_ring_with_a_held_message_is_not_restarted() {
    let world = World::of(&spec(3), config());
    let step_all = || world.run(&[0, 1, 2]);
    log(&world.nodes[2], |log| log.holds = true);
    send_bytes(&world.nodes[0], DeliveryClass::Ordered, 16);
    step_all();
    log(&world.nodes[2], |log| log.holds = false);
    for sent in 2..=RING.messages as usize {
        send_bytes(&world.nodes[0], DeliveryClass::Ordered, 16);
        step_all();
        assert_eq!(used(&world, DeliveryClass::Ordered), (sent, sent));
    }
    let subgroup = world.nodes[0].handle().subgroup(SUBGROUP).expect("it is");
    let refused = subgroup.claim(DeliveryClass::Ordered, 16);
    assert_eq!(refused.expect_err("held"), ClaimError::NoRoom);
    drop(log(&world.nodes[2], |log| std::mem::take(&mut log.held)));
    step_all();
    send_bytes(&world.nodes[0], DeliveryClass::Ordered, 16);
    let row = world.network.fabric(world.segment, Rank(0));
    let first = row
        .row(Rank(0))
        .load(columns(0, DeliveryClass::Ordered).header(0));
    assert_eq!(first, u64::from(RING.messages) + 1, "in the first slot");
}

/// What a fenced member holds is unknown.
#[test]
fn a_ring_is_not_restarted_beside_a_fenced_member() {
    let world = World::of(&spec(3), config());
    for _ in 0..3 * STRETCH {
        send_bytes(&world.nodes[0], DeliveryClass::Ordered, 16);
        world.run(&[0, 1, 2]);
    }
    let restarted = columns(0, DeliveryClass::Ordered).restart();
    let row = world.network.fabric(world.segment, Rank(0));
    let row = row.row(Rank(0)).clone();
    let before = row.load(restarted);
    assert!(before > 0);
    fence(&world.nodes[0], 2);
    for _ in 0..RING.messages - STRETCH {
        send_bytes(&world.nodes[0], DeliveryClass::Ordered, 16);
        world.run(&[0, 1]);
    }
    assert_eq!(row.load(restarted), before);
}

#[test]
fn what_was_sent_since_a_restart_can_be_read_after_a_stop() {
    let world = World::of(&spec(2), config());
    let node = &world.nodes[0];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("it is open");
    for _ in 0..2 * STRETCH {
        send_bytes(node, DeliveryClass::Ordered, 16);
        world.run(&[0, 1]);
    }
    send_bytes(node, DeliveryClass::Ordered, 5);
    send_bytes(node, DeliveryClass::Ordered, 7);
    assert!(node.stop("the end".to_owned()));
    let sent = subgroup.sent_since(DeliveryClass::Ordered, 0);
    let lens: Vec<usize> = sent.iter().map(|it| it.payload.len()).collect();
    assert_eq!(lens, [5, 7]);
}

/// What a member does about a sender that says that its ring was restarted there, after a message
/// of this sender has been delivered at all members, and is held by member 2 if `held`.
fn restarted_at(indexes: &[u64], held: bool) -> [Vec<(Rank, String)>; 2] {
    let world = World::of(&spec(3), config());
    log(&world.nodes[2], |log| log.holds = held);
    send_bytes(&world.nodes[1], DeliveryClass::Ordered, 16);
    world.run(&[0, 1, 2]);
    let sender = world.network.fabric(world.segment, Rank(1));
    let to: PeerSet = [Rank(0), Rank(2)].into_iter().collect();
    let columns = columns(1, DeliveryClass::Ordered);
    for (&index, guard) in indexes.iter().zip(2..) {
        sender.push_word(columns.restart(), index, &to);
        sender.push_word(columns.guard, guard, &to);
        world.network.settle();
        for at in [0, 2] {
            world.nodes[at].step(0);
        }
    }
    [0, 2].map(|at: usize| world.nodes[at].suspects())
}

#[test]
fn a_restart_of_a_ring_in_use_is_a_violation() {
    let named = |what: ProtocolViolation| vec![(Rank(1), what.to_string())];
    let too_soon = || named(ProtocolViolation::RestartTooSoon);
    assert_eq!(restarted_at(&[1], false), [vec![], vec![]]);
    assert_eq!(restarted_at(&[1], true), [vec![], too_soon()]);
    assert_eq!(restarted_at(&[1 << 60], false), [too_soon(), too_soon()]);
    let fell = || named(ProtocolViolation::CounterFell);
    assert_eq!(restarted_at(&[2, 1], false), [fell(), fell()]);
    assert_eq!(restarted_at(&[1, 2, 3], false), [vec![], vec![]]);
}

/// Members that send and hold at random, over rings that are restarted whenever they are empty:
/// all deliver the same, once, and none suspects another.
#[test]
fn random_loads_are_delivered_alike_over_restarted_rings() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut config = config();
        config.ring_stretch = RingStretch {
            messages: 1 + rng.below(8) as u32,
            bytes: 16 << rng.below(8),
        };
        let world = World::of(&spec(3), config);
        let mut sent = [0_u64; 3];
        for _ in 0..400 {
            let at = rng.below(3);
            let node = &world.nodes[at];
            match rng.below(8) {
                0 | 1 => {
                    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
                    for _ in 0..1 + rng.below(6) {
                        let len = rng.below(300) as u32;
                        if let Ok(mut claim) = subgroup.claim(DeliveryClass::Ordered, len) {
                            let index = match rng.below(4) {
                                0 => continue,
                                1 => claim.commit(len / 2, &META),
                                _ => node.send(&mut claim, len, &META),
                            };
                            index.expect("it is open");
                            sent[at] += 1;
                        }
                    }
                }
                2 => log(node, |log| log.holds = !log.holds),
                3 => drop(log(node, |log| std::mem::take(&mut log.held))),
                4 => world.network.settle(),
                _ => drop(node.step(0)),
            }
        }
        for node in &world.nodes {
            log(node, |log| log.holds = false);
            drop(log(node, |log| std::mem::take(&mut log.held)));
        }
        world.run(&[0, 1, 2]);
        let order = log(&world.nodes[0], |log| log.order.clone());
        for (place, sent) in (0..).map(Rank).zip(sent) {
            let theirs = order.iter().filter(|it| it.0 == place).map(|it| it.1);
            assert!(theirs.eq(1..=sent), "seed {seed}: member {place}");
        }
        for node in &world.nodes {
            assert_eq!(log(node, |log| log.order.clone()), order, "seed {seed}");
            assert_eq!(node.suspects(), [], "seed {seed}");
        }
    }
}
