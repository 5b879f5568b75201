//! The policies that are one span of time.

use serde::{Deserialize, Serialize};

use crate::duration::Duration;

/// DEADLINE: how often each instance is updated at least (DDS 1.4 §2.2.3.7).
/// Default: no promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deadline {
    /// The longest time between two updates of an instance.
    pub period: Duration,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            period: Duration::INFINITE,
        }
    }
}

impl From<Duration> for Deadline {
    fn from(period: Duration) -> Self {
        Self { period }
    }
}

/// LATENCY_BUDGET: a hint how long a sample may be held back for batching (DDS 1.4
/// §2.2.3.8). Default: not at all.
///
/// A writer matches a reader only if it offers no more than the reader asks for. That
/// is all its effect: nothing is ever held back, what is committed goes out at once
/// and batches are what has come together meanwhile, so every budget is kept as well
/// as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LatencyBudget {
    /// The delay that is acceptable; none is ever added.
    pub duration: Duration,
}

impl From<Duration> for LatencyBudget {
    fn from(duration: Duration) -> Self {
        Self { duration }
    }
}

/// LIFESPAN: how long after its writing a sample is valid (DDS 1.4 §2.2.3.16).
/// Default: for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lifespan {
    /// The time after which the sample is dropped.
    pub duration: Duration,
}

impl Default for Lifespan {
    fn default() -> Self {
        Self {
            duration: Duration::INFINITE,
        }
    }
}

impl From<Duration> for Lifespan {
    fn from(duration: Duration) -> Self {
        Self { duration }
    }
}

/// TIME_BASED_FILTER: the least time between two samples of an instance that a
/// reader wants (DDS 1.4 §2.2.3.12). Default: none, every sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TimeBasedFilter {
    /// The least separation of two samples of an instance.
    pub minimum_separation: Duration,
}

impl From<Duration> for TimeBasedFilter {
    fn from(minimum_separation: Duration) -> Self {
        Self { minimum_separation }
    }
}
