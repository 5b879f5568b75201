//! What a run comes to.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds_core::BatchHistogram;

/// A run's figures. Times are virtual; what members have in common is their mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// From the start until the last delivery.
    pub(crate) seconds: f64,
    /// Application bytes delivered at a member in that time, GB/s (the paper's throughput).
    pub(crate) gb_per_s: f64,
    /// Messages delivered at a member a second.
    pub(crate) messages_per_s: f64,
    /// From claiming a message to its delivery at its sender: mean, µs.
    pub(crate) latency_mean_us: f64,
    /// ... median.
    pub(crate) latency_median_us: f64,
    /// Pushes posted by a member. A push to several peers counts once.
    pub(crate) requests: f64,
    /// Writes posted by a member: a push counts for each of its peers.
    pub(crate) writes: f64,
    /// Bytes that a member's NIC sent.
    pub(crate) wire_bytes: f64,
    /// Time for posting, as a part of all.
    pub(crate) posting_share: f64,
    /// Time for posting, s.
    pub(crate) posting_seconds: f64,
    /// Time for the predicates of the active subgroups, as a part of all.
    pub(crate) active_share: f64,
    /// Time that a sender waited for room, as a part of all.
    pub(crate) waiting_share: f64,
    /// Nulls sent by a sender.
    pub(crate) nulls: f64,
    /// Messages a publication covered.
    pub(crate) send: Batches,
    /// Messages a receive batch took, over all senders.
    pub(crate) receive: Batches,
    /// Messages a delivery batch covered.
    pub(crate) delivery: Batches,
}

/// Sizes of batches at all members.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Batches {
    /// Messages a batch.
    pub(crate) mean: f64,
    /// Smallest size of a bucket, and how many batches fell into it.
    pub(crate) buckets: Vec<(u64, u64)>,
}

impl Batches {
    pub(super) fn of(messages: u64, histograms: &[BatchHistogram]) -> Self {
        let mut buckets = BTreeMap::new();
        for (size, batches) in histograms.iter().flat_map(BatchHistogram::buckets) {
            *buckets.entry(size).or_insert(0) += batches;
        }
        let batches: u64 = buckets.values().sum();
        Self {
            mean: messages as f64 / batches.max(1) as f64,
            buckets: buckets.into_iter().collect(),
        }
    }
}
