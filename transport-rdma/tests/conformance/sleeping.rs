//! Sleeping: no wake-up is lost, and none is made without need.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_dds_transport::{FABRIC_AREA, Fabric, PeerSet, Rank, WakeInterest, WakeReason};

use crate::data::everybody_but;
use crate::harness::{Actor, Harness, Outcome, Sleep, Turn, ensure};

const A: usize = FABRIC_AREA;

pub(crate) fn only(rank: usize) -> PeerSet {
    [Rank(rank as u16)].into_iter().collect()
}

/// A member that sleeps whenever `work` finds nothing to do, like an engine: announce, look
/// once more, sleep, announce, look. It does not finish awake: where a peer's announcement may
/// be in flight, its own announcement sends the doorbell for its last push.
pub(crate) fn sleeper<'a, F: Fabric>(
    rank: usize,
    want: WakeInterest,
    mut work: impl FnMut(&F) -> Outcome<Turn> + Send + 'a,
) -> Actor<'a, F> {
    #[derive(PartialEq)]
    enum State {
        Awake,
        Announced,
        Sleeping,
    }
    let mut state = State::Awake;
    Actor::new(rank, move |fabric: &F| {
        if state == State::Sleeping {
            fabric.announce_awake();
            state = State::Awake;
        }
        let turn = work(fabric)?;
        match (turn, &state) {
            (Turn::Idle, State::Awake) => {
                fabric.announce_sleep(want);
                state = State::Announced;
                Ok(Turn::Busy)
            }
            (Turn::Idle, _) => {
                state = State::Sleeping;
                Ok(Turn::Asleep)
            }
            (Turn::Done, State::Awake) => {
                fabric.announce_sleep(want);
                fabric.announce_awake();
                Ok(turn)
            }
            (turn, State::Announced) => {
                fabric.announce_awake();
                state = State::Awake;
                Ok(turn)
            }
            (turn, _) => Ok(turn),
        }
    })
}

/// A token goes round; every member sleeps until it arrives.
pub(crate) fn no_wake_up_is_lost_when_a_token_goes_round<H: Harness>(group: &H) -> Outcome {
    let members: Vec<_> = (0..group.fabric(0).members()).collect();
    pass_a_token(group, &members, group.rounds())
}

fn pass_a_token<H: Harness>(group: &H, members: &[usize], rounds: u64) -> Outcome {
    let member = |(at, &rank): (usize, &usize)| {
        let before = members[(at + members.len() - 1) % members.len()];
        let after = members[(at + 1) % members.len()];
        let mut passed = 0;
        sleeper(rank, WakeInterest::Data, move |fabric: &H::F| {
            if passed == rounds {
                return Ok(Turn::Done);
            }
            // The first member passes the token on first.
            let needed = passed + u64::from(rank != 0);
            if fabric.row(Rank(before as u16)).load(A) < needed {
                return Ok(Turn::Idle);
            }
            passed += 1;
            fabric.push_word(A, passed, &only(after));
            fabric.wake(&only(after), WakeReason::Data);
            Ok(Turn::Busy)
        })
    };
    group.run(members.iter().enumerate().map(member).collect())
}

/// Every member sends as fast as the others receive, data to all and acknowledgements back,
/// and sleeps whenever there is nothing to do.
pub(crate) fn no_wake_up_is_lost_in_a_crowd<H: Harness>(group: &H) -> Outcome {
    const WINDOW: u64 = 2;
    let last = group.rounds();
    let ack = |of: Rank| A + 128 + of.index() * 8;
    let member = |rank: usize| {
        let mut sent = 0;
        let mut seen = vec![0; group.fabric(0).members()];
        sleeper(rank, WakeInterest::Room, move |fabric: &H::F| {
            let peers = everybody_but(fabric);
            let mut busy = false;
            for peer in peers.iter() {
                let now = fabric.row(peer).load(A);
                if now != seen[peer.index()] {
                    seen[peer.index()] = now;
                    fabric.push_word(ack(peer), now, &only(peer.index()));
                    fabric.wake(&only(peer.index()), WakeReason::Stability);
                    busy = true;
                }
            }
            let acked = peers
                .iter()
                .map(|peer| fabric.row(peer).load(ack(fabric.me())))
                .min();
            let acked = acked.unwrap_or(sent);
            if sent < last && sent < acked + WINDOW {
                sent += 1;
                fabric.push_word(A, sent, &peers);
                fabric.wake(&peers, WakeReason::Data);
                busy = true;
            }
            let all = peers.iter().all(|peer| seen[peer.index()] == last);
            Ok(match busy {
                true => Turn::Busy,
                false if acked == last && all => Turn::Done,
                false => Turn::Idle,
            })
        })
    };
    group.run((0..group.fabric(0).members()).map(member).collect())
}

/// Other threads of a process leave work for its sleeper, and nudge it.
pub(crate) fn no_nudge_is_lost<H: Harness>(group: &H) -> Outcome {
    leave_work(group, None)
}

/// They hold the lock under which the sleeper looks, and nudge under it.
pub(crate) fn no_nudge_under_the_lock_is_lost<H: Harness>(group: &H) -> Outcome {
    leave_work(group, Some(&Mutex::new(())))
}

fn leave_work<H: Harness>(group: &H, lock: Option<&Mutex<()>>) -> Outcome {
    let last = group.rounds();
    let (left, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    let own = || lock.map(|lock| lock.lock().expect("no panic"));
    let mut seen = 0;
    let engine = sleeper(0, WakeInterest::Data, |_: &H::F| {
        let _owner = own();
        let now = left.load(Ordering::Relaxed);
        if now == seen {
            return Ok(Turn::Idle);
        }
        seen = now;
        taken.store(seen, Ordering::Relaxed);
        Ok(if seen == last { Turn::Done } else { Turn::Busy })
    });
    let thread = Actor::new(0, |fabric: &H::F| {
        let now = left.load(Ordering::Relaxed);
        if taken.load(Ordering::Relaxed) < now {
            return Ok(Turn::Idle);
        }
        let owner = own();
        left.store(now + 1, Ordering::Relaxed);
        match owner {
            Some(_) => fabric.nudge_under_lock(),
            None => fabric.nudge(),
        }
        Ok(if now + 1 == last {
            Turn::Done
        } else {
            Turn::Busy
        })
    });
    group.run(vec![engine, thread])
}

/// Wake-ups of all members: some backends count them at the waker, some at the sleeper.
pub(crate) fn total_wakes<H: Harness>(group: &H) -> u64 {
    let members = 0..group.fabric(0).members();
    members
        .map(|rank| group.fabric(rank).counters().peer_wakes)
        .sum()
}

/// An awake member is not woken, and needs no nudge.
pub(crate) fn only_sleepers_are_woken<H: Harness>(group: &H) -> Outcome {
    let fabric = group.fabric(0);
    let to = everybody_but(fabric);
    for value in 1..=3 {
        fabric.push_word(A, value, &to);
        fabric.wake(&to, WakeReason::Data);
        fabric.nudge();
        fabric.nudge_under_lock();
        group.settle();
    }
    ensure!(total_wakes(group) == 0, "{} rang", total_wakes(group));
    ensure!(fabric.counters().nudges == 0, "{:?}", fabric.counters());
    group.fabric(1).announce_sleep(WakeInterest::Data);
    group.settle();
    // Where announcements travel, it may be woken for earlier pushes.
    let before = total_wakes(group);
    fabric.push_word(A, 4, &to);
    fabric.wake(&to, WakeReason::Data);
    group.settle();
    let after = total_wakes(group);
    ensure!(
        after == before + 1,
        "{} wake-ups for one sleeper",
        after - before
    );
    group.fabric(1).announce_awake();
    group.settle();
    fabric.push_word(A, 5, &to);
    fabric.wake(&to, WakeReason::Data);
    group.settle();
    ensure!(total_wakes(group) == after, "woken awake");
    Ok(())
}

/// A sleeper is woken for what its interest includes: data wakes all.
pub(crate) fn a_sleeper_is_woken_for_what_its_interest_includes<H: Harness>(group: &H) -> Outcome {
    let from = group.fabric(0);
    let woken_by = |reason| {
        let before = total_wakes(group);
        from.push_word(A, from.row(Rank(0)).load(A) + 1, &only(1));
        from.wake(&only(1), reason);
        group.settle();
        total_wakes(group) - before
    };
    let sleeps = |want| {
        group.fabric(1).announce_sleep(want);
        group.settle();
    };
    let wakes_up = || {
        group.fabric(1).announce_awake();
        group.settle();
    };
    let reasons = [WakeReason::Room, WakeReason::Stability, WakeReason::Data];
    for (interest, woken) in [
        (WakeInterest::Data, [0, 0, 1]),
        (WakeInterest::Stability, [0, 1, 1]),
        (WakeInterest::Room, [1, 1, 1]),
    ] {
        for (reason, expected) in reasons.into_iter().zip(woken) {
            sleeps(interest);
            let would_wake = from.would_wake(&only(1), reason);
            ensure!(
                would_wake == (expected == 1) || would_wake && !from.shares_memory(),
                "{reason:?} would wake a sleeper for {interest:?}: {would_wake}"
            );
            let wakes = woken_by(reason);
            ensure!(
                wakes == expected,
                "{wakes} wake-ups for {reason:?} of a sleeper for {interest:?}"
            );
            wakes_up();
        }
    }
    Ok(())
}

/// The death of a peer wakes a sleeper.
pub(crate) fn a_death_wakes_sleepers<H: Harness>(group: &H) -> Outcome {
    group.kill(1);
    let survivor = |rank: usize| {
        sleeper(rank, WakeInterest::Data, move |fabric: &H::F| {
            Ok(fabric.poll().map_or(Turn::Idle, |_| Turn::Done))
        })
    };
    let survivors = (0..group.fabric(0).members()).filter(|&rank| rank != 1);
    group.run(survivors.map(survivor).collect())
}

/// A fence does not prevent sleep. A sleep may end without cause, but not every one.
pub(crate) fn a_member_that_has_fenced_sleeps_until_woken<H: Harness>(group: &H) -> Outcome {
    let fabric = group.fabric(0);
    group.kill(1);
    group.settle();
    while fabric.poll().is_some() {}
    fabric.fence(Rank(1));
    let mut ends = vec![];
    while !ends.contains(&Sleep::Through) {
        ensure!(ends.len() < 20, "no sleep after a fence: {ends:?}");
        fabric.announce_sleep(WakeInterest::Data);
        ends.push(group.sleep(0));
        fabric.announce_awake();
    }
    Ok(())
}

/// After a fence of any member, the others wake a sleeper as before.
pub(crate) fn no_wake_up_is_lost_after_a_fence<H: Harness>(group: &H) -> Outcome {
    let members: Vec<_> = (0..group.fabric(0).members()).collect();
    let living: Vec<_> = members.iter().copied().filter(|&rank| rank != 1).collect();
    for &rank in &living {
        let fabric = group.fabric(rank);
        fabric.announce_sleep(WakeInterest::Data);
        fabric.fence(Rank(1));
        fabric.announce_awake();
    }
    pass_a_token(group, &living, group.rounds())
}

/// Each announcement is counted.
pub(crate) fn sleeps_are_counted<H: Harness>(group: &H) -> Outcome {
    let fabric = group.fabric(0);
    for _ in 0..3 {
        fabric.announce_sleep(WakeInterest::Data);
        fabric.announce_awake();
    }
    ensure!(fabric.counters().sleeps == 3, "{:?}", fabric.counters());
    Ok(())
}
