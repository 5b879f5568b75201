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
