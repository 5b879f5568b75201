//! The sink of a member: deliveries take time, and are counted.

use std::collections::VecDeque;

use crate::network::{TimedFabric, TimedNetwork};
use spindle_dds_core::membership::OutReason;
use spindle_dds_core::{Delivery, EngineEvent, Sink, SubgroupId};

use super::constants::{DELIVER, RECEIVE, copy_ns};
use super::experiment::{Experiment, Level};
use super::storage::Storage;

/// A member's upcalls.
pub(super) struct Receiver {
    network: TimedNetwork,
    node: usize,
    deliver_ns: u64,
    /// Whether delivery is unordered. Receipts are charged when a received count rises; own and
    /// unordered messages raise none, and are charged on delivery.
    unordered: bool,
    upcall_ns: u64,
    /// Deliveries of a subgroup after which it is done.
    enough: u64,
    /// Subgroups that are not done.
    open: usize,
    /// An upcall for the last deliveries is due.
    due: bool,
    pub(super) subgroups: Vec<Stream>,
    /// When the last message of the run was delivered.
    delivered_at: Option<u64>,
    pub(super) storage: Storage,
    /// From claim to delivery of my own messages.
    pub(super) latencies: Vec<u64>,
    pub(super) stopped: Option<OutReason>,
}

/// The deliveries of one subgroup.
#[derive(Debug, Default)]
pub(super) struct Stream {
    delivered: u64,
    /// Digest of the delivery order up to the end of the run.
    pub(super) digest: u64,
    /// Claim times of this member's messages that are not delivered yet.
    pub(super) claimed: VecDeque<u64>,
    /// Time for deliveries.
    pub(super) spent_ns: u64,
}

impl Receiver {
    pub(super) fn new(network: TimedNetwork, node: usize, experiment: &Experiment) -> Self {
        let copies = u64::from(experiment.copies);
        let storage = Storage::new(experiment);
        let copies_ns = copies * copy_ns(experiment.size);
        Self {
            network,
            node,
            deliver_ns: DELIVER.value + copies_ns + storage.polling_ns,
            unordered: experiment.level == Level::Unordered,
            upcall_ns: experiment.upcall_ns,
            enough: experiment.deliveries(),
            open: experiment.active,
            due: false,
            subgroups: (0..experiment.subgroups)
                .map(|_| Stream::default())
                .collect(),
            delivered_at: None,
            storage,
            latencies: Vec::new(),
            stopped: None,
        }
    }

    /// When the last message of the run was delivered, and kept as the level says.
    pub(super) fn done_at(&self) -> Option<u64> {
        Some(self.delivered_at?.max(self.storage.done_at()?))
    }
}

impl Sink<TimedFabric> for Receiver {
    fn deliver(&mut self, delivery: &Delivery<'_, TimedFabric>) {
        let is_mine = delivery.sender.index() == self.node;
        let ns = match is_mine || self.unordered {
            true => self.deliver_ns + RECEIVE.value,
            false => self.deliver_ns,
        };
        let now = self.network.spend(self.node, ns);
        self.due = true;
        let subgroup = &mut self.subgroups[delivery.subgroup.id().index()];
        subgroup.spent_ns += ns;
        if is_mine && let Some(claimed) = subgroup.claimed.pop_front() {
            self.latencies.push(now - claimed);
        }
        subgroup.delivered += 1;
        let is_last_here = subgroup.delivered == self.enough;
        let is_last = is_last_here && self.open == 1;
        if self.storage.has_threads() {
            self.storage.take(delivery, now, is_last);
        }
        if subgroup.delivered > self.enough {
            return;
        }
        let what = u64::from(delivery.sender.0) << 48 | delivery.header.writer_seq;
        subgroup.digest = (subgroup.digest ^ what)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
        if is_last_here {
            self.open -= 1;
            self.delivered_at = is_last.then_some(now);
        }
    }

    fn batch_end(&mut self) {
        if std::mem::take(&mut self.due) {
            self.network.spend(self.node, self.upcall_ns);
        }
    }

    fn event(&mut self, event: EngineEvent) {
        if let EngineEvent::Stopped(reason) = event {
            self.stopped = Some(reason);
        }
    }

    fn is_reading(&self, _: SubgroupId) -> bool {
        true
    }
}
