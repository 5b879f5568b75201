//! Counts of statuses: totals, and their changes since they were last read.

use std::collections::VecDeque;

use spindle_dds_qos::PolicyId;

use super::values::{LivelinessChangedStatus, QosPolicyCount};
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

/// Matched writers, which are alive, and writers whose participant failed, until the status has told
/// of that: they are not matched any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct LivelinessCounts {
    alive: TotalCount,
    not_alive: TotalCount,
    last: InstanceHandle,
    /// The writers that are counted as not alive: at most `UNTOLD_MAX`, the last ones.
    untold: VecDeque<InstanceHandle>,
}

const UNTOLD_MAX: usize = 1024;

impl LivelinessCounts {
    /// Matched, and alive.
    pub(crate) fn came(&mut self, endpoint: InstanceHandle) {
        if let Some(at) = self.untold.iter().position(|known| *known == endpoint) {
            self.untold.remove(at);
            self.not_alive.add(-1);
        }
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
        if self.untold.len() == UNTOLD_MAX {
            self.untold.pop_front();
            self.not_alive.add(-1);
        }
        self.untold.push_back(endpoint);
        self.not_alive.add(1);
    }

    /// The status, whose changes restart from zero. Writers that failed are counted no more after
    /// that.
    pub(crate) fn read(&mut self) -> LivelinessChangedStatus {
        let (alive_count, alive_count_change) = self.alive.read();
        let (not_alive_count, not_alive_count_change) = self.not_alive.read();
        self.untold.clear();
        self.not_alive.add(-not_alive_count);
        LivelinessChangedStatus {
            alive_count,
            not_alive_count,
            alive_count_change,
            not_alive_count_change,
            last_publication_handle: self.last,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Guid;

    fn writer(number: u8) -> InstanceHandle {
        InstanceHandle::of_entity(Guid([number; 16]))
    }

    fn read(counts: &mut LivelinessCounts) -> [i32; 4] {
        let it = counts.read();
        [
            it.alive_count,
            it.alive_count_change,
            it.not_alive_count,
            it.not_alive_count_change,
        ]
    }

    #[test]
    fn a_failed_writer_is_not_alive_in_one_status_and_then_not_counted() {
        let mut counts = LivelinessCounts::default();
        (0..3).for_each(|number| counts.came(writer(number)));
        assert_eq!(read(&mut counts), [3, 3, 0, 0]);
        counts.failed(writer(0));
        counts.failed(writer(1));
        assert_eq!(read(&mut counts), [1, -2, 2, 2]);
        assert_eq!(read(&mut counts), [1, 0, 0, -2]);
        assert_eq!(read(&mut counts), [1, 0, 0, 0]);
        counts.failed(writer(2));
        counts.came(writer(2));
        assert_eq!(read(&mut counts), [1, 0, 0, 0], "it is alive again");
    }

    #[test]
    fn a_month_of_crashes_leaves_nothing() {
        let mut counts = LivelinessCounts::default();
        let mut sum = [0; 2];
        for round in 0..500 {
            let writer = writer(round as u8);
            counts.came(writer);
            counts.failed(writer);
            if round % 7 == 0 {
                let [alive, alive_change, not_alive, not_alive_change] = read(&mut counts);
                sum[0] += alive_change;
                sum[1] += not_alive_change;
                assert_eq!(sum, [alive, not_alive]);
                assert!(not_alive <= 7);
            }
        }
        read(&mut counts);
        assert_eq!(counts.read().not_alive_count, 0);
        // Nor do more than are remembered, when the status is never read.
        for round in 0..3 * UNTOLD_MAX {
            let mut guid = [0; 16];
            guid[..8].copy_from_slice(&round.to_le_bytes());
            let writer = InstanceHandle::of_entity(Guid(guid));
            counts.came(writer);
            counts.failed(writer);
        }
        assert_eq!(counts.read().not_alive_count, UNTOLD_MAX as i32);
    }
}
