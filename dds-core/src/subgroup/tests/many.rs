//! Subgroups of more members than a word has bits.

use super::*;

/// What only a sender of a high index has is received, acknowledged, delivered and released by all,
/// by both classes, as often as it fills its rings.
#[test]
fn seventy_senders_are_heard() {
    const MEMBERS: u16 = 70;
    const SENDER: usize = 66;
    let world = World::new(MEMBERS, EngineConfig::SPINDLE);
    let all: Vec<usize> = (0..MEMBERS.into()).collect();
    let node = &world.nodes[SENDER];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("a subgroup");
    let rounds = u64::from(RING_MESSAGES) + 2;
    for _ in 0..rounds {
        for class in DeliveryClass::BOTH {
            let mut claim = subgroup.claim(class, 16).expect("room");
            node.send(&mut claim, 16, &META).expect("a commit");
        }
        world.run(&all[..]);
    }
    for node in &world.nodes {
        let delivered = log(node, |log| log.order.clone());
        assert_eq!(delivered.len() as u64, 2 * rounds);
        let of_sender = |(sender, _): &(Rank, u64)| sender.index() == SENDER;
        assert!(delivered.iter().all(of_sender), "{delivered:?}");
    }
}
