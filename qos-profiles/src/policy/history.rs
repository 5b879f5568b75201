//! How many samples are kept.

use serde::{Deserialize, Serialize};

use crate::label::labelled_enum;
use crate::length::Length;

labelled_enum! {
    /// Which samples of an instance are kept until they are taken.
    pub enum HistoryKind {
        /// The latest few.
        #[default]
        KeepLast = "KEEP_LAST_HISTORY_QOS",
        /// All, up to RESOURCE_LIMITS.
        KeepAll = "KEEP_ALL_HISTORY_QOS",
    }
}

/// HISTORY: which samples of each instance are kept (DDS 1.4 §2.2.3.18).
/// Default: the latest one.
///
/// For a reader, it says which samples stay in its cache until they are taken. For a
/// writer with VOLATILE durability it keeps nothing: a sample is gone from the writer
/// once it is delivered. For a TRANSIENT_LOCAL writer it says which samples are kept for
/// readers that join later. A sample that is committed has
/// its place in the agreed order and is never withdrawn, so KEEP_LAST cannot replace
/// one in flight by a newer one: a RELIABLE writer of either kind waits for room (at
/// most max_blocking_time), in its ring and in its [`ResourceLimits`]. When its
/// participant has lost its group and comes back, the writer sends again what was not
/// delivered: all of it with KEEP_ALL, the latest samples with KEEP_LAST.
///
/// `depth` must not exceed max_samples_per_instance, nor max_samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct History {
    /// Which samples.
    pub kind: HistoryKind,
    /// How many with [`HistoryKind::KeepLast`]; without meaning otherwise.
    pub depth: u32,
}

impl History {
    /// The latest `depth` samples of each instance.
    pub const fn keep_last(depth: u32) -> Self {
        Self {
            kind: HistoryKind::KeepLast,
            depth,
        }
    }

    /// All samples, up to RESOURCE_LIMITS.
    pub const fn keep_all() -> Self {
        Self {
            kind: HistoryKind::KeepAll,
            depth: 1,
        }
    }
}

impl Default for History {
    fn default() -> Self {
        Self::keep_last(1)
    }
}

/// RESOURCE_LIMITS: bounds on what an entity may hold (DDS 1.4 §2.2.3.19).
/// Default: none.
///
/// Of a reader: samples and instances in its cache. Of a writer that keeps history for
/// readers that join later: what it keeps. Of any other writer: samples in flight,
/// which are those that it has committed and that some participant has not released
/// yet, and those being built (loans that are out, writes under way); and instances
/// that it has registered or written and not unregistered. A RELIABLE writer at a
/// limit of samples waits at most max_blocking_time for one to be released, then
/// TIMEOUT; a BEST_EFFORT writer drops the sample and counts it. One instance more than
/// `max_instances` is OUT_OF_RESOURCES at once. Disposing of an instance takes a sample
/// like writing; unregistering takes none, so that it never waits for limits.
///
/// `max_samples` must not be below `max_samples_per_instance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceLimits {
    /// How many samples in all.
    pub max_samples: Length,
    /// How many instances.
    pub max_instances: Length,
    /// How many samples of one instance.
    pub max_samples_per_instance: Length,
}
