//! The results of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_dds_core::BatchHistogram;

/// The results of a run. Times are virtual; values of members are averaged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// From the start until the last delivery.
    pub(crate) seconds: f64,
    /// Application bytes delivered at a member in that time, GB/s (the paper's throughput).
    pub(crate) gb_per_s: f64,
    /// Messages delivered at a member per second.
    pub(crate) messages_per_s: f64,
    /// From claiming a message to its delivery at its sender: mean, µs.
    pub(crate) latency_mean_us: f64,
    /// The median of that latency, µs.
    pub(crate) latency_median_us: f64,
    /// Pushes posted by a member. A push to several peers counts once.
    pub(crate) requests: f64,
    /// Writes posted by a member: a push counts for each of its peers.
    pub(crate) writes: f64,
    /// Bytes that a member's NIC sent.
    pub(crate) wire_bytes: f64,
    /// Time for posting, as a share of the run.
    pub(crate) posting_share: f64,
    /// Time for posting, s.
    pub(crate) posting_seconds: f64,
    /// Time for the predicates of the active subgroups, as a share of the run.
    pub(crate) active_share: f64,
    /// Time that a sender waited for room, as a share of the run.
    pub(crate) waiting_share: f64,
    /// Nulls that a sender sent.
    pub(crate) nulls: f64,
    /// Messages per send batch.
    pub(crate) send: Batches,
    /// Messages per receive batch, over all senders.
    pub(crate) receive: Batches,
    /// Messages per delivery batch.
    pub(crate) delivery: Batches,
}

/// Sizes of batches at all members.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Batches {
    /// Messages per batch.
    pub(crate) mean: f64,
    /// The smallest size of each bucket, and the number of batches in it.
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
