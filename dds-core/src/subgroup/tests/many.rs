//! Subgroups of more members than a word has bits.

use super::*;

/// What only a sender of a high index has is received, acknowledged, delivered and released by all,
/// by both classes, as often as it fills its rings.
#[test]
fn seventy_senders_are_heard() {
    const MEMBERS: u16 = 70;
    const SENDER: usize = 66;
    let mut spec = spec(MEMBERS);
    let ring = Some(RingSpec {
        messages: 2,
        bytes: 128,
    });
    for sender in &mut spec.senders {
        let is_it = sender.rank.index() == SENDER;
        sender.rings = [ring.filter(|_| is_it), ring];
    }
    let world = World::of(&spec, EngineConfig::SPINDLE);
    let node = &world.nodes[SENDER];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    for round in 1..=3 {
        for class in DeliveryClass::BOTH {
            let mut claim = subgroup.claim(class, 16).expect("room");
            node.send(&mut claim, 16, &META).expect("a commit");
        }
        // Receipt; delivery; release; room.
        for _ in 0..4 {
            world.network.settle();
            world.nodes.iter().for_each(|node| {
                node.step(0);
            });
        }
        for node in &world.nodes {
            log(node, |log| {
                let senders = log.order.iter().map(|(sender, _)| sender.index());
                assert!(senders.eq([SENDER; 6].into_iter().take(2 * round)));
            });
        }
    }
}
