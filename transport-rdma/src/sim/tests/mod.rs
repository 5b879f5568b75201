//! Properties of the simulator itself: repeatability, freedom, crashes.

mod segments;

use super::{NodeId, Rng, SimFabric, SimNetwork, SimOptions};
use crate::fabric::peers::{PeerSet, Rank};
use crate::fabric::{FABRIC_AREA, Fabric, FailureCause, WakeInterest, WakeReason};

const A: Rank = Rank(0);
const B: Rank = Rank(1);
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];
const AT: usize = FABRIC_AREA;

fn options(shared_pairs: f64) -> SimOptions {
    SimOptions {
        shared_pairs,
        ..SimOptions::default()
    }
}

fn to(ranks: &[Rank]) -> PeerSet {
    ranks.iter().copied().collect()
}

fn group<const N: usize>(
    seed: u64,
    len: usize,
    options: SimOptions,
) -> (SimNetwork, [SimFabric; N]) {
    let (network, fabrics) = SimNetwork::group(seed, &[len; N], options);
    (network, fabrics.try_into().expect("as many as asked for"))
}

/// Random pushes among three members; returns the hash of the run.
fn run(seed: u64) -> u64 {
    let (network, fabrics) = group::<3>(seed, 1024, SimOptions::default());
    let mut rng = Rng::new(seed);
    for value in 0..200 {
        let at = AT + 8 * rng.below(32);
        let fabric = &fabrics[rng.below(3)];
        let peers = to(&[Rank(rng.below(3) as u16)]);
        match rng.below(5) {
            0 => fabric.store(at, value),
            1 => fabric.push(at, 64, &peers),
            2 => fabric.push_word(at, value, &peers),
            3 => fabric.wake(&peers, WakeReason::Data),
            _ => fabric.announce_sleep(WakeInterest::Data),
        }
        while rng.chance(0.7) && network.step() {}
    }
    network.crash(NODES[2]);
    network.settle();
    assert_eq!(network.pending(), 0);
    network.trace_hash()
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..50 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
        assert_ne!(run(seed), run(seed + 1), "seed {seed}");
    }
}

#[test]
fn shared_memory_shows_stores_early_and_queued_writes_do_not() {
    for (shared, shows) in [(1.0, true), (0.0, false)] {
        let (network, [a, b]) = group(1, 512, options(shared));
        a.store(AT, 7);
        while network.step() {}
        assert_eq!(b.row(A).load(AT) == 7, shows);
    }
}

#[test]
fn a_range_may_be_fetched_when_it_lands_and_a_word_never() {
    let mut late = false;
    for seed in 0..100 {
        let (network, [a, b]) = group(seed, 512, options(0.0));
        a.store(AT, 1);
        a.push(AT, 8, &to(&[B]));
        a.push_word(AT + 8, 1, &to(&[B]));
        a.store(AT, 2);
        a.store(AT + 8, 2);
        network.settle();
        late |= b.row(A).load(AT) == 2;
        assert_eq!(b.row(A).load(AT + 8), 1);
    }
    assert!(late);
}

#[test]
fn a_crash_lands_any_part_of_what_was_sent_and_is_told_once() {
    let mut landed = [false; 4];
    for seed in 0..300 {
        let (network, [a, b]) = group(seed, 512, SimOptions::default());
        for word in 0..3 {
            a.push_word(AT + 8 * word, 1, &to(&[B]));
        }
        network.crash(NODES[0]);
        network.settle();
        let seen: Vec<_> = (0..3).map(|word| b.row(A).load(AT + 8 * word)).collect();
        let count = seen.iter().sum::<u64>() as usize;
        assert!(
            seen.is_sorted_by(|first, second| first >= second),
            "{seen:?}"
        );
        landed[count] = true;
        let failure = b.poll().expect("told");
        assert_eq!(
            (failure.peer, failure.cause),
            (A, FailureCause::ProcessEnded)
        );
        assert_eq!(b.poll(), None);
    }
    assert_eq!(landed, [true; 4]);
}

#[test]
fn held_pairs_land_nothing_until_released() {
    for shared in [0.0, 1.0] {
        let (network, [a, b]) = group(3, 512, options(shared));
        network.hold(NODES[0], NODES[1], true);
        a.push_word(AT, 5, &to(&[B]));
        while network.step() {}
        assert_eq!(b.row(A).load(AT), 0);
        network.settle();
        assert_eq!(b.row(A).load(AT), 5);
    }
}

#[test]
fn severed_members_stay_alive_and_are_both_told() {
    let (network, fabrics) = group::<3>(3, 512, SimOptions::default());
    network.sever(NODES[0], NODES[1]);
    fabrics[0].push_word(AT, 1, &to(&[B, Rank(2)]));
    network.settle();
    assert_eq!(fabrics[1].row(A).load(AT), 0);
    assert_eq!(fabrics[2].row(A).load(AT), 1);
    assert_eq!(fabrics[0].poll().map(|failure| failure.peer), Some(B));
    assert_eq!(fabrics[1].poll().map(|failure| failure.peer), Some(A));
    assert_eq!(fabrics[2].poll(), None);
}

/// Each state of one push, of an early store and of two pairs that the contract allows is
/// seen for some seed.
#[test]
fn every_freedom_is_used() {
    let mut seen = [false; 5];
    for seed in 0..300 {
        let options = SimOptions {
            spurious_wakes: 0.05,
            ..options(seed as f64 % 2.0)
        };
        let (network, fabrics) = group::<3>(seed, 512, options);
        let both = to(&[B, Rank(2)]);
        for word in 0..4 {
            fabrics[0].store(AT + 8 * word, 1);
        }
        fabrics[0].push(AT, 32, &both);
        fabrics[0].push_word(AT + 32, 1, &both);
        fabrics[1].announce_sleep(WakeInterest::Data);
        loop {
            let look = |at: &SimFabric| {
                core::array::from_fn::<_, 5, _>(|word| at.row(A).load(AT + 8 * word))
            };
            let (first, second) = (look(&fabrics[1]), look(&fabrics[2]));
            let queued = seed % 2 == 0;
            seen[0] |= queued && first[..4] == [0, 0, 0, 1];
            seen[1] |= queued && first[..4] == [0, 1, 0, 1];
            seen[2] |= first[4] == 1 && second[0] == 0;
            seen[3] |= second[4] == 1 && first[0] == 0;
            if !network.step() {
                break;
            }
        }
        seen[4] |= network.take_wakeup(NODES[1]);
    }
    assert_eq!(seen, [true; 5]);
}

/// Nothing is kept for a member that can never see it.
#[test]
fn a_pair_that_is_fenced_or_dead_holds_nothing() {
    let (network, fabrics) = group::<3>(1, 1 << 16, SimOptions::default());
    fabrics[1].fence(A);
    network.crash(NODES[2]);
    let before = network.pending();
    for value in 0..100 {
        fabrics[0].push_word(AT, value, &to(&[B, Rank(2)]));
        fabrics[2].push_word(AT, value, &to(&[A, B]));
    }
    assert_eq!(network.pending(), before);
    assert_eq!(
        fabrics[2].row(Rank(2)).load(AT),
        0,
        "the dead store nothing"
    );
}
