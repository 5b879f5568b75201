//! The line that a process prints.

use serde::Serialize;

/// What a process did. One line of JSON on its standard output.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) role: &'static str,
    /// Sent, or received.
    pub(crate) samples: u64,
    /// From the first of them to the last.
    pub(crate) seconds: f64,
    /// Numbers that never came.
    pub(crate) lost: u64,
    /// Samples that came after a later one.
    pub(crate) late: u64,
    /// Whether the last one came.
    pub(crate) complete: bool,
    /// Processor time of this process, from the first sample to the last.
    pub(crate) cpu_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

/// How long it took.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    /// `one_way` or `round_trip`.
    pub(crate) kind: &'static str,
    pub(crate) samples: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}
