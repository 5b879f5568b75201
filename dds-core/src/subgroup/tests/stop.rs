//! A member that stops: what was committed by then is published, and nothing is committed any more.

use super::*;
use crate::commit_steps::CommitSteps;

#[test]
fn a_stop_is_told_once_when_all_that_was_committed_is_published() {
    let world = World::new(2, EngineConfig::default());
    let [node, other] = [&world.nodes[0], &world.nodes[1]];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("it is open");
    let claim = || subgroup.claim(DeliveryClass::Ordered, 16).expect("room");
    // A thread has taken the first position, and another commits behind it.
    let under_way = CommitSteps::enter(claim(), 16, META).take_index();
    let under_way = under_way.map_err(|it| it.0).expect("it is open");
    let (mut second, mut third) = (claim(), claim());
    assert_eq!(second.commit(16, &META), Ok(1));
    assert!(
        !node.stop("no next view".to_owned()),
        "a commit is under way"
    );
    assert!(!node.step(0).expect("no other step").stopped);
    assert_eq!(third.commit(16, &META), Err(ClaimError::Stopped));
    let refused = subgroup.claim(DeliveryClass::Ordered, 16);
    assert_eq!(refused.expect_err("closed"), ClaimError::Stopped);
    assert!(log(node, |log| log.stopped.is_empty()));
    under_way.finish();
    assert!(node.step(0).expect("no other step").stopped);
    assert!(node.stop("something else".to_owned()));
    let why = OutReason::Driver("no next view".to_owned());
    assert_eq!(log(node, |log| std::mem::take(&mut log.stopped)), [why]);
    assert!(
        log(node, |log| log.order.is_empty()),
        "nothing is delivered"
    );
    // The other has the messages of the first of two senders.
    world.network.settle();
    other.step(0);
    assert_eq!(other.has_received(SUBGROUP, 0), Some(true));
    assert_eq!(other.has_received(SUBGROUP, 2), Some(true));
    assert_eq!(other.has_received(SUBGROUP, 4), Some(false));
}

#[test]
fn what_was_sent_and_not_released_can_be_read_after_a_stop() {
    let world = World::new(2, EngineConfig::default());
    let node = &world.nodes[0];
    let subgroup = node.handle().subgroup(SUBGROUP).expect("it is open");
    let send = |number: u8| {
        let mut claim = subgroup.claim(DeliveryClass::Ordered, 16).expect("room");
        claim.bytes().fill(number);
        node.send(&mut claim, 5, &META).expect("it is open");
    };
    // More than a lap of the ring, all released.
    for number in 0..6 {
        send(number);
        world.run(&[0, 1]);
    }
    for number in 6..9 {
        send(number);
    }
    let ordered = DeliveryClass::Ordered;
    assert_eq!(subgroup.sent_since(ordered, 0), [], "the group goes on");
    let last = subgroup.last_of(ordered, META.writer).expect("it has sent");
    assert_eq!(subgroup.last_of(ordered, META.writer + 1), None);
    assert!(node.stop("no next view".to_owned()));
    let sent = |from| {
        let sent = subgroup.sent_since(ordered, from).into_iter();
        sent.map(|it| (it.header.writer_seq, it.payload))
            .collect::<Vec<_>>()
    };
    let expected = [(7, vec![6; 5]), (8, vec![7; 5]), (9, vec![8; 5])];
    assert_eq!(sent(0), expected);
    assert_eq!(sent(last.index), expected[2..]);
    assert_eq!(sent(last.index + 1), []);
    assert_eq!(subgroup.sent_since(DeliveryClass::Unordered, 0), []);
    assert_eq!(node.writer_sequences(), [(META.writer, 9)]);
}
