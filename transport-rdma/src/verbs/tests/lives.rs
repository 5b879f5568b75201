//! Segments and queue pairs that are made and dropped.

use core::time::Duration;

use super::harness::{AT, Station, connect, key, pair, run, wait_until};

/// Number of segments of which the two stations have state.
fn remembered(station: &Station, peer: u128) -> (usize, usize) {
    let link = station.core.shared().link(peer).expect("a peer");
    // Takes completions.
    station.core.is_still(peer);
    let poster = link.outgoing.poster();
    poster
        .as_ref()
        .map_or((0, 0), |it| (it.segments.len(), it.retired()))
}

/// F6: late writes of a fenced peer land where they are not seen; the other segment is not
/// affected.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_fence_hides_late_writes_in_one_segment() {
    let (a, b) = pair();
    let mine = [0, 1].map(|index| a.segment(key(1, index)));
    let theirs = [0, 1].map(|index| b.segment(key(1, index)));
    mine[0].say(AT, 1);
    theirs[0].hear(AT, 1);
    theirs[0].segment.fence(theirs[0].peer);
    for value in 2..100 {
        mine[0].say(AT, value);
        mine[1].say(AT, value);
    }
    theirs[1].hear(AT, 99);
    wait_until("all is complete", || a.core.is_still(b.id));
    assert_eq!(theirs[0].copy.load(AT), 1);
    theirs[0].segment.fence(theirs[0].peer);
    drop(theirs);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// A segment is dropped while the peer still pushes there: pushes are discarded, nothing
/// breaks, and no state of it remains.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_segment_may_be_dropped_while_the_peer_pushes() {
    let (a, b) = pair();
    let (lasting, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    for round in 1..=50 {
        let (mine, other) = (a.segment(key(1, round)), b.segment(key(1, round)));
        (0..20).for_each(|value| mine.say(AT, value));
        drop(other);
        (0..20).for_each(|value| mine.say(AT, value));
        lasting.say(AT, u64::from(round));
        theirs.hear(AT, u64::from(round));
        drop(mine);
    }
    // Pushed and dropped, and still delivered to the peer that has it open.
    let (last, heard) = (a.segment(key(2, 0)), b.segment(key(2, 0)));
    last.say(AT, 5);
    drop(last);
    heard.hear(AT, 5);
    drop(heard);
    for (station, peer) in [(&a, b.id), (&b, a.id)] {
        wait_until("the rest is settled", || {
            remembered(station, peer) == (1, 0)
        });
    }
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// Pushes that wait for a segment that the peer forgets, or whose epoch is over, are discarded.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_segment_that_will_not_be_made_blocks_no_other() {
    let (a, b) = pair();
    let (lasting, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    let forgotten = a.segment(key(1, 1));
    forgotten.say(AT, 1);
    lasting.say(AT, 1);
    b.core.forget(key(1, 1));
    theirs.hear(AT, 1);
    let missed = a.segment(key(1, 2));
    missed.say(AT, 1);
    lasting.say(AT, 2);
    // A newer epoch begins at the peer.
    let next = b.segment(key(2, 0));
    theirs.hear(AT, 2);
    // A segment of an epoch that is over already.
    b.core.forget(key(1, 3));
    let late = a.segment(key(1, 3));
    late.say(AT, 1);
    lasting.say(AT, 3);
    theirs.hear(AT, 3);
    drop((forgotten, missed, late, next, lasting, theirs));
    a.core.forget(key(2, 0));
    for (station, peer) in [(&a, b.id), (&b, a.id)] {
        wait_until("all is settled", || remembered(station, peer) == (0, 0));
    }
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// Descriptors and device resources of this process.
fn resources() -> (String, usize) {
    let fds = std::fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .count();
    (run("rdma resource show"), fds)
}

#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn nothing_leaks_in_300_segments_and_100_connections() {
    let patience = Duration::from_secs(10);
    let (a, b) = (Station::new(1, patience), Station::new(2, patience));
    let bare = resources();
    connect(&a, &b);
    let connected = resources();
    for epoch in 1..=300 {
        let (mine, theirs) = (a.segment(key(epoch, 0)), b.segment(key(epoch, 0)));
        mine.say(AT, epoch);
        theirs.hear(AT, epoch);
    }
    for (station, peer) in [(&a, b.id), (&b, a.id)] {
        wait_until("all is settled", || remembered(station, peer) == (0, 0));
    }
    assert_eq!(resources(), connected);
    for turn in 0..100 {
        a.core.close(b.id);
        b.core.close(a.id);
        connect(&a, &b);
        // Every other time closed with an open segment.
        let halves = (turn % 2 == 0).then(|| {
            let key = key(1000 + turn, 0);
            (a.segment(key), b.segment(key))
        });
        if let Some((mine, theirs)) = &halves {
            mine.say(AT, turn + 1);
            theirs.hear(AT, turn + 1);
        }
        a.core.close(b.id);
        b.core.close(a.id);
        assert_eq!(
            (a.core.counters(b.id), b.core.is_proved(a.id)),
            (None, false)
        );
    }
    assert_eq!(resources(), bare);
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}
