//! Sleeping and waking under every interleaving and reordering that loom knows: the
//! functions that the backends use, over loom's atomics.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p spindle-dds-transport --release --test loom_sleep
//! ```
#![cfg(loom)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use spindle_dds_transport::sleep::broadcast;
use spindle_dds_transport::sleep::news::{self, NewsBlock};
use spindle_dds_transport::sleep::{self, Word};
use spindle_dds_transport::{PeerSet, Rank, WakeInterest};

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
        broadcast::signal(self);
    }

    fn sleep_while(&self, before: u64) {
        let mut kernel = self.queue.lock().expect("no panic");
        while self.count.load(Ordering::Acquire) == before {
            kernel = self.woken.wait(kernel).expect("no panic");
        }
    }
}

impl broadcast::Doorbell for Doorbell {
    fn count_up(&self) {
        self.count.fetch_add(1, Ordering::Release);
    }

    fn wake_queued(&self) {
        let _kernel = self.queue.lock().expect("no panic");
        self.woken.notify_all();
    }
}

struct Group {
    /// A word of the pusher's row.
    data: AtomicU64,
    /// The sleep word, in the sleeper's row.
    epoch: AtomicU64,
    doorbell: Doorbell,
    /// A word of a second pusher's row.
    more: AtomicU64,
}

impl Group {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            data: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            doorbell: Doorbell::new(),
            more: AtomicU64::new(0),
        })
    }

    /// The pusher: stores, and wakes the sleeper if it sees an odd epoch.
    fn push(&self, word: &AtomicU64, value: u64) {
        word.store_release(value);
        let fenced = sleep::fence_before_wake();
        if WakeInterest::of_sleep_word(fenced.epoch(&self.epoch)).is_some() {
            self.doorbell.signal();
        }
    }

    /// The same without the fence.
    fn push_without_fence(&self, word: &AtomicU64, value: u64) {
        word.store_release(value);
        if WakeInterest::of_sleep_word(self.epoch.load_relaxed()).is_some() {
            self.doorbell.signal();
        }
    }

    /// One of two pushers whose words are of use together: stores, and wakes the sleeper only if
    /// the other one has stored, before the fence or after it. With `looks_again` false, it does not
    /// look after the fence.
    fn push_a_part(&self, mine: &AtomicU64, other: &AtomicU64, looks_again: bool) {
        mine.store_release(1);
        let is_there = || other.load(Ordering::Acquire) == 1;
        let was_there = is_there();
        let mut fenced = sleep::fence_before_wake();
        if !was_there {
            if !looks_again || !is_there() {
                return;
            }
            fenced = sleep::fence_before_wake();
        }
        if WakeInterest::of_sleep_word(fenced.epoch(&self.epoch)).is_some() {
            self.doorbell.signal();
        }
    }

    /// The sleeper: sleeps until `done`; each round has its own epoch.
    fn sleep_until(&self, done: impl Fn() -> bool) {
        for epoch in 1.. {
            if done() {
                return;
            }
            let before = self.doorbell.count.load(Ordering::Acquire);
            sleep::announce(&self.epoch, WakeInterest::Data.sleep_word(epoch));
            if !done() {
                self.doorbell.sleep_while(before);
            }
            self.epoch.store_release(epoch << 2);
        }
    }
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let group = Group::new();
        let pusher = Arc::clone(&group);
        let thread = thread::spawn(move || pusher.push(&pusher.data, 1));
        group.sleep_until(|| group.data.load(Ordering::Acquire) == 1);
        thread.join().expect("no panic");
    });
}

#[test]
fn two_pushers_may_use_one_doorbell() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let group = Group::new();
        let (first, second) = (Arc::clone(&group), Arc::clone(&group));
        let first = thread::spawn(move || first.push(&first.data, 1));
        let second = thread::spawn(move || second.push(&second.more, 1));
        let there = |word: &AtomicU64| word.load(Ordering::Acquire) == 1;
        group.sleep_until(|| there(&group.data) && there(&group.more));
        first.join().expect("no panic");
        second.join().expect("no panic");
    });
}

/// Two pushers whose words are of use together leave the wake-up to the last of them.
fn leave_waking_to_the_last(looks_again: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let group = Group::new();
        let (first, second) = (Arc::clone(&group), Arc::clone(&group));
        let first = thread::spawn(move || first.push_a_part(&first.data, &first.more, looks_again));
        let second =
            thread::spawn(move || second.push_a_part(&second.more, &second.data, looks_again));
        let there = |word: &AtomicU64| word.load(Ordering::Acquire) == 1;
        group.sleep_until(|| there(&group.data) && there(&group.more));
        first.join().expect("no panic");
        second.join().expect("no panic");
    });
}

#[test]
fn the_last_of_two_pushers_wakes_the_sleeper() {
    leave_waking_to_the_last(true);
}

#[test]
fn without_a_look_after_the_fence_loom_finds_the_lost_wake_up() {
    expect_deadlock(|| leave_waking_to_the_last(false));
}

#[test]
fn one_wake_up_an_epoch_is_enough() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let group = Group::new();
        let pusher = Arc::clone(&group);
        let thread = thread::spawn(move || {
            let mut woken_at = 0;
            for value in 1..=2 {
                pusher.data.store_release(value);
                let fenced = sleep::fence_before_wake();
                let epoch = fenced.epoch(&pusher.epoch);
                if WakeInterest::of_sleep_word(epoch).is_some() && epoch != woken_at {
                    woken_at = epoch;
                    pusher.doorbell.signal();
                }
            }
        });
        group.sleep_until(|| group.data.load(Ordering::Acquire) == 2);
        thread.join().expect("no panic");
    });
}

/// A process that sleeps on two doorbells: one of its own, and the broadcast doorbell.
struct Process {
    /// Its sleep word.
    epoch: AtomicU64,
    /// What the pusher has noted of it.
    woken_at: AtomicU64,
    own: Doorbell,
}

/// One pusher and two processes.
struct Party {
    data: AtomicU64,
    broadcast: AtomicU64,
    processes: [Process; 2],
}

/// The broadcast doorbell: the kernel has a queue for each doorbell, and a sleeper is in both
/// of its queues. Here it waits in its own, and the broadcast wakes both.
struct Broadcast<'a>(&'a Party);

impl broadcast::Doorbell for Broadcast<'_> {
    fn count_up(&self) {
        self.0.broadcast.fetch_add(1, Ordering::Release);
    }

    fn wake_queued(&self) {
        self.0.processes.iter().for_each(|it| it.own.wake_queued());
    }
}

impl Party {
    fn new() -> Arc<Self> {
        let process = || Process {
            epoch: AtomicU64::new(0),
            woken_at: AtomicU64::new(0),
            own: Doorbell::new(),
        };
        Arc::new(Self {
            data: AtomicU64::new(0),
            broadcast: AtomicU64::new(0),
            processes: [process(), process()],
        })
    }

    /// The pusher: stores, and wakes those that sleep, both by one wake-up.
    fn push(&self, value: u64) {
        self.data.store_release(value);
        let fenced = sleep::fence_before_wake();
        let asleep = |process: &Process| {
            let word = fenced.epoch(&process.epoch);
            WakeInterest::of_sleep_word(word).map(|_| word)
        };
        let mut promised = PeerSet::EMPTY;
        for (rank, process) in (0..).map(Rank).zip(&self.processes) {
            if asleep(process).is_some_and(|word| broadcast::promise(word, &process.woken_at)) {
                promised.insert(rank);
            }
        }
        let is_promised = |process: &Process| {
            asleep(process).is_none_or(|word| process.woken_at.load_relaxed() == word)
        };
        broadcast::wake_promised(
            &promised,
            &Broadcast(self),
            || self.processes.iter().all(is_promised),
            |peer| self.processes[peer.index()].own.signal(),
        );
    }

    /// A process: sleeps until it sees this value.
    fn sleep_until(&self, process: usize, value: u64) {
        let process = &self.processes[process];
        let done = || self.data.load(Ordering::Acquire) == value;
        let counts = || {
            let own = process.own.count.load(Ordering::Acquire);
            (own, self.broadcast.load(Ordering::Acquire))
        };
        for epoch in 1.. {
            if done() {
                return;
            }
            let noted = counts();
            sleep::announce(&process.epoch, WakeInterest::Data.sleep_word(epoch));
            if !done() {
                let mut kernel = process.own.queue.lock().expect("no panic");
                while counts() == noted {
                    kernel = process.own.woken.wait(kernel).expect("no panic");
                }
            }
            process.epoch.store_release(epoch << 2);
        }
    }
}

/// Two processes sleep until they see the last of the values that are pushed.
fn sleep_on_a_broadcast_doorbell(values: u64, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let party = Party::new();
        let (pusher, other) = (Arc::clone(&party), Arc::clone(&party));
        let pusher = thread::spawn(move || (1..=values).for_each(|value| pusher.push(value)));
        let other = thread::spawn(move || other.sleep_until(1, values));
        party.sleep_until(0, values);
        pusher.join().expect("no panic");
        other.join().expect("no panic");
    });
}

#[test]
fn no_wake_up_by_a_broadcast_is_lost() {
    sleep_on_a_broadcast_doorbell(1, 3);
}

#[test]
fn one_wake_up_an_epoch_is_enough_with_broadcasts() {
    sleep_on_a_broadcast_doorbell(2, 2);
}

/// A pusher that says where it has news, and a process that looks there only.
struct Newsroom<const ENTRIES: usize> {
    group: Arc<Group>,
    block: Block<ENTRIES>,
}

struct Block<const ENTRIES: usize> {
    count: AtomicU64,
    log: [AtomicU8; ENTRIES],
}

impl<const ENTRIES: usize> NewsBlock for Block<ENTRIES> {
    const ENTRIES: u64 = ENTRIES as u64;

    fn own_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn set_count(&self, count: u64) {
        self.count.store(count, Ordering::Release);
    }

    fn entry(&self, at: u64) -> u8 {
        self.log[at as usize].load(Ordering::Acquire)
    }

    fn set_entry(&self, at: u64, bucket: u8) {
        self.log[at as usize].store(bucket, Ordering::Release);
    }
}

/// What the process has found out.
#[derive(Default)]
struct Reader {
    seen: u64,
    /// Values of the words in buckets 0 and 1.
    values: [u64; 2],
}

impl<const ENTRIES: usize> Newsroom<ENTRIES> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            group: Group::new(),
            block: Block {
                count: AtomicU64::new(0),
                log: core::array::from_fn(|_| AtomicU8::new(0)),
            },
        })
    }

    fn word(&self, bucket: u8) -> &AtomicU64 {
        [&self.group.data, &self.group.more][usize::from(bucket)]
    }

    /// The pusher: stores into the word of a bucket, says so, and wakes the process if it
    /// sleeps.
    fn push(&self, bucket: u8, value: u64) {
        self.word(bucket).store_release(value);
        let fenced = news::raise_before_wake(&self.block, bucket);
        if WakeInterest::of_sleep_word(fenced.epoch(&self.group.epoch)).is_some() {
            self.group.doorbell.signal();
        }
    }

    /// Reads the words of the buckets that are named.
    fn look(&self, reader: &mut Reader) {
        let Reader { seen, values } = reader;
        let mut read = |bucket: u8| {
            values[usize::from(bucket)] = self.word(bucket).load(Ordering::Acquire);
        };
        if !news::look(&self.block, seen, &mut read) {
            read(0);
            read(1);
        }
    }

    /// The process: sleeps until it has found these values.
    fn sleep_until(&self, values: [u64; 2]) {
        let reader = RefCell::new(Reader::default());
        self.group.sleep_until(|| {
            let mut reader = reader.borrow_mut();
            self.look(&mut reader);
            reader.values == values
        });
    }
}

/// A process that looks only at what the news name is not left asleep.
#[test]
fn what_is_news_is_found_by_a_sleeper() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let room = Newsroom::<4>::new();
        let pusher = Arc::clone(&room);
        let thread = thread::spawn(move || {
            pusher.push(0, 1);
            pusher.push(1, 2);
        });
        room.sleep_until([1, 2]);
        thread.join().expect("no panic");
    });
}

/// A process that is awake looks while the log has room for two entries, and three are made. Each
/// of its looks finds at most one more, so none of them takes all buckets to be meant.
#[test]
fn news_are_found_though_their_log_is_overwritten() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let room = Newsroom::<2>::new();
        room.push(1, 1);
        let pusher = Arc::clone(&room);
        let thread = thread::spawn(move || {
            pusher.push(0, 2);
            pusher.push(0, 3);
        });
        let mut reader = Reader::default();
        room.look(&mut reader);
        room.look(&mut reader);
        thread.join().expect("no panic");
        room.look(&mut reader);
        assert_eq!(reader.values, [3, 1]);
    });
}

/// The fence is needed: without it loom finds a sleeper that is never woken.
#[test]
fn without_the_fence_loom_finds_the_lost_wake_up() {
    let model = || {
        loom::model(|| {
            let group = Group::new();
            let pusher = Arc::clone(&group);
            let thread = thread::spawn(move || pusher.push_without_fence(&pusher.data, 1));
            group.sleep_until(|| group.data.load(Ordering::Acquire) == 1);
            thread.join().expect("no panic");
        });
    };
    expect_deadlock(model);
}

fn expect_deadlock(model: impl FnOnce()) {
    let found = catch_unwind(AssertUnwindSafe(model)).expect_err("a deadlock");
    let message = found.downcast_ref::<String>().map(String::as_str);
    let message = message
        .or_else(|| found.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(message.contains("deadlock"), "{message}");
}
