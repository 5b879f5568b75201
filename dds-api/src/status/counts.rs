//! Counts of statuses: totals, and their changes since they were last read.

use spindle_dds_qos::PolicyId;

use super::values::QosPolicyCount;
use crate::handle::InstanceHandle;

/// A total, and its change since it was last read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TotalCount {
    pub(crate) total: i32,
    pub(crate) change: i32,
}

impl TotalCount {
    pub(crate) fn add(&mut self, more: i32) {
        self.total = self.total.saturating_add(more);
        self.change = self.change.saturating_add(more);
    }

    /// The total and the change, which restarts from zero.
    pub(crate) fn read(&mut self) -> (i32, i32) {
        (self.total, std::mem::take(&mut self.change))
    }
}

/// Endpoints matched, ever and now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MatchCounts {
    pub(crate) ever: TotalCount,
    pub(crate) now: TotalCount,
    pub(crate) last: InstanceHandle,
}

impl MatchCounts {
    pub(crate) fn matched(&mut self, endpoint: InstanceHandle) {
        self.ever.add(1);
        self.now.add(1);
        self.last = endpoint;
    }

    pub(crate) fn unmatched(&mut self, endpoint: InstanceHandle) {
        self.now.add(-1);
        self.last = endpoint;
    }
}

/// Matched writers that are alive, and writers that failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LivelinessCounts {
    pub(crate) alive: TotalCount,
    pub(crate) not_alive: TotalCount,
    pub(crate) last: InstanceHandle,
}

impl LivelinessCounts {
    /// Matched, and alive.
    pub(crate) fn came(&mut self, endpoint: InstanceHandle) {
        self.alive.add(1);
        self.last = endpoint;
    }

    /// Deleted, or left with its participant: counted no more.
    pub(crate) fn left(&mut self, endpoint: InstanceHandle) {
        self.alive.add(-1);
        self.last = endpoint;
    }

    /// Its participant failed.
    pub(crate) fn failed(&mut self, endpoint: InstanceHandle) {
        self.left(endpoint);
        self.not_alive.add(1);
    }
}

/// Endpoints that do not match, and the policies that are incompatible.
#[derive(Debug, Clone, Default)]
pub(crate) struct IncompatibleCounts {
    pub(crate) count: TotalCount,
    pub(crate) last: Option<PolicyId>,
    pub(crate) policies: Vec<QosPolicyCount>,
}

impl IncompatibleCounts {
    /// One more endpoint, with these incompatible policies.
    pub(crate) fn add(&mut self, policies: impl IntoIterator<Item = PolicyId>) {
        self.count.add(1);
        for policy in policies {
            self.last = Some(policy);
            match self
                .policies
                .iter_mut()
                .find(|known| known.policy == policy)
            {
                Some(known) => known.count += 1,
                None => self.policies.push(QosPolicyCount { policy, count: 1 }),
            }
        }
    }
}
