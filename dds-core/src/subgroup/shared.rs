//! State that all epochs of a participant share.

use crossbeam_utils::CachePadded;

use crate::counters::LiveCounters;
use crate::subgroup::idle_flag::LeftWork;
use crate::sync::{AtomicBool, AtomicU32};

/// State that all epochs of a participant share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) counters: LiveCounters,
    /// Number of driver threads that wait for acknowledgements. On a cache line of its own.
    pub(crate) ack_waiters: CachePadded<AtomicU32>,
    /// Set when work was left in an idle epoch.
    pub(crate) left_work: LeftWork,
    /// Set when a thread committed while another thread stepped the engine. Cleared as a step
    /// begins.
    pub(crate) left_commits: AtomicBool,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            counters: LiveCounters::new(),
            ack_waiters: CachePadded::new(AtomicU32::new(0)),
            left_work: LeftWork::new(),
            left_commits: AtomicBool::new(false),
        }
    }
}
