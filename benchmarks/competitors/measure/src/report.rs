//! The line that a process prints.

use serde::Serialize;

/// The result of a process: one line of JSON on its standard output.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) role: &'static str,
    /// Samples sent or received.
    pub(crate) samples: u64,
    /// Time from the first of them to the last.
    pub(crate) seconds: f64,
    /// Sample numbers that never arrived.
    pub(crate) lost: u64,
    /// Samples that arrived after one with a higher number.
    pub(crate) late: u64,
    /// Whether the last sample arrived.
    pub(crate) complete: bool,
    /// Processor time of this process, from the first sample to the last.
    pub(crate) cpu_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

/// Quantiles of the latency.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    /// `one_way` or `round_trip`.
    pub(crate) kind: &'static str,
    pub(crate) samples: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}
