//! Room within RESOURCE_LIMITS, and instances that are reclaimed.
//!
//! An instance without writers is forgotten once its entries are taken. The standard keeps one that
//! is disposed of as long as it has a writer, for the sake of its generation counts (DDS 1.4
//! §2.2.3.22): a topic that disposes of each instance in the end would take ever more memory. So
//! such an instance is *replaceable* once its entries are taken: it does not count against
//! max_instances, and the one that is replaceable for longest is forgotten when there are more
//! than [`REPLACEABLE_MAX`], or when max_instances leaves no room for a new one.

use spindle_dds_idl_runtime::KeyHash;
use spindle_dds_qos::HistoryKind;

use super::{Cache, Offer};
use crate::condition::{InstanceStateMask, StateMasks};
use crate::status::RejectedReason;
use crate::subscription::InstanceState;

/// The most disposed instances with writers and without entries that are remembered.
pub(super) const REPLACEABLE_MAX: u64 = 1024;

const NOT_ALIVE: StateMasks = StateMasks {
    instance: InstanceStateMask::NOT_ALIVE,
    ..StateMasks::ANY
};

impl<P> Cache<P> {
    /// The limit that is in the way of one more instance.
    pub(super) fn instances_limit(&self) -> Option<RejectedReason> {
        let counted = self.instances.len() - self.instances.replaceable();
        let fits = self.limits.max_instances.allows(counted + 1);
        (!fits).then_some(RejectedReason::ByInstancesLimit)
    }

    /// The limit that is in the way of a sample of an instance that has so many and replaces none.
    pub(super) fn samples_limit(&self, of_instance: u64) -> Option<RejectedReason> {
        let limits = &self.limits;
        if !limits.max_samples.allows(self.samples + 1) {
            return Some(RejectedReason::BySamplesLimit);
        }
        let fits = limits.max_samples_per_instance.allows(of_instance + 1);
        (!fits).then_some(RejectedReason::BySamplesPerInstanceLimit)
    }

    /// Whether a sample replaces the oldest of its instance, which has so many.
    pub(super) fn replaces(&self, of_instance: u64) -> bool {
        let depth = u64::from(self.history.depth);
        self.history.kind == HistoryKind::KeepLast && of_instance >= depth
    }

    /// A message for which there is no room: it waits if a take can make room. Instances that are
    /// alive stay whatever is taken, and what would end them comes behind the message.
    #[cold]
    pub(super) fn refuse(&self, reason: RejectedReason, payload: P) -> Offer<P> {
        let can_wait = match reason {
            RejectedReason::ByInstancesLimit => self.has(&NOT_ALIVE),
            _ => true,
        };
        if self.holds_back && can_wait {
            Offer::Full { reason, payload }
        } else {
            Offer::Rejected { reason, payload }
        }
    }

    /// A new instance, within [`instances_limit`](Self::instances_limit).
    pub(super) fn insert_instance(&mut self, key: KeyHash) -> u32 {
        while !self.limits.max_instances.allows(self.instances.len() + 1)
            && let Some(oldest) = self.instances.oldest_replaceable()
        {
            self.instances.remove(oldest);
        }
        self.instances.insert(key)
    }

    /// Forgets an instance that has neither writers nor entries; one that is disposed of and has
    /// writers becomes replaceable.
    #[inline]
    pub(super) fn reclaim(&mut self, at: u32) {
        let instance = &self.instances[at];
        if instance.state != InstanceState::Alive && instance.len() == 0 {
            self.reclaim_empty(at);
        }
    }

    fn reclaim_empty(&mut self, at: u32) {
        if !self.instances[at].has_writers() {
            self.instances.remove(at);
            return;
        }
        self.instances.make_replaceable(at);
        if self.instances.replaceable() > REPLACEABLE_MAX
            && let Some(oldest) = self.instances.oldest_replaceable()
        {
            self.instances.remove(oldest);
        }
    }
}
