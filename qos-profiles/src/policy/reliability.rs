//! Whether samples may get lost.

use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::label::labelled_enum;

labelled_enum! {
    /// Whether samples may get lost; the later value is the stricter.
    pub enum ReliabilityKind {
        /// They may.
        #[default]
        BestEffort = "BEST_EFFORT_RELIABILITY_QOS",
        /// They may not.
        Reliable = "RELIABLE_RELIABILITY_QOS",
    }
}

/// RELIABILITY: whether samples may get lost, and how long a write waits for room
/// (DDS 1.4 §2.2.3.14). Default: best effort for topics and readers, reliable for
/// writers ([`Reliability::WRITER_DEFAULT`]), 100 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reliability {
    /// Whether samples may get lost.
    pub kind: ReliabilityKind,
    /// How long a reliable write may wait for room; without meaning for readers.
    pub max_blocking_time: Duration,
}

impl Reliability {
    /// What writers have by default: reliable, 100 ms.
    pub const WRITER_DEFAULT: Self = Self {
        kind: ReliabilityKind::Reliable,
        max_blocking_time: Duration::from_millis(100),
    };

    /// Reliable, with writes that wait at most `max_blocking_time`.
    pub const fn reliable(max_blocking_time: Duration) -> Self {
        Self {
            kind: ReliabilityKind::Reliable,
            max_blocking_time,
        }
    }

    /// Best effort.
    pub const fn best_effort() -> Self {
        Self {
            kind: ReliabilityKind::BestEffort,
            ..Self::WRITER_DEFAULT
        }
    }
}

impl Default for Reliability {
    fn default() -> Self {
        Self::best_effort()
    }
}
