//! The threads of a member that keep what is delivered, beside the polling thread.
//!
//! ```text
//!                 Volatile and Logged: history thread   copies a message, lets go of it, the next
//!   polling      /
//!   thread, with holds
//!                \ Logged: log thread   writes all that wait, lets go of them, syncs once: persisted
//! ```
//!
//! The slot of a message is free when each of them has let go. Both are awake; a message is handed
//! over for nothing (10 ns here). In the paper's systems the polling thread copies and appends, and
//! nothing is held: the log thread only syncs what is appended.

use std::collections::VecDeque;

use spindle_dds_core::{Delivery, Held};

use super::constants::{DISK, SYNC, WRITE, append_ns, keep_ns};
use super::experiment::{Experiment, Level, Lock};
use crate::network::TimedFabric;

/// Bytes of a record of our log besides the payload.
const RECORD_HEAD: u32 = 96;
/// Bytes of an entry of Derecho's log besides the payload.
const ENTRY_HEAD: u32 = 64;
/// Derecho syncs its data, and then their entries.
const DERECHO_SYNCS: u64 = 2;

/// A thread that keeps messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keeper {
    History,
    Log,
}

/// What a thread of a member keeps.
#[derive(Debug)]
struct Thread {
    keeper: Keeper,
    costs: ThreadCosts,
    waiting: VecDeque<Waiting>,
    /// What it works at; none while it is idle.
    work: Work,
    batch: Vec<Waiting>,
    /// When it had kept the last message of the run.
    done_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    None,
    Copies,
    Writes,
    /// What it has written is to be synced.
    Written,
    Syncs,
}

/// A delivered message that a thread has not kept yet.
#[derive(Debug)]
struct Waiting {
    held: Option<Held<TimedFabric>>,
    delivered_at: u64,
    is_last: bool,
    subgroup: usize,
    /// The position behind it in the order of its subgroup.
    end: u64,
}

/// Times of a thread's work.
#[derive(Debug, Clone, Copy)]
struct ThreadCosts {
    keep_ns: u64,
    /// Writing a message; `None` where the polling thread has written it.
    append_ns: Option<u64>,
    record: u64,
    syncs: u64,
}

/// What a member keeps of the messages that it delivers.
#[derive(Debug)]
pub(super) struct Storage {
    threads: Vec<Thread>,
    /// What the polling thread spends on keeping a message.
    pub(super) polling_ns: u64,
}

/// What is left after the end of a thread's work.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Messages that it lets go of.
    pub(super) released: Vec<Held<TimedFabric>>,
    /// Subgroups, and positions below which all is on the disk now.
    pub(super) persisted: Vec<(usize, u64)>,
}

impl Storage {
    pub(super) fn new(experiment: &Experiment) -> Self {
        let beside = experiment.lock == Lock::Free;
        let (level, size) = (experiment.level, experiment.size);
        let head = if beside { RECORD_HEAD } else { ENTRY_HEAD };
        let (keep_ns, append_ns) = (keep_ns(size), append_ns(size + head));
        let costs = ThreadCosts {
            keep_ns,
            append_ns: beside.then_some(append_ns),
            record: u64::from(size + head),
            syncs: if beside { 1 } else { DERECHO_SYNCS },
        };
        let mut storage = Self {
            threads: Vec::new(),
            polling_ns: 0,
        };
        if level >= Level::Volatile && beside {
            storage.threads.push(Thread::new(Keeper::History, costs));
        }
        if level >= Level::Volatile && !beside {
            storage.polling_ns += keep_ns;
        }
        if level >= Level::Logged {
            storage.threads.push(Thread::new(Keeper::Log, costs));
        }
        if level >= Level::Logged && !beside {
            storage.polling_ns += append_ns;
        }
        storage
    }

    /// Whether threads keep what is delivered.
    pub(super) fn has_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    /// A message is delivered.
    pub(super) fn take(&mut self, delivery: &Delivery<'_, TimedFabric>, at: u64, is_last: bool) {
        for thread in &mut self.threads {
            let holds = thread.keeper == Keeper::History || thread.costs.append_ns.is_some();
            thread.waiting.push_back(Waiting {
                held: holds.then(|| delivery.hold()),
                delivered_at: at,
                is_last,
                subgroup: delivery.subgroup.id().index(),
                end: delivery.position + 1,
            });
        }
    }

    /// Idle threads begin with what waits, at `now` or later. Returns when their work ends.
    pub(super) fn begin(&mut self, now: u64) -> Vec<(u64, Keeper)> {
        let threads = self.threads.iter_mut();
        let began = threads.filter_map(|thread| Some((thread.begin(now)?, thread.keeper)));
        began.collect()
    }

    /// A thread ends its work.
    pub(super) fn end(&mut self, keeper: Keeper, now: u64) -> Kept {
        let mut threads = self.threads.iter_mut();
        let thread = threads.find(|thread| thread.keeper == keeper);
        thread.map_or_else(Kept::default, |thread| thread.end(now))
    }

    /// When all of them had kept the last message of the run.
    pub(super) fn done_at(&self) -> Option<u64> {
        let mut done = self.threads.iter().map(|thread| thread.done_at);
        done.try_fold(0, |latest, at| Some(latest.max(at?)))
    }
}

impl Thread {
    fn new(keeper: Keeper, costs: ThreadCosts) -> Self {
        Self {
            keeper,
            costs,
            waiting: VecDeque::new(),
            work: Work::None,
            batch: Vec::new(),
            done_at: None,
        }
    }

    /// Begins its next work, if it is idle and there is any. Returns when that ends.
    fn begin(&mut self, now: u64) -> Option<u64> {
        match self.work {
            Work::None => {}
            Work::Written => return Some(self.sync(now)),
            Work::Copies | Work::Writes | Work::Syncs => return None,
        }
        let start = self.waiting.front()?.delivered_at.max(now);
        let has_come = |waiting: &&Waiting| waiting.delivered_at <= start;
        let count = match self.keeper {
            Keeper::History => 1,
            Keeper::Log => self.waiting.iter().take_while(has_come).count(),
        };
        self.batch.extend(self.waiting.drain(..count));
        match (self.keeper, self.costs.append_ns) {
            (Keeper::History, _) => {
                self.work = Work::Copies;
                Some(start + self.costs.keep_ns)
            }
            (Keeper::Log, Some(append_ns)) => {
                self.work = Work::Writes;
                Some(start + WRITE.value + append_ns * count as u64)
            }
            (Keeper::Log, None) => Some(self.sync(start)),
        }
    }

    fn sync(&mut self, start: u64) -> u64 {
        self.work = Work::Syncs;
        let bytes = self.batch.len() as u64 * self.costs.record;
        start + self.costs.syncs * SYNC.value + bytes * DISK.value / 1000
    }

    fn end(&mut self, now: u64) -> Kept {
        let batch = self.batch.iter_mut();
        let released = batch.filter_map(|waiting| waiting.held.take()).collect();
        let synced = self.batch.iter().filter(|_| self.work == Work::Syncs);
        let persisted = synced.map(|waiting| (waiting.subgroup, waiting.end));
        let kept = Kept {
            released,
            persisted: persisted.collect(),
        };
        if self.work == Work::Writes {
            self.work = Work::Written;
            return kept;
        }
        let has_last = self.batch.iter().any(|waiting| waiting.is_last);
        self.done_at = self.done_at.or_else(|| has_last.then_some(now));
        self.batch.clear();
        self.work = Work::None;
        kept
    }
}
