//! What a worker is told, and what it answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_dds::PeerPath;

use super::drill::Drill;
use super::figures::{Counts, Latencies};
use super::idle;
use super::options::{Doorbell, Level, Wait};
use super::place::Place;

/// What a worker is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// The process that started it, with which it ends.
    pub(super) parent: u32,
    pub(super) role: Role,
    /// Where the participants of the measurement meet.
    pub(super) directory: PathBuf,
    /// The hosts on which they are dealt out, if there are several.
    pub(super) places: Vec<Place>,
    /// Where this one is.
    pub(super) place: Option<Place>,
    /// How many there are.
    pub(super) participants: u32,
    /// How many of them write.
    pub(super) writers: i32,
    pub(super) level: Level,
    pub(super) doorbell: Doorbell,
    pub(super) wait: Wait,
    pub(super) prefault: bool,
    /// Who is silent for so many milliseconds has failed, if not after the product's default.
    pub(super) limit_ms: Option<u64>,
    /// Of a ring, as its bytes: the product's default if it is `None`.
    pub(super) ring_messages: Option<u32>,
    pub(super) ring_bytes: Option<u64>,
    /// Switches of the engine that are off.
    pub(super) without: Vec<String>,
    pub(super) copy: bool,
    pub(super) fill: bool,
    /// The readers are told of samples by a listener, instead of waiting for them.
    pub(super) listener: bool,
    /// Topics beside the measured one, in which nothing is sent.
    pub(super) idle_topics: u32,
    /// The readers look again and again.
    pub(super) poll: bool,
    /// What else participants are asked to do.
    pub(super) drill: Drill,
    /// Bytes of payload.
    pub(super) size: usize,
    /// Samples of each writer, those for warming up not counted.
    pub(super) samples: u64,
    /// Samples of each writer that are sent first and not measured.
    pub(super) warm_up: u64,
    /// Nanoseconds from one sample of a writer to the next; 0 to send at once.
    pub(super) period_ns: u64,
    /// So many readers have a writer that sends nothing.
    pub(super) silent: u32,
    /// How long idle participants do nothing.
    pub(super) idle_ns: u64,
}

/// Which worker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Writer(u32),
    Reader(u32),
    /// It writes and reads; those behind the last that writes only read.
    Member(u32),
    Idler(u32),
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Writer(index) => write!(f, "writer {index}"),
            Self::Reader(index) => write!(f, "reader {index}"),
            Self::Member(index) | Self::Idler(index) => write!(f, "participant {index}"),
        }
    }
}

/// The one line that a worker prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Done(Box<Report>),
    Failed { error: String },
}

/// What a worker did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// Samples sent, or taken and measured.
    pub(super) samples: u64,
    /// Samples that this reader never saw.
    pub(super) lost: u64,
    /// Times that a BEST_EFFORT writer found no room and tried again.
    pub(super) retries: u64,
    /// From the first sample measured to the last.
    pub(super) elapsed_ns: u64,
    /// Processor time from the formation of the group to the end.
    pub(super) cpu_ns: u64,
    /// How often its threads went to sleep in that time.
    pub(super) switches: u64,
    /// Processor time while idle.
    pub(super) idle_cpu_ns: u64,
    /// From when samples were due.
    pub(super) latency: Latencies,
    /// From when samples were sent.
    pub(super) uncorrected: Latencies,
    pub(super) counts: Counts,
    /// How what a writer, or a participant that writes and reads, sent went to the others.
    pub(super) peers: Vec<PeerPath>,
    /// What a participant that writes and reads has written; the rest is what it has read.
    pub(super) written: Option<Box<Self>>,
    /// What it pushed while idle, or, of a member that stays, when all was over.
    pub(super) idle_traffic: idle::Traffic,
}
