//! What logs have done, in numbers that any thread may read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_dds_core::storage::log::LogFigures;

/// What a participant has written to the logs that it has open, since it opened each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LogCounters {
    /// Logs that are open: one for each topic.
    pub logs: u64,
    /// Those of them that have all records of their topic and are on its roster: acknowledgements wait
    /// for them, as `spindle.log.ack` says.
    pub ready: u64,
    /// Records appended: samples, and changes of the states of instances.
    pub records: u64,
    /// Bytes written to the files of records, headers included.
    pub bytes: u64,
    /// Calls of `fdatasync` for these files.
    pub syncs: u64,
    /// Syncs of other files and of directories: when a file of records begins, and when logs of the
    /// topic come and go.
    pub syncs_of_state: u64,
}

/// The counters of one log. The log thread writes them.
#[derive(Debug, Default)]
pub(super) struct SharedCounters {
    records: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
    syncs_of_state: AtomicU64,
    is_ready: AtomicBool,
}

impl SharedCounters {
    pub(super) fn set(&self, figures: &LogFigures, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
        self.records.store(figures.appended, Ordering::Relaxed);
        self.bytes.store(figures.written, Ordering::Relaxed);
        self.syncs.store(figures.syncs, Ordering::Relaxed);
        self.syncs_of_state
            .store(figures.syncs_of_state, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, sum: &mut LogCounters) {
        sum.logs += 1;
        sum.ready += u64::from(self.is_ready.load(Ordering::Relaxed));
        sum.records += self.records.load(Ordering::Relaxed);
        sum.bytes += self.bytes.load(Ordering::Relaxed);
        sum.syncs += self.syncs.load(Ordering::Relaxed);
        sum.syncs_of_state += self.syncs_of_state.load(Ordering::Relaxed);
    }
}
