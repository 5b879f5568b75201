//! Pushes land, in order, where they belong.

use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};

use super::harness::{AT, key, pair, wait_until};
use crate::fabric::WakeReason;
use crate::fabric::peers::PeerSet;

/// A guard vouches for earlier pushes: a long range that the device fetches, a short one that
/// is carried inline, and a word.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn guards_vouch_for_what_was_pushed_before() {
    const ROWS: u64 = 2000;
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    let (long, short, word, guard) = (AT..AT + 512, AT + 512..AT + 576, AT + 576, AT + 584);
    // Pushes would wait until the peer has opened the segment.
    mine.say(AT + 592, 1);
    theirs.hear(AT + 592, 1);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen < ROWS && !stop.load(Ordering::Relaxed) {
                let now = theirs.copy.load(guard);
                assert!(now >= seen, "a guard fell");
                seen = now;
                let words = (long.start..short.end).step_by(8).chain([word]);
                words.for_each(|at| assert!(theirs.copy.load(at) >= seen, "{at} of {seen}"));
                std::thread::yield_now();
            }
            seen
        });
        for value in 1..=ROWS {
            long.clone()
                .step_by(8)
                .for_each(|at| mine.row.store(at, value));
            short
                .clone()
                .step_by(8)
                .for_each(|at| mine.row.store(at, value));
            mine.segment.push(long.start, long.len(), &mine.to);
            mine.push_word(word, value);
            mine.segment.push(short.start, short.len(), &mine.to);
            mine.push_word(guard, value);
            mine.segment.wake(&PeerSet::EMPTY, WakeReason::Data);
            // Behind the first one there is nothing to post it with.
            if value == 1 {
                wait_until("the first is complete", || a.core.is_still(b.id));
            }
        }
        wait_until("all is complete", || a.core.is_still(b.id));
        wait_until("all is seen", || reader.is_finished());
        stop.store(true, Ordering::Relaxed);
        assert_eq!(reader.join().expect("no panic"), ROWS);
    });
    let counters = a.core.counters(b.id).expect("a peer");
    println!("{counters:?}");
    assert!(counters.chains[3] > 0, "four work requests by one call");
    let pushed = mine.segment.counters();
    assert_eq!(
        (pushed.pushes, pushed.word_pushes),
        (2 * ROWS, 2 * ROWS + 1)
    );
    assert!(
        counters.completions <= counters.work_requests / 60 + 2,
        "one in 64 is told"
    );
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// F2: over all segments that a pair shares.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn segments_of_a_pair_share_an_order() {
    let (a, b) = pair();
    let mine = [1, 2].map(|index| a.segment(key(1, index)));
    let theirs = [1, 2].map(|index| b.segment(key(1, index)));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen < 1000 {
                seen = theirs[1].copy.load(AT);
                assert!(theirs[0].copy.load(AT) >= seen);
                std::thread::yield_now();
            }
        });
        for value in 1..=1000 {
            mine[0].push_word(AT, value);
            mine[1].say(AT, value);
        }
        wait_until("all is seen", || reader.is_finished());
    });
}

/// Pushes to a segment that the peer has not opened wait, and so do all later ones.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn pushes_wait_until_the_peer_has_made_the_segment() {
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    let early = a.segment(key(1, 1));
    early.say(AT, 7);
    mine.say(AT, 2);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(theirs.copy.load(AT), 1, "it is behind one that waits");
    // In the other direction nothing waits: OPEN is sent ahead of pushes.
    let crossing = b.segment(key(1, 2));
    crossing.say(AT, 8);
    let late = b.segment(key(1, 1));
    late.hear(AT, 7);
    theirs.hear(AT, 2);
    a.segment(key(1, 2)).hear(AT, 8);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn an_idle_pair_posts_nothing() {
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    wait_until("all is complete", || {
        a.core.is_still(b.id) && b.core.is_still(a.id)
    });
    let posted = || [(&a, b.id), (&b, a.id)].map(|(it, peer)| it.core.counters(peer));
    let before = posted();
    for _ in 0..1000 {
        a.core.poll();
        b.core.poll();
        mine.segment.wake(&PeerSet::EMPTY, WakeReason::Data);
    }
    std::thread::sleep(Duration::from_millis(100));
    let after = posted();
    let requests = |all: &[Option<crate::rdma::RdmaCounters>; 2]| {
        all.map(|it| it.map(|counters| counters.work_requests))
    };
    assert_eq!(requests(&before), requests(&after));
}

/// Ranges that touch are one write, whatever the number of messages: a batch is payload,
/// headers and guard, and one more of each for a ring that wraps around.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn batches_are_few_work_requests() {
    const PAYLOAD: usize = AT + 1024;
    const HEADERS: usize = AT + 20_480;
    const ACKS: usize = AT + 512;
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    let counters = || a.core.counters(b.id).expect("a peer");
    let mut guard = 1;
    let mut check = |payload: &[usize], headers: &[usize], requests: usize| {
        let before = counters();
        for at in payload {
            mine.segment.push(PAYLOAD + at * 256, 256, &mine.to);
        }
        for at in headers {
            mine.segment.push(HEADERS + at * 64, 64, &mine.to);
        }
        guard += 1;
        mine.push_word(AT, guard);
        // Acknowledgements of the same step belong to no batch.
        mine.segment.push(ACKS, 64, &mine.to);
        mine.segment.wake(&PeerSet::EMPTY, WakeReason::Data);
        theirs.hear(AT, guard);
        wait_until("all is complete", || a.core.is_still(b.id));
        let after = counters();
        let mut batches = before.batches;
        batches[requests - 1] += 1;
        assert_eq!(after.batches, batches, "{payload:?} {headers:?}");
        // All by one call.
        assert_eq!(after.chains[requests] - before.chains[requests], 1);
        let posted = after.work_requests - before.work_requests;
        assert_eq!(posted, requests as u64 + 1, "{payload:?} {headers:?}");
    };
    let all: Vec<usize> = (0..50).collect();
    let wrapped: Vec<usize> = (40..50).chain(0..20).collect();
    check(&[0], &[0], 3);
    check(&all, &all, 3);
    check(&wrapped, &all, 4);
    check(&all, &wrapped, 4);
    check(&wrapped, &wrapped, 5);
    // Nulls: the guard alone.
    check(&[], &[], 1);
}

/// A range that is longer than the longest write.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn long_ranges_go_in_several_writes() {
    const LEN: usize = 5 << 20;
    let (a, b) = pair();
    let [mine, theirs] = [&a, &b].map(|station| station.segment_of(key(1, 0), LEN));
    for at in (AT + 8..LEN).step_by(8) {
        mine.row.store(at, at as u64);
    }
    mine.segment.push(AT + 8, LEN - AT - 8, &mine.to);
    mine.say(AT, 1);
    theirs.hear(AT, 1);
    for at in (AT + 8..LEN).step_by(8) {
        assert_eq!(theirs.copy.load(at), at as u64);
    }
}
