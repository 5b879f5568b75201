//! What all subgroups of a participant share.

use crossbeam_utils::CachePadded;

use crate::counters::LiveCounters;
use crate::subgroup::idle_flag::LeftWork;
use crate::sync::{AtomicBool, AtomicU32};

/// What all epochs of a participant share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) counters: LiveCounters,
    /// Threads of the driver that wait for acknowledgements: on a line of their own.
    pub(crate) ack_waiters: CachePadded<AtomicU32>,
    /// Something was left in an epoch at rest.
    pub(crate) left_work: LeftWork,
    /// A thread has committed and found the engine being stepped, since a step began.
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
