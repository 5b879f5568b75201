use std::thread;

use super::super::doorbell_row::DOORBELL_ROW_LEN;
use super::*;
use crate::shm::descriptor;

fn sleep_state(futexes: bool) -> SleepState {
    let event = Arc::new(descriptor::event().expect("an event descriptor"));
    let slots = EventSlots::open(event).expect("sets");
    SleepState::new(Region::heap(DOORBELL_ROW_LEN), slots, futexes)
}

/// Connects the two: each has this number at the other. Returns what the waker needs.
fn wake_target(waker: &SleepState, sleeper: &SleepState, number: u16) -> Arc<WakeTarget> {
    let target = |of: &SleepState| {
        let event = of.slots.event().try_clone().expect("a copy");
        Arc::new(WakeTarget::new(of.row.clone(), event, number, number))
    };
    sleeper.add_peer(&target(waker));
    let target = target(sleeper);
    waker.add_peer(&target);
    target
}

/// Wakes those of the targets that sleep, as a segment does. Returns the number of system
/// calls.
fn wake(waker: &SleepState, targets: &[&WakeTarget]) -> u64 {
    let calls = || waker.counters.wake_calls.load(Ordering::Relaxed);
    let before = calls();
    let fenced = sleep::fence_before_wake();
    let mut promised = PromisedWakes::default();
    for (rank, target) in (0..).map(Rank).zip(targets) {
        if let Some(mode) = target.promise(&fenced, WakeReason::Data) {
            promised.add(rank, mode);
        }
    }
    let target = |peer: Rank| targets.get(peer.index()).copied();
    waker.wake_promised(&promised, &fenced, target);
    calls() - before
}

const LONG: Option<Duration> = Some(Duration::from_secs(20));

#[test]
fn a_peer_wakes_a_sleeper_once_an_epoch() {
    for futexes in [true, false] {
        let (sleeper, waker) = (sleep_state(futexes), sleep_state(true));
        let wake_target = wake_target(&waker, &sleeper, 3);
        for sleeps in 1..=3 {
            sleeper.announce_sleep(WakeInterest::Data);
            for _ in 0..2 {
                wake(&waker, &[&wake_target]);
            }
            assert_eq!(waker.counters.peer_wakes.load(Ordering::Relaxed), sleeps);
            assert!(sleeper.park(Sleeper::Poller, LONG));
            sleeper.announce_awake();
        }
        wake(&waker, &[&wake_target]);
        assert_eq!(
            waker.counters.peer_wakes.load(Ordering::Relaxed),
            3,
            "awake"
        );
    }
}

#[test]
fn a_new_peer_cuts_short_a_sleep_that_does_not_wait_for_its_doorbell() {
    let (sleeper, waker) = (sleep_state(true), sleep_state(true));
    thread::scope(|scope| {
        sleeper.announce_sleep(WakeInterest::Data);
        let parked = scope.spawn(|| sleeper.park(Sleeper::Poller, LONG));
        // It probably sleeps by now; if not, it must not fall asleep.
        thread::sleep(Duration::from_millis(20));
        wake_target(&waker, &sleeper, 1);
        assert!(parked.join().expect("no panic"));
    });
    sleeper.announce_awake();
    sleeper.announce_sleep(WakeInterest::Data);
    wake_target(&waker, &sleeper, 2);
    // Its own doorbell was signalled.
    assert!(sleeper.park(Sleeper::Poller, LONG));
}

#[test]
fn more_peers_than_futexes_change_sleep_to_the_event_descriptor() {
    let (sleeper, waker) = (sleep_state(true), sleep_state(true));
    let mut wake_targets = Vec::new();
    for doorbell in 1..=FUTEXES_MAX as u16 {
        wake_targets.push(wake_target(&waker, &sleeper, doorbell));
        sleeper.announce_sleep(WakeInterest::Data);
        let by_event = sleeper.word().load(Ordering::Relaxed) & BY_EVENT != 0;
        assert_eq!(by_event, usize::from(doorbell) == FUTEXES_MAX, "{doorbell}");
        let last = wake_targets.last().expect("one");
        wake(&waker, &[last]);
        assert!(sleeper.park(Sleeper::Poller, LONG), "{doorbell}");
        sleeper.announce_awake();
        assert_eq!(sleeper.word().load(Ordering::Relaxed) & (BY_EVENT | 3), 0);
    }
    sleeper.announce_follower(WakeInterest::Data);
    let by_event = || sleeper.word().load(Ordering::Relaxed) & BY_EVENT != 0;
    assert!(by_event(), "too many doorbells");
    sleeper.remove_peer(&waker.row);
    sleeper.announce_sleep(WakeInterest::Data);
    assert!(!by_event());
    sleeper.announce_follower(WakeInterest::Data);
    assert!(!by_event());
}

/// Both are parked; only the thread that announced last is woken.
#[test]
fn the_thread_that_announced_last_is_woken() {
    [true, false]
        .into_iter()
        .for_each(wake_the_thread_that_announced_last);
}

fn wake_the_thread_that_announced_last(futexes: bool) {
    let (sleeper, waker) = (sleep_state(futexes), sleep_state(true));
    let wake_target = wake_target(&waker, &sleeper, 3);
    let wake = || wake(&waker, &[&wake_target]);
    let at_once = Some(Duration::ZERO);
    sleeper.announce_sleep(WakeInterest::Data);
    sleeper.announce_follower_awake();
    sleeper.announce_follower(WakeInterest::Data);
    wake();
    assert!(!sleeper.park(Sleeper::Poller, at_once));
    assert!(sleeper.park(Sleeper::Follower, LONG));
    // The role is handed back: the poller has been parked all the while.
    sleeper.announce_follower(WakeInterest::Data);
    assert!(sleeper.announce_poller(WakeInterest::Data));
    wake();
    // By event it would return at once; but a thread that has handed the role back does not park.
    assert!(!futexes || !sleeper.park(Sleeper::Follower, at_once));
    assert!(sleeper.park(Sleeper::Poller, LONG));
    sleeper.note_doorbells();
    sleeper.announce_follower_awake();
    sleeper.announce_leased();
    wake();
    assert!(
        !sleeper.park(Sleeper::Poller, at_once),
        "awake to its peers"
    );
    assert!(sleeper.has_announced(), "seen under the engine's lock");
    assert!(sleeper.wake_myself(), "a nudge wakes the poller");
    assert!(sleeper.park(Sleeper::Poller, LONG));
}

#[test]
fn a_poller_that_does_not_wait_for_a_new_peer_is_not_announced() {
    let (sleeper, waker) = (sleep_state(true), sleep_state(true));
    sleeper.announce_sleep(WakeInterest::Data);
    wake_target(&waker, &sleeper, 1);
    assert!(!sleeper.announce_poller(WakeInterest::Data));
    assert!(
        sleeper.park(Sleeper::Poller, LONG),
        "woken, and notes its doorbells"
    );
    sleeper.note_doorbells();
    assert!(sleeper.announce_poller(WakeInterest::Data));
}

/// A waker, and sleepers that it has woken together so often that they hear its broadcasts.
struct Party {
    waker: SleepState,
    sleepers: Vec<SleepState>,
    targets: Vec<Arc<WakeTarget>>,
    /// Which of their threads sleeps.
    thread: Sleeper,
}

impl Party {
    fn new(sleepers: usize, thread: Sleeper) -> Self {
        let waker = sleep_state(true);
        let sleepers: Vec<_> = (0..sleepers).map(|_| sleep_state(true)).collect();
        let connect = |(number, sleeper)| wake_target(&waker, sleeper, number);
        let targets = (1..).zip(&sleepers).map(connect).collect();
        Self {
            waker,
            sleepers,
            targets,
            thread,
        }
    }

    fn hearing(sleepers: usize, thread: Sleeper) -> Self {
        let party = Self::new(sleepers, thread);
        for _ in 0..4 {
            party.round();
        }
        party
    }

    fn announce(&self, sleeper: usize) {
        let sleeper = &self.sleepers[sleeper];
        match self.thread {
            Sleeper::Poller => sleeper.announce_sleep(WakeInterest::Data),
            Sleeper::Follower => sleeper.announce_follower(WakeInterest::Data),
        }
    }

    fn announce_all(&self) {
        (0..self.sleepers.len()).for_each(|it| self.announce(it));
    }

    /// Ends a sleep; whether a doorbell had ended it.
    fn ends(&self, sleeper: usize) -> bool {
        let sleeper = &self.sleepers[sleeper];
        let woken = sleeper.park(self.thread, Some(Duration::ZERO));
        sleeper.announce_awake();
        woken
    }

    /// Wakes these; returns the number of system calls.
    fn wakes(&self, sleepers: &[usize]) -> u64 {
        let targets: Vec<_> = sleepers.iter().map(|&it| &*self.targets[it]).collect();
        wake(&self.waker, &targets)
    }

    /// All sleep, and are woken; returns the number of system calls.
    fn round(&self) -> u64 {
        let all: Vec<_> = (0..self.sleepers.len()).collect();
        self.announce_all();
        let calls = self.wakes(&all);
        assert!(all.iter().all(|&it| self.ends(it)), "all were woken");
        calls
    }
}

const THREADS: [Sleeper; 2] = [Sleeper::Poller, Sleeper::Follower];

#[test]
fn sleepers_that_are_woken_together_are_soon_woken_by_one_call() {
    for thread in THREADS {
        let party = Party::new(3, thread);
        let calls: Vec<_> = (0..6).map(|_| party.round()).collect();
        assert_eq!(calls, [3, 3, 1, 1, 1, 1], "{thread:?}");
        let woken = party.waker.counters.peer_wakes.load(Ordering::Relaxed);
        assert_eq!(woken, 18, "{thread:?}");
    }
}

#[test]
fn the_only_sleeper_of_a_waker_waits_for_no_broadcast() {
    for thread in THREADS {
        let party = Party::new(1, thread);
        for _ in 0..20 {
            assert_eq!(party.round(), 1);
            assert_eq!(party.sleepers[0].row.load(HEARD_WORD), 0, "{thread:?}");
        }
    }
}

#[test]
fn a_sleeper_that_is_not_concerned_is_not_woken_by_a_broadcast() {
    for thread in THREADS {
        let party = Party::hearing(3, thread);
        party.announce_all();
        assert_eq!(party.wakes(&[0, 1]), 2, "{thread:?}");
        assert!(party.ends(0) && party.ends(1));
        assert!(!party.ends(2), "{thread:?}");
        // It does not sleep now.
        party.announce(0);
        party.announce(1);
        assert_eq!(party.wakes(&[0, 1]), 1, "{thread:?}");
        assert!(party.ends(0) && party.ends(1));
    }
}

#[test]
fn a_sleeper_that_is_being_woken_already_hinders_no_broadcast() {
    for thread in THREADS {
        let party = Party::hearing(3, thread);
        party.announce_all();
        assert_eq!(party.wakes(&[2]), 1);
        assert_eq!(party.wakes(&[0, 1, 2]), 1, "{thread:?}");
        assert!((0..3).all(|it| party.ends(it)));
    }
}

#[test]
fn one_sleeper_is_woken_by_its_own_doorbell() {
    for thread in THREADS {
        let party = Party::hearing(2, thread);
        party.announce(0);
        assert_eq!(party.wakes(&[0, 1]), 1);
        assert!(party.ends(0));
        // That was the only one that slept on it.
        party.announce_all();
        assert_eq!(party.wakes(&[0]), 1);
        assert!(party.ends(0) && !party.ends(1), "{thread:?}");
    }
}

/// Peers do not wake it, but it sleeps on their broadcast doorbells.
#[test]
fn a_poller_behind_a_follower_is_not_woken_by_a_broadcast() {
    let party = Party::hearing(3, Sleeper::Poller);
    let last = &party.sleepers[2];
    thread::scope(|scope| {
        party.announce_all();
        let parked = scope.spawn(|| last.park(Sleeper::Poller, LONG));
        while last.row.load(PARKED_WORD) == 0 {
            thread::yield_now();
        }
        // A follower has taken the role, and looks.
        last.announce_awake();
        assert_eq!(party.wakes(&[0, 1, 2]), 2);
        // It sleeps, and is woken beside the others.
        last.announce_follower(WakeInterest::Data);
        assert!(party.ends(0) && party.ends(1));
        party.announce(0);
        party.announce(1);
        assert_eq!(party.wakes(&[0, 1, 2]), 3);
        assert!(last.park(Sleeper::Follower, LONG));
        assert!(!parked.is_finished());
        last.wake(Sleeper::Poller);
        assert!(parked.join().expect("no panic"));
    });
    assert_eq!(last.row.load(PARKED_WORD), 0);
}

#[test]
fn event_descriptors_are_signalled_beside_a_broadcast() {
    let mut party = Party::hearing(2, Sleeper::Poller);
    let by_event = sleep_state(false);
    party.targets.push(wake_target(&party.waker, &by_event, 3));
    party.sleepers.push(by_event);
    for _ in 0..3 {
        assert_eq!(party.round(), 2);
    }
}

#[test]
fn a_peer_that_is_gone_is_heard_no_longer() {
    let party = Party::hearing(2, Sleeper::Poller);
    party.announce_all();
    for sleeper in &party.sleepers {
        assert_ne!(sleeper.row.load(HEARD_WORD), 0);
        sleeper.remove_peer(&party.waker.row);
        sleeper.announce_awake();
        sleeper.announce_sleep(WakeInterest::Data);
        assert_eq!(sleeper.row.load(HEARD_WORD), 0);
    }
}
