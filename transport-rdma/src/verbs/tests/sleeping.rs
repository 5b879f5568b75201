//! No push is overslept.

use core::time::Duration;

use super::harness::{AT, Netem, key, pair, wait_until};
use crate::fabric::{WakeInterest, WakeReason};

/// Both sleep between all words. A wait that takes too long means a lost wake-up.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn no_wake_up_is_lost_when_both_sleep() {
    const TURNS: u64 = 10_000;
    let (a, b) = pair();
    std::thread::scope(|scope| {
        for station in [&a, &b] {
            scope.spawn(move || {
                let half = station.segment(key(1, 0));
                let first = station.id == 1;
                for turn in 1..=TURNS {
                    if first {
                        half.say(AT, turn);
                    }
                    while half.copy.load(AT) < turn {
                        station.core.poll();
                        let look = || half.copy.load(AT) >= turn;
                        let in_time =
                            station
                                .sleeper
                                .sleep(&station.core, WakeInterest::Data, look);
                        assert!(in_time, "a wake-up of turn {turn} is lost");
                    }
                    if !first {
                        half.say(AT, turn);
                    }
                }
            });
        }
    });
    for (station, peer) in [(&a, b.id), (&b, a.id)] {
        let counters = station.core.counters(peer).expect("a peer");
        println!("{counters:?}");
        assert!(counters.doorbells_slept_on > 0 && counters.doorbells_sent <= 2 * TURNS + 2);
    }
    assert_eq!((a.failures(), b.failures()), (vec![], vec![]));
}

/// A thread pushes while the sleeper of its process has announced: nothing would look for the
/// peer's sleep word when it arrives.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_push_while_the_own_process_sleeps_sends_a_doorbell_anyway() {
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    a.core.announce_sleep(WakeInterest::Data.sleep_word(1));
    // Sleep words are in flight for a while.
    let _late = Netem::on(2, "delay 100ms");
    std::thread::scope(|scope| {
        for turn in 1..=5 {
            let (theirs, b) = (&theirs, &b);
            let sleeper = scope.spawn(move || {
                let look = || theirs.copy.load(AT) >= turn;
                b.sleeper.sleep(&b.core, WakeInterest::Data, look)
            });
            wait_until("it is announced", || b.sleeper.is_announced());
            std::thread::sleep(Duration::from_millis(10));
            mine.say(AT, turn);
            assert!(sleeper.join().expect("no panic"), "turn {turn}");
        }
    });
}

/// A sleeper for data is not woken by acknowledgements; a sleeper for both is.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn acknowledgements_wake_only_members_that_want_them() {
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let look = || theirs.copy.load(AT) == 1;
            b.sleeper.sleep(&b.core, WakeInterest::Room, look)
        });
        mine.push_word(AT, 1);
        mine.segment.wake(&mine.to, WakeReason::Stability);
        while !sleeper.is_finished() {
            a.core.poll();
            std::thread::yield_now();
        }
        assert!(sleeper.join().expect("no panic"));
    });
}

/// A sleep word that arrives after the last push is seen by the next poll.
#[test]
#[ignore = "needs RDMA devices: run it in testing/rdma-vm"]
fn a_late_sleep_word_is_answered_by_a_doorbell() {
    let (a, b) = pair();
    let (mine, theirs) = (a.segment(key(1, 0)), b.segment(key(1, 0)));
    let _late = Netem::on(2, "delay 100ms");
    std::thread::scope(|scope| {
        for turn in 1..=5 {
            let (theirs, b) = (&theirs, &b);
            let sleeper = scope.spawn(move || {
                let look = || theirs.copy.load(AT) >= turn;
                b.sleeper.sleep(&b.core, WakeInterest::Data, look)
            });
            wait_until("it is announced", || b.sleeper.is_announced());
            std::thread::sleep(Duration::from_millis(10));
            mine.say(AT, turn);
            while !sleeper.is_finished() {
                a.core.poll();
                std::thread::yield_now();
            }
            assert!(sleeper.join().expect("no panic"), "turn {turn}");
        }
    });
    let counters = a.core.counters(b.id).expect("a peer");
    assert_eq!(counters.doorbells_sent, 5, "one for each word");
}
