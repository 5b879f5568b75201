//! Keeper, guest and pusher under every interleaving and every reordering that loom
//! knows: the very code that decides who of a process is woken, over bells as the kernel
//! gives them.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p spindle-dds-transport --release --test loom_duty
//! ```
#![cfg(loom)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::poller_role::{PollerRole, RoleHolder};
use spindle_dds_transport::sleep::{self, Word};

/// A bell as the kernel gives it: a count, and sleeping while it is unchanged.
struct Bell {
    count: AtomicU64,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Bell {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            queue: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    fn ring(&self) {
        self.count.fetch_add(1, Ordering::Release);
        let _kernel = self.queue.lock().expect("no panic");
        self.woken.notify_all();
    }

    fn note(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn sleep_while(&self, before: u64) {
        let mut kernel = self.queue.lock().expect("no panic");
        while self.note() == before {
            kernel = self.woken.wait(kernel).expect("no panic");
        }
    }
}

const GUESTS: u64 = 1 << 62;

struct Process {
    /// Of the pusher's row.
    data: AtomicU64,
    /// The sleep word; its epochs count up.
    word: AtomicU64,
    keepers: Bell,
    guests: Bell,
    duty: PollerRole,
}

/// How the keeper behaves that the clock wakes.
type Woke = fn(&PollerRole) -> RoleHolder;

impl Process {
    fn new() -> Arc<Self> {
        let process = Self {
            data: AtomicU64::new(0),
            word: AtomicU64::new(0),
            keepers: Bell::new(),
            guests: Bell::new(),
            duty: PollerRole::new(),
        };
        Arc::new(process)
    }

    /// Has the keeper asleep, as it is most of the time.
    fn with_keeper_asleep() -> Arc<Self> {
        let process = Self::new();
        process.announce(0);
        process.duty.poller_sleeps();
        process
    }

    /// By whoever has the duty.
    fn announce(&self, who: u64) {
        let epoch = ((self.word.load(Ordering::Relaxed) & !GUESTS) >> 2) + 1;
        sleep::announce(&self.word, WakeInterest::Data.sleep_word(epoch) | who);
    }

    fn awake(&self) {
        let word = self.word.load(Ordering::Relaxed) & !(GUESTS | 3);
        self.word.store_release(word);
    }

    /// Stores, and rings whom the word names, once in each epoch.
    fn push(&self, values: u64) {
        let mut rung_at = 0;
        for value in 1..=values {
            self.data.store_release(value);
            let word = sleep::fence_before_wake().epoch(&self.word);
            if WakeInterest::of_sleep_word(word).is_some() && word != rung_at {
                rung_at = word;
                match word & GUESTS {
                    0 => self.keepers.wake(),
                    _ => self.guests.wake(),
                }
            }
        }
    }

    fn is_there(&self, value: u64) -> bool {
        self.data.load(Ordering::Acquire) == value
    }

    /// The keeper, which was asleep and is woken by the clock once, until it has seen the
    /// last value.
    fn keep(&self, last: u64, woke: Woke) {
        loop {
            let before;
            let noted = self.keepers.note();
            match woke(&self.duty) {
                RoleHolder::Poller => {
                    self.awake();
                    before = self.keepers.note();
                    self.announce(0);
                    if self.is_there(last) {
                        return;
                    }
                    self.duty.poller_sleeps();
                }
                RoleHolder::Follower | RoleHolder::Leased(_) => {
                    before = noted;
                    if self.is_there(last) {
                        return;
                    }
                }
            }
            self.keepers.sleep_while(before);
        }
    }

    /// A guest that waits until there is something, and leaves.
    fn visit(&self) {
        if !self.duty.take() {
            return;
        }
        self.awake();
        while self.data.load(Ordering::Acquire) == 0 {
            let before = self.guests.note();
            self.announce(GUESTS);
            if self.data.load(Ordering::Acquire) == 0 {
                self.guests.sleep_while(before);
            }
            self.awake();
        }
        self.leave();
    }

    /// Somebody who polls: it takes the duty once, and goes away on trust; then it looks in
    /// while it is trusted, or looks without it.
    fn glance(&self, times: usize) {
        for _ in 0..times {
            if !self.duty.renew_lease() && self.duty.take() {
                self.awake();
                self.data.load(Ordering::Acquire);
                // Away: fenced, and nobody is rung.
                let word = self.word.load(Ordering::Relaxed) & !(GUESTS | 3);
                sleep::announce(&self.word, word);
                self.duty.lease();
                // It is to look by the clock from now on.
                self.keepers.wake();
            }
            self.data.load(Ordering::Acquire);
        }
    }

    /// The keeper, whom the clock wakes again and again while a guest is away, until it has
    /// seen the last value with the duty in its hands.
    fn keep_by_the_clock(&self, last: u64) {
        let mut away = None;
        loop {
            let is_mine = match self.duty.poller_woke() {
                RoleHolder::Poller => true,
                RoleHolder::Leased(visit) if away == Some(visit) => self.duty.poller_reclaims(visit),
                RoleHolder::Leased(visit) => {
                    away = Some(visit);
                    false
                }
                RoleHolder::Follower => false,
            };
            if !is_mine {
                // Some time passes.
                thread::yield_now();
                continue;
            }
            away = None;
            self.awake();
            let before = self.keepers.note();
            self.announce(0);
            if self.is_there(last) {
                return;
            }
            self.duty.poller_sleeps();
            self.keepers.sleep_while(before);
        }
    }

    fn leave(&self) {
        self.duty.begin_hand_back();
        self.announce(0);
        // The second look, on the keeper's behalf: what it finds is the keeper's to see here.
        let seen = self.data.load(Ordering::Acquire);
        if self.duty.hand_back() || seen == 2 {
            self.keepers.wake();
        }
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A guest waits and leaves, while values come; the keeper, which the clock wakes at any
/// time, sees the last one.
fn guest_and_keeper(values: u64, woke: Woke) {
    model(move || {
        let process = Process::with_keeper_asleep();
        let (pusher, guest) = (Arc::clone(&process), Arc::clone(&process));
        let pusher = thread::spawn(move || pusher.push(values));
        let guest = thread::spawn(move || guest.visit());
        process.keep(values, woke);
        pusher.join().expect("no panic");
        guest.join().expect("no panic");
    });
}

#[test]
fn nobody_oversleeps_what_comes_while_a_guest_leaves() {
    guest_and_keeper(2, PollerRole::poller_woke);
}

/// The planted bug: the keeper uses a ring up, and sleeps on.
#[test]
fn without_the_mark_loom_finds_the_lost_ring() {
    let model = || guest_and_keeper(2, PollerRole::keeper_woke_unmarked);
    let found = catch_unwind(AssertUnwindSafe(model)).expect_err("a deadlock");
    let message = found.downcast_ref::<String>().map(String::as_str);
    let message = message
        .or_else(|| found.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(message.contains("deadlock"), "{message}");
}

/// Two that wait at the same time: one is the guest, and each other one leaves it to it.
#[test]
fn one_guest_at_a_time_writes_the_word() {
    model(|| {
        let process = Process::with_keeper_asleep();
        let guests = [0, 1].map(|_| {
            let process = Arc::clone(&process);
            thread::spawn(move || {
                if process.duty.take() {
                    let before = process.word.load(Ordering::Relaxed);
                    process.announce(GUESTS);
                    let after = process.word.load(Ordering::Relaxed);
                    assert_eq!((after & !GUESTS) >> 2, ((before & !GUESTS) >> 2) + 1);
                    process.leave();
                }
            })
        });
        for guest in guests {
            guest.join().expect("no panic");
        }
        assert_eq!(process.duty.poller_woke(), RoleHolder::Poller);
    });
}

/// Who polls, and stops: the keeper is not rung meanwhile, and finds what has come.
#[test]
fn nobody_oversleeps_what_comes_after_the_last_glance() {
    model(|| {
        let process = Process::with_keeper_asleep();
        let (pusher, poller) = (Arc::clone(&process), Arc::clone(&process));
        let pusher = thread::spawn(move || pusher.push(1));
        let poller = thread::spawn(move || poller.glance(2));
        process.keep_by_the_clock(1);
        pusher.join().expect("no panic");
        poller.join().expect("no panic");
    });
}
