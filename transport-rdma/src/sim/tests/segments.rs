//! Segments and nodes that are added and removed.

use super::super::{NodeId, Rng, SegmentId, SimFabric, SimNetwork, SimOptions};
use super::{A, AT, B, NODES, group, options, to};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{Fabric, FailureCause, WakeInterest, WakeReason};

const LEN: usize = 512;

/// Another segment of nodes 0 and 1.
fn data_segment(network: &SimNetwork) -> SegmentId {
    network.open(&[(NODES[0], LEN), (NODES[1], LEN)])
}

fn polled(fabric: &SimFabric) -> Vec<(Rank, FailureCause)> {
    let failures = core::iter::from_fn(|| fabric.poll());
    failures.map(|told| (told.peer, told.cause)).collect()
}

/// Adds and removes nodes and segments at random; returns the hash of the run.
fn run(seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let network = SimNetwork::new(seed, 2, SimOptions::swarm(&mut rng));
    let mut nodes = NODES[..2].to_vec();
    let (mut agreed, mut fabrics) = (Vec::new(), Vec::new());
    for value in 1..300 {
        match rng.below(12) {
            0 if nodes.len() < 6 => nodes.push(network.add_node()),
            1 if rng.chance(0.1) && nodes.len() > 2 => {
                let dead = nodes.swap_remove(rng.below(nodes.len()));
                network.crash(dead);
                agreed.retain(|&(_, _, node)| node != dead);
            }
            2 => {
                let mut members = nodes.clone();
                rng.shuffle(&mut members);
                members.truncate(2 + rng.below(2));
                let rows: Vec<_> = members.iter().map(|&node| (node, LEN)).collect();
                let segment = match rng.chance(0.5) {
                    true => network.open_control(&rows),
                    false => network.open(&rows),
                };
                let ranks = members.iter().enumerate();
                agreed.extend(ranks.map(|(rank, &node)| (segment, Rank(rank as u16), node)));
            }
            3..=5 if !agreed.is_empty() => {
                let (segment, rank, node) = agreed.swap_remove(rng.below(agreed.len()));
                match rng.chance(0.8) {
                    true => fabrics.push(network.fabric(segment, rank)),
                    false => network.close(segment, node),
                }
            }
            6 if !fabrics.is_empty() => {
                fabrics.swap_remove(rng.below(fabrics.len()));
            }
            what => {
                let Some(fabric) = rng.pick(&fabrics) else {
                    continue;
                };
                let peers = (0..fabric.members() as u16).map(Rank).collect();
                match what {
                    7 => fabric.push(AT, 128, &peers),
                    8 => fabric.wake(&peers, WakeReason::Data),
                    9 => fabric.announce_sleep(WakeInterest::Data),
                    10 => fabric.fence(Rank(rng.below(fabric.members()) as u16)),
                    _ => fabric.push_word(AT + 8 * rng.below(8), value, &peers),
                }
            }
        }
        while rng.chance(0.7) && network.step() {}
    }
    agreed
        .drain(..)
        .for_each(|(segment, _, node)| network.close(segment, node));
    network.settle();
    let state = network.state();
    assert!(
        state
            .links
            .iter()
            .flatten()
            .all(|link| link.queue.is_empty())
    );
    drop(state);
    drop(fabrics);
    let state = network.state();
    let endpoints = || state.segments.iter().flat_map(|segment| &segment.endpoints);
    assert!(endpoints().all(|end| end.rows.is_empty()), "memory is kept");
    assert!(state.links.iter().flatten().all(|l| l.targets.is_empty()));
    state.trace
}

#[test]
fn the_same_seed_is_the_same_run_and_leaves_nothing_behind() {
    for seed in 0..100 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}

/// A push to a segment that its reader has not opened blocks the pair, does not count as
/// pending, and continues when the segment is opened or given up.
#[test]
fn queued_writes_wait_until_their_segment_is_opened_or_closed() {
    for opens in [true, false] {
        let (network, [a, b]) = group(1, LEN, options(0.0));
        let segment = data_segment(&network);
        let fabric = network.fabric(segment, A);
        a.push_word(AT, 1, &to(&[B]));
        fabric.push_word(AT, 2, &to(&[B]));
        a.push_word(AT + 8, 3, &to(&[B]));
        network.settle();
        assert_eq!(network.pending(), 0);
        assert_eq!([AT, AT + 8].map(|at| b.row(A).load(at)), [1, 0]);
        if opens {
            let opened = network.fabric(segment, B);
            assert_eq!(opened.row(A).load(AT), 0);
            network.settle();
            assert_eq!(opened.row(A).load(AT), 2);
        } else {
            network.close(segment, NODES[1]);
            network.settle();
        }
        assert_eq!(b.row(A).load(AT + 8), 3);
    }
}

#[test]
fn shared_memory_does_not_wait_for_an_open() {
    let (network, [a, b]) = group(1, LEN, options(1.0));
    let segment = data_segment(&network);
    let fabric = network.fabric(segment, A);
    fabric.push_word(AT, 2, &to(&[B]));
    a.push_word(AT, 3, &to(&[B]));
    network.settle();
    assert_eq!(b.row(A).load(AT), 3);
    assert_eq!(network.fabric(segment, B).row(A).load(AT), 2);
}

/// What was pushed before its sender dropped the segment still lands.
#[test]
fn pushes_land_after_their_sender_dropped_the_segment() {
    for shared in [0.0, 1.0] {
        let (network, [_a, _b]) = group(1, LEN, options(shared));
        let segment = data_segment(&network);
        let (sender, reader) = (network.fabric(segment, A), network.fabric(segment, B));
        sender.store(AT, 5);
        sender.push(AT, 64, &to(&[B]));
        drop(sender);
        network.settle();
        assert_eq!(reader.row(A).load(AT), 5);
    }
}

#[test]
fn a_closed_segment_takes_nothing() {
    let (network, [_a, b]) = group(1, LEN, options(0.0));
    let segment = data_segment(&network);
    let (sender, reader) = (network.fabric(segment, A), network.fabric(segment, B));
    network.hold(NODES[0], NODES[1], true);
    sender.push_word(AT, 1, &to(&[B]));
    network.close(segment, NODES[1]);
    sender.push_word(AT, 2, &to(&[B]));
    reader.push_word(AT, 3, &to(&[A]));
    network.settle();
    assert_eq!((reader.row(A).load(AT), sender.row(B).load(AT)), (0, 0));
    // Its node is alive.
    b.push_word(AT, 4, &to(&[A]));
    reader.announce_sleep(WakeInterest::Data);
    network.settle();
    sender.wake(&to(&[B]), WakeReason::Data);
    network.settle();
    assert!(network.take_wakeup(NODES[1]));
}

/// Ranks of a new segment differ from those of an old one. A node that was added wakes nodes
/// that slept already, and is told of crashed ones.
#[test]
fn a_new_node_learns_which_nodes_sleep_and_which_crashed() {
    for shared in [0.0, 1.0] {
        let (network, [_a, b, _c]) = group(1, LEN, options(shared));
        network.crash(NODES[2]);
        b.announce_sleep(WakeInterest::Data);
        network.settle();
        let added = network.add_node();
        assert_eq!((added, network.take_wakeup(NODES[1])), (NodeId(3), true));
        let members = [added, NODES[2], NODES[1]];
        let segment = network.open_control(&members.map(|node| (node, LEN)));
        let (first, third) = (network.fabric(segment, A), network.fabric(segment, Rank(2)));
        network.settle();
        let ended = [(Rank(1), FailureCause::ProcessEnded)];
        assert_eq!(polled(&first), ended);
        assert_eq!(polled(&third), ended);
        network.take_wakeup(NODES[1]);
        first.push_word(AT, 1, &to(&[Rank(2)]));
        first.wake(&to(&[Rank(2)]), WakeReason::Data);
        network.settle();
        assert!(network.take_wakeup(NODES[1]));
        assert_eq!(third.row(A).load(AT), 1);
    }
}

/// A member that cannot be reached has a zero row in segments that are opened afterwards.
#[test]
fn a_severed_pair_stays_severed_in_new_segments() {
    let (network, [a, b]) = group(1, LEN, SimOptions::default());
    network.sever(NODES[0], NODES[1]);
    network.settle();
    let segment = network.open_control(&[(NODES[1], LEN), (NODES[0], LEN)]);
    let (first, second) = (network.fabric(segment, A), network.fabric(segment, B));
    first.push_word(AT, 1, &to(&[B]));
    network.crash(NODES[0]);
    network.settle();
    assert_eq!(second.row(A).load(AT), 0);
    let severed = |peer| (peer, FailureCause::Unreachable("severed".into()));
    assert_eq!(polled(&first), [severed(B)], "once, by the first cause");
    assert_eq!(polled(&second), [severed(A)]);
    assert_eq!(polled(&a), [severed(B)]);
    assert_eq!(polled(&b), [severed(A)]);
}

/// `wake` in one segment releases pushes held back for members of that segment, in all
/// segments, in call order.
#[test]
fn wake_ends_the_batch_of_each_pair_of_its_segment() {
    let options = SimOptions {
        held_batches: 1.0,
        ..options(0.0)
    };
    let (network, [a, b, c]) = group::<3>(1, LEN, options);
    let segment = data_segment(&network);
    let [near, far] = [A, B].map(|rank| network.fabric(segment, rank));
    a.push_word(AT, 1, &to(&[B, Rank(2)]));
    near.push_word(AT, 2, &to(&[B]));
    network.settle();
    assert_eq!((b.row(A).load(AT), far.row(A).load(AT)), (0, 0));
    near.wake(&PeerSet::EMPTY, WakeReason::Data);
    while far.row(A).load(AT) == 0 {
        assert!(network.step());
    }
    assert_eq!((b.row(A).load(AT), c.row(A).load(AT)), (1, 0));
    a.wake(&PeerSet::EMPTY, WakeReason::Data);
    network.settle();
    assert_eq!(c.row(A).load(AT), 1);
}
