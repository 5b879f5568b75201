//! Removes records from a log while it is written.
//!
//! What is on the disks of all loggers of a confirmed roster is *settled*: each later opening has one of
//! them, and takes it over. So no log that follows cuts it off, and it may be removed where later settled
//! records supersede it. Each log does so when it likes: logs of one topic have the same records but for those
//! that were removed, whose places they mark. How a log takes records of one that has removed some, see
//! `pull.rs`.
//!
//! A pass reads all that is settled, in steps. So it begins when half as much has come since the last one as
//! that has left.

use super::LogKeeper;
use crate::storage::history::HistoryLimits;
use crate::storage::log::{Compaction, Disk, InstanceOf, LogError, TopicLog};

/// What is known of the compaction of a log.
#[derive(Debug, Default)]
pub(super) struct Compacting {
    pass: Option<Compaction>,
    /// Below it all was settled when the pass began.
    settled: u64,
    /// The end of the settled segments when it was last asked whether a pass is due.
    seen_until: Option<u64>,
    /// Bytes of the settled segments after the last pass.
    left: u64,
    /// A pass within these limits was stopped by them, and so would be another one.
    stopped_by: Option<HistoryLimits>,
    /// There was no room, or another log takes records of this one: it goes on then.
    paused_until_ns: u64,
    failure: Option<String>,
}

/// When a full disk is tried again; and how long a log that asks for records is expected to ask for more.
const PAUSE_NS: u64 = 10_000_000_000;

/// The time, by two clocks.
#[derive(Debug, Clone, Copy)]
pub struct CompactionTime {
    /// That of the other methods.
    pub now_ns: u64,
    /// Since 1970.
    pub wall_ns: u64,
}

impl<D: Disk, H: AsRef<[u8]>> LogKeeper<D, H> {
    /// Removes what no reader gets that comes later, if it is time for it: KEEP_LAST in the log's head. Reads
    /// about `bytes_max`. All loggers have what is below `settled` on their disks. Gives whether there is
    /// more to do.
    pub fn compact_on(
        &mut self,
        settled: u64,
        instance_of: InstanceOf<'_>,
        time: CompactionTime,
        bytes_max: u64,
    ) -> bool {
        let limits = self.log.head().limits;
        let is_of = |it: &Compaction| *it.limits() == limits;
        self.compacting.pass = self.compacting.pass.take().filter(is_of);
        if self.is_dead() || !self.is_whole() {
            // What it has then is what it is given.
            self.compacting = Compacting {
                failure: self.compacting.failure.take(),
                ..Compacting::default()
            };
            return false;
        }
        if time.now_ns < self.compacting.paused_until_ns {
            return false;
        }
        if self.compacting.pass.is_none() && self.compacting.is_due(&self.log, settled) {
            let pass = Compaction::new(&self.log, settled, limits, time.wall_ns);
            self.compacting.pass = Some(pass);
            self.compacting.settled = settled;
        }
        let Some(pass) = &mut self.compacting.pass else {
            return false;
        };
        match pass.step(&mut self.log, instance_of, bytes_max) {
            Ok(true) => true,
            Ok(false) => {
                let is_stopped = pass.is_stopped_by_limit();
                self.compacting.stopped_by = is_stopped.then_some(limits);
                self.compacting.left = self.log.settled_bytes(self.compacting.settled);
                self.compacting.pass = None;
                false
            }
            Err(error) => {
                self.compaction_failed(error, time.now_ns);
                false
            }
        }
    }

    /// A log that cannot be compacted is written all the same, unless it has failed.
    fn compaction_failed(&mut self, error: LogError, now_ns: u64) {
        self.compacting.pass = None;
        match error {
            LogError::Full { .. } => {
                self.compacting.paused_until_ns = now_ns.saturating_add(PAUSE_NS);
                self.compacting.seen_until = None;
            }
            error if self.log.dead().is_some() => {
                self.note(Err(error), now_ns);
            }
            error => self.compacting.failure = Some(error.to_string()),
        }
    }

    /// Whether a pass is under way.
    pub fn is_compacting(&self) -> bool {
        self.compacting.pass.is_some()
    }

    /// Why the log is not compacted any more, if a part of it cannot be read.
    pub fn compaction_failure(&self) -> Option<&str> {
        self.compacting.failure.as_deref()
    }
}

impl Compacting {
    /// Another log takes records of this one.
    pub(super) fn was_asked(&mut self, now_ns: u64) {
        self.paused_until_ns = now_ns.saturating_add(PAUSE_NS).max(self.paused_until_ns);
    }

    fn is_due<D: Disk>(&mut self, log: &TopicLog<D>, settled: u64) -> bool {
        let limits = &log.head().limits;
        let is_wanted = limits.depth.is_some() && self.stopped_by.as_ref() != Some(limits);
        if !is_wanted || self.failure.is_some() {
            return false;
        }
        let until = Some(log.settled_until(settled));
        if self.seen_until == until {
            return false;
        }
        self.seen_until = until;
        let more = log.settled_bytes(settled).saturating_sub(self.left);
        more > 0 && more >= self.left / 2
    }
}
