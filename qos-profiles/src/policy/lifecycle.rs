//! The end of instances without writers.

use serde::{Deserialize, Serialize};

use crate::duration::Duration;

/// WRITER_DATA_LIFECYCLE: what unregistering an instance does (DDS 1.4 §2.2.3.21).
/// Default: it disposes the instance too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WriterDataLifecycle {
    /// Whether unregistering an instance also disposes it.
    pub autodispose_unregistered_instances: bool,
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        Self {
            autodispose_unregistered_instances: true,
        }
    }
}

/// READER_DATA_LIFECYCLE: when a reader forgets instances by itself (DDS 1.4
/// §2.2.3.22). Default: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReaderDataLifecycle {
    /// How long after the last writer is gone.
    pub autopurge_nowriter_samples_delay: Duration,
    /// How long after the instance was disposed.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self {
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}
