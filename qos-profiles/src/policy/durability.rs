//! Whether samples outlive their writing, and the bounds of what is kept.

use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::label::labelled_enum;
use crate::length::Length;
use crate::policy::{History, HistoryKind, ResourceLimits};

labelled_enum! {
    /// How long samples are kept for readers that join later; the later value is
    /// the stricter.
    pub enum DurabilityKind {
        /// Not at all.
        #[default]
        Volatile = "VOLATILE_DURABILITY_QOS",
        /// As long as their writer exists, by its participant. HISTORY and
        /// RESOURCE_LIMITS of the writer bound what is kept.
        TransientLocal = "TRANSIENT_LOCAL_DURABILITY_QOS",
        /// Beyond their writer, in the memory of every participant that has a writer or
        /// reader of the topic with this durability. DURABILITY_SERVICE of the writer
        /// bounds what is kept.
        Transient = "TRANSIENT_DURABILITY_QOS",
        /// Beyond all processes, on disk. It is not built yet.
        Persistent = "PERSISTENT_DURABILITY_QOS",
    }
}

/// DURABILITY: whether readers that join later get earlier samples (DDS 1.4
/// §2.2.3.4). Default: they do not.
///
/// A reader gets what the lesser of its own durability and that of each writer promises;
/// a writer that offers less than a reader requests does not match it. RELIABILITY is a
/// matter of its own: a BEST_EFFORT writer or reader may have any durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Durability {
    /// How long samples are kept.
    pub kind: DurabilityKind,
}

impl From<DurabilityKind> for Durability {
    fn from(kind: DurabilityKind) -> Self {
        Self { kind }
    }
}

/// DURABILITY_SERVICE: the bounds of what is kept for TRANSIENT and PERSISTENT
/// durability (DDS 1.4 §2.2.3.5). Default: one sample an instance, no limits, no delay.
///
/// With a lesser durability it has no effect, as the standard has it: what a
/// TRANSIENT_LOCAL writer keeps is a matter of its HISTORY and RESOURCE_LIMITS. Of a
/// topic, it is what writers take over by `copy_from_topic_qos`. The history must fit in
/// the limits as with HISTORY and RESOURCE_LIMITS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DurabilityService {
    /// How long an instance is kept that has been disposed of and has no writer any more.
    pub service_cleanup_delay: Duration,
    /// Which samples are kept.
    pub history_kind: HistoryKind,
    /// How many samples an instance, with KEEP_LAST.
    pub history_depth: u32,
    /// How many samples in all.
    pub max_samples: Length,
    /// How many instances.
    pub max_instances: Length,
    /// How many samples an instance, whatever the history.
    pub max_samples_per_instance: Length,
}

impl DurabilityService {
    /// The history of the service as a HISTORY policy.
    pub fn history(&self) -> History {
        History {
            kind: self.history_kind,
            depth: self.history_depth,
        }
    }

    /// The limits of the service as a RESOURCE_LIMITS policy.
    pub fn resource_limits(&self) -> ResourceLimits {
        ResourceLimits {
            max_samples: self.max_samples,
            max_instances: self.max_instances,
            max_samples_per_instance: self.max_samples_per_instance,
        }
    }
}

impl Default for DurabilityService {
    fn default() -> Self {
        Self {
            service_cleanup_delay: Duration::ZERO,
            history_kind: HistoryKind::KeepLast,
            history_depth: 1,
            max_samples: Length::Unlimited,
            max_instances: Length::Unlimited,
            max_samples_per_instance: Length::Unlimited,
        }
    }
}
