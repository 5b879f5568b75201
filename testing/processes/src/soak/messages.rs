//! What the main process and the participants tell each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a participant is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Process id of the main process, with which the participant ends.
    pub(super) parent: u32,
    /// The number of its writers: no other process has it, also not the one that it follows.
    pub(super) writer: u32,
    /// Where the participants meet.
    pub(super) directory: PathBuf,
    pub(super) topics: u32,
    /// From one sample of a writer to the next.
    pub(super) period_ns: u64,
    pub(super) limit_ms: Option<u64>,
}

/// What a participant is asked to do while it goes on: a line of its standard input. When that ends,
/// it leaves.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Request {
    /// Create a writer and a reader, and delete them.
    ComeAndGo,
    /// The same with no descriptor left to open.
    WithoutDescriptors,
}

/// A line of its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    /// How it is, twice a second.
    State(State),
    /// It has lost its group, for this reason.
    Out(String),
    /// Something was refused for want of resources.
    Refused(String),
    /// What was asked for is done.
    Done,
    /// It has left.
    Left(State),
    /// It gives up.
    Failed(String),
}

/// How a participant is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) is_member: bool,
    /// How often it lost its group.
    pub(super) outages: u32,
    /// Participants in its view.
    pub(super) members: u32,
    pub(super) written: u64,
    pub(super) taken: u64,
    /// SAMPLE_LOST of its readers.
    pub(super) missed: u64,
    /// Samples between those that came.
    pub(super) missing: u64,
    /// Samples that its writers lost.
    pub(super) gone: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
    /// Memory of its own (`RssAnon`).
    pub(super) memory_kib: u64,
}
