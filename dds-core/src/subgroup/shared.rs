//! State that all subgroups of a participant share.

use crossbeam_utils::CachePadded;

use crate::counters::LiveCounters;
use crate::subgroup::idle_flag::LeftWork;
use crate::sync::{AtomicBool, AtomicU32};

/// State that all subgroups of a participant and its threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) counters: LiveCounters,
    /// Number of the driver's threads that wait for acknowledgements. On a cache line of its own.
    pub(crate) ack_waiters: CachePadded<AtomicU32>,
    /// Whether work was left in an idle subgroup.
    pub(crate) left_work: LeftWork,
    /// Whether a thread has committed and found the engine locked, or has raised what is persisted,
    /// since the last step began.
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
