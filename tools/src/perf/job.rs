//! A worker's job, and its answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_dds::{PeerPath, StreamCalls};

use super::figures::{Counts, Latencies};
use super::idle;
use super::logs::LogReport;
use super::options::{Doorbell, Durability, Level, Wait};
use super::place::Place;
use super::scenario::Scenario;
use super::usage::LinkSpan;

/// The job of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Id of the process that started it, with which it ends.
    pub(super) parent: u32,
    pub(super) role: Role,
    /// `spindle.directory` of the participants.
    pub(super) directory: PathBuf,
    /// The hosts to which participants are assigned in turn, if there are several.
    pub(super) places: Vec<Place>,
    /// The host of one more participant, which has nothing to do with what is measured.
    pub(super) outsider: Option<Place>,
    /// The host of this participant.
    pub(super) place: Option<Place>,
    /// Number of participants.
    pub(super) participants: u32,
    /// Number of participants that write.
    pub(super) writers: i32,
    pub(super) level: Level,
    pub(super) durability: Durability,
    /// `spindle.log.sync`; `None` for the product's default.
    pub(super) log_sync: Option<String>,
    pub(super) doorbell: Doorbell,
    pub(super) wait: Wait,
    pub(super) prefault: bool,
    /// Heartbeat timeout in milliseconds; `None` for the product's default.
    pub(super) limit_ms: Option<u64>,
    /// Size of the rings in messages and in bytes; `None` for the product's default.
    pub(super) ring_messages: Option<u32>,
    pub(super) ring_bytes: Option<u64>,
    /// Engine switches that are off.
    pub(super) without: Vec<String>,
    pub(super) copy: bool,
    pub(super) fill: bool,
    /// Readers use a listener instead of waiting for samples.
    pub(super) listener: bool,
    /// Number of idle topics beside the measured one.
    pub(super) idle_topics: u32,
    /// Readers poll for samples.
    pub(super) poll: bool,
    /// What participants do besides sending and taking.
    pub(super) scenario: Scenario,
    /// Bytes of payload of a sample.
    pub(super) size: usize,
    /// Measured samples of each writer.
    pub(super) samples: u64,
    /// Samples of each writer before those, which are not measured.
    pub(super) warm_up: u64,
    /// Nanoseconds from one sample of a writer to the next; 0 for as fast as possible.
    pub(super) period_ns: u64,
    /// Number of readers that have a writer which sends nothing.
    pub(super) silent: u32,
    /// Idle time that is measured.
    pub(super) idle_ns: u64,
}

impl Job {
    /// `spindle.log.sync`.
    pub(super) fn log_sync(&self) -> &str {
        self.log_sync.as_deref().unwrap_or("batch")
    }
}

/// The part of a worker in the measurement, with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Writer(u32),
    Reader(u32),
    /// Writes and reads; members with an index of `Job::writers` or more only read.
    Member(u32),
    Idler(u32),
    /// Has nothing to do with what is measured.
    Outsider,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Writer(index) => write!(f, "writer {index}"),
            Self::Outsider => f.write_str("the outsider"),
            Self::Reader(index) => write!(f, "reader {index}"),
            Self::Member(index) | Self::Idler(index) => write!(f, "participant {index}"),
        }
    }
}

/// The figures of a worker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// Samples sent, or taken and measured.
    pub(super) samples: u64,
    /// Samples that the reader did not receive.
    pub(super) lost: u64,
    /// Attempts of a BEST_EFFORT writer that found no room.
    pub(super) retries: u64,
    /// From the first measured sample to the last.
    pub(super) elapsed_ns: u64,
    /// From the first sample of a writer until all are acknowledged, if they are logged: then they are on
    /// disk.
    pub(super) on_disk_ns: u64,
    /// The participant's log.
    pub(super) log: Option<LogReport>,
    /// Processor time from the first view to the end.
    pub(super) cpu_ns: u64,
    /// Voluntary context switches of its threads in that time.
    pub(super) switches: u64,
    /// System calls of its streams in that time.
    pub(super) streams: StreamCalls,
    /// The link of its host in that time, if the host is a namespace.
    pub(super) link: Option<LinkSpan>,
    /// Processor time while idle.
    pub(super) idle_cpu_ns: u64,
    /// Latencies from when samples were due.
    pub(super) latency: Latencies,
    /// Latencies from when samples were sent.
    pub(super) uncorrected: Latencies,
    pub(super) counts: Counts,
    /// The path of a writer's samples to each peer.
    pub(super) peers: Vec<PeerPath>,
    /// For a member: the figures of its writers; the others are of its readers.
    pub(super) written: Option<Box<Self>>,
    /// Pushes while idle; for a member, while it stays after the last sample.
    pub(super) idle_traffic: idle::Traffic,
}
