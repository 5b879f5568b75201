//! Subgroups of more members than a word has bits.

use super::*;

/// What only a sender with an index above 63 has is received, acknowledged, delivered and released
/// by all.
#[test]
fn senders_beyond_the_first_word_are_heard() {
    const MEMBERS: u16 = 66;
    const SENDER: u16 = 65;
    let mut spec = spec(MEMBERS);
    let ring = Some(RingSpec {
        messages: 2,
        bytes: 128,
    });
    for sender in &mut spec.senders {
        let is_it = sender.rank == Rank(SENDER);
        sender.rings = [ring.filter(|_| is_it), ring];
    }
    let world = World::of(&spec, EngineConfig::SPINDLE);
    let node = &world.nodes[usize::from(SENDER)];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    for class in DeliveryClass::BOTH {
        let mut claim = subgroup.claim(class, 16).expect("room");
        node.send(&mut claim, 16, &META).expect("a commit");
    }
    let steps = |node: &Node| {
        node.step(0);
    };
    // Receipt, and of one class delivery; delivery of the other.
    for _ in 0..2 {
        world.network.settle();
        world.nodes.iter().for_each(steps);
    }
    for node in &world.nodes {
        let senders = log(node, |log| Vec::from_iter(log.order.iter().map(|it| it.0)));
        assert_eq!(senders, [Rank(SENDER); 2]);
    }
    // The release; the room.
    for _ in 0..2 {
        world.network.settle();
        world.nodes.iter().for_each(steps);
    }
    let released = DeliveryClass::BOTH.map(|class| subgroup.released(class));
    assert_eq!(released, [1, 1]);
}
