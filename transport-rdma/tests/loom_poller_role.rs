//! Poller, follower and pusher under every interleaving and reordering that loom knows:
//! the code that decides which thread of a process is woken, over doorbells like the
//! kernel's.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p spindle-dds-transport --release --test loom_poller_role
//! ```
#![cfg(loom)]

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use spindle_dds_transport::WakeInterest;
use spindle_dds_transport::poller_role::{PollerRole, RoleHolder};
use spindle_dds_transport::sleep::{self, Word};

/// A doorbell like the kernel's: a count, and sleeping while it is unchanged.
struct Doorbell {
    count: AtomicU64,
    queue: Mutex<()>,
    woken: Condvar,
}

impl Doorbell {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            queue: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    fn signal(&self) {
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

/// In a sleep word: the follower sleeps.
const FOLLOWER: u64 = 1 << 62;

struct Process {
    /// A word of the pusher's row.
    data: AtomicU64,
    /// The sleep word.
    word: AtomicU64,
    poller_doorbell: Doorbell,
    follower_doorbell: Doorbell,
    role: PollerRole,
}

impl Process {
    fn new() -> Arc<Self> {
        let process = Self {
            data: AtomicU64::new(0),
            word: AtomicU64::new(0),
            poller_doorbell: Doorbell::new(),
            follower_doorbell: Doorbell::new(),
            role: PollerRole::new(),
        };
        Arc::new(process)
    }

    /// With the poller asleep, as it is most of the time.
    fn with_poller_asleep() -> Arc<Self> {
        let process = Self::new();
        process.announce(0);
        process.role.poller_sleeps();
        process
    }

    /// Called by the thread that holds the role; `how` is `FOLLOWER` or 0.
    fn announce(&self, how: u64) {
        let epoch = ((self.word.load(Ordering::Relaxed) & !FOLLOWER) >> 2) + 1;
        sleep::announce(&self.word, WakeInterest::Data.sleep_word(epoch) | how);
    }

    fn awake(&self) {
        let word = self.word.load(Ordering::Relaxed) & !(FOLLOWER | 3);
        self.word.store_release(word);
    }

    /// Stores values, and wakes the thread that the sleep word names, once an epoch.
    fn push(&self, values: u64) {
        let mut woken_at = 0;
        for value in 1..=values {
            self.data.store_release(value);
            let word = sleep::fence_before_wake().epoch(&self.word);
            if WakeInterest::of_sleep_word(word).is_some() && word != woken_at {
                woken_at = word;
                match word & FOLLOWER {
                    0 => self.poller_doorbell.signal(),
                    _ => self.follower_doorbell.signal(),
                }
            }
        }
    }

    fn is_there(&self, value: u64) -> bool {
        self.data.load(Ordering::Acquire) == value
    }

    /// The poller, which was asleep and wakes once by its timeout, until it has seen the
    /// last value.
    fn poll(&self, last: u64) {
        loop {
            let before;
            let noted = self.poller_doorbell.note();
            match self.role.poller_woke() {
                RoleHolder::Poller => {
                    self.awake();
                    before = self.poller_doorbell.note();
                    self.announce(0);
                    if self.is_there(last) {
                        return;
                    }
                    self.role.poller_sleeps();
                }
                RoleHolder::Follower | RoleHolder::Leased(_) => {
                    before = noted;
                    if self.is_there(last) {
                        return;
                    }
                }
            }
            self.poller_doorbell.sleep_while(before);
        }
    }

    /// A follower that waits until there is a value, and hands the role back.
    fn follow(&self) {
        if !self.role.take() {
            return;
        }
        self.awake();
        while self.data.load(Ordering::Acquire) == 0 {
            let before = self.follower_doorbell.note();
            self.announce(FOLLOWER);
            if self.data.load(Ordering::Acquire) == 0 {
                self.follower_doorbell.sleep_while(before);
            }
            self.awake();
        }
        self.hand_back();
    }

    /// A follower that polls: it takes the role once and keeps it on a lease; later polls
    /// renew the lease, or look without the role.
    fn poll_on_lease(&self, times: usize) {
        for _ in 0..times {
            if !self.role.renew_lease() && self.role.take() {
                self.awake();
                self.data.load(Ordering::Acquire);
                // Fenced; peers wake no thread.
                let word = self.word.load(Ordering::Relaxed) & !(FOLLOWER | 3);
                sleep::announce(&self.word, word);
                self.role.lease();
                // It must look by its timeout from now on.
                self.poller_doorbell.signal();
            }
            self.data.load(Ordering::Acquire);
        }
    }

    /// The poller, which wakes by its timeout again and again while the role is on a lease,
    /// until it has seen the last value while it holds the role.
    fn poll_by_timeout(&self, last: u64) {
        let mut leased = None;
        loop {
            let is_mine = match self.role.poller_woke() {
                RoleHolder::Poller => true,
                RoleHolder::Leased(term) if leased == Some(term) => self.role.poller_reclaims(term),
                RoleHolder::Leased(term) => {
                    leased = Some(term);
                    false
                }
                RoleHolder::Follower => false,
            };
            if !is_mine {
                // Some time passes.
                thread::yield_now();
                continue;
            }
            leased = None;
            self.awake();
            let before = self.poller_doorbell.note();
            self.announce(0);
            if self.is_there(last) {
                return;
            }
            self.role.poller_sleeps();
            self.poller_doorbell.sleep_while(before);
        }
    }

    fn hand_back(&self) {
        self.role.begin_hand_back();
        self.announce(0);
        // The second look on the poller's behalf; what it finds, the poller has to see here.
        let seen = self.data.load(Ordering::Acquire);
        if self.role.hand_back() || seen == 2 {
            self.poller_doorbell.signal();
        }
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A follower waits and hands back while values come; the poller, which its timeout wakes
/// at any time, sees the last one. Without the mark this deadlocks.
#[test]
fn no_wake_up_is_lost_while_a_follower_hands_back() {
    model(move || {
        let process = Process::with_poller_asleep();
        let (pusher, follower) = (Arc::clone(&process), Arc::clone(&process));
        let pusher = thread::spawn(move || pusher.push(2));
        let follower = thread::spawn(move || follower.follow());
        process.poll(2);
        pusher.join().expect("no panic");
        follower.join().expect("no panic");
    });
}

/// Of two threads that want the role at the same time, one gets it.
#[test]
fn one_follower_at_a_time_writes_the_sleep_word() {
    model(|| {
        let process = Process::with_poller_asleep();
        let followers = [0, 1].map(|_| {
            let process = Arc::clone(&process);
            thread::spawn(move || {
                if process.role.take() {
                    let before = process.word.load(Ordering::Relaxed);
                    process.announce(FOLLOWER);
                    let after = process.word.load(Ordering::Relaxed);
                    assert_eq!((after & !FOLLOWER) >> 2, ((before & !FOLLOWER) >> 2) + 1);
                    process.hand_back();
                }
            })
        });
        for follower in followers {
            follower.join().expect("no panic");
        }
        assert_eq!(process.role.poller_woke(), RoleHolder::Poller);
    });
}

/// A follower polls, and stops: the poller is not woken meanwhile, and finds what has come.
#[test]
fn no_wake_up_is_lost_after_the_last_poll_on_a_lease() {
    model(|| {
        let process = Process::with_poller_asleep();
        let (pusher, follower) = (Arc::clone(&process), Arc::clone(&process));
        let pusher = thread::spawn(move || pusher.push(1));
        let follower = thread::spawn(move || follower.poll_on_lease(2));
        process.poll_by_timeout(1);
        pusher.join().expect("no panic");
        follower.join().expect("no panic");
    });
}
