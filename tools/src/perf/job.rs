//! What a worker is told, and what it answers.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_dds::PeerPath;

use super::drill::Drill;
use super::figures::{Counts, Latencies};
use super::isolation::{Findings, Part};
use super::options::{Doorbell, Level, Wait};
use super::place::Place;
use super::{Failure, churn, idle};

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
    /// Length of a phase of the measurements of isolation and churn.
    pub(super) phase_ns: u64,
    /// In that measurement: whether the first topic keeps no pace.
    pub(super) free: bool,
    /// In the measurement of views: how many have to begin.
    pub(super) views: u64,
    /// In that measurement: whether something is left behind on purpose.
    pub(super) forget: bool,
}

impl Job {
    /// Of participants with parts of their own, in phases: at `rate_hz` samples a second
    /// of `size` bytes, each phase of so many seconds.
    pub(super) fn in_phases(
        role: Role,
        participants: usize,
        seconds: f64,
        rate_hz: f64,
        size: usize,
    ) -> Result<Self, Failure> {
        let phase = Duration::try_from_secs_f64(seconds)
            .map_err(|error| Failure::Workers(error.to_string()))?;
        if !(1.0..=RATE_MAX_HZ).contains(&rate_hz) {
            return Err(Failure::Workers(format!(
                "a rate is from 1 to {RATE_MAX_HZ}"
            )));
        }
        Ok(Self {
            parent: std::process::id(),
            role,
            directory: PathBuf::new(),
            places: Vec::new(),
            place: None,
            participants: participants as u32,
            writers: 1,
            level: Level::Atomic,
            doorbell: Doorbell::Auto,
            wait: Wait::Balanced,
            prefault: false,
            limit_ms: None,
            ring_messages: Some(1024),
            ring_bytes: Some(RING_BYTES),
            without: Vec::new(),
            // The readers' storage is the default one.
            copy: true,
            fill: false,
            listener: true,
            idle_topics: 0,
            poll: false,
            drill: Drill::default(),
            size,
            samples: 0,
            warm_up: 0,
            period_ns: (1e9 / rate_hz) as u64,
            silent: 0,
            idle_ns: 0,
            phase_ns: phase.as_nanos() as u64,
            free: false,
            views: 0,
            forget: false,
        })
    }
}

/// In measurements in phases.
const RING_BYTES: u64 = 1 << 20;
const RATE_MAX_HZ: f64 = 1e6;

/// Which worker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    Writer(u32),
    Reader(u32),
    /// It writes and reads; those behind the last that writes only read.
    Member(u32),
    Idler(u32),
    Isolation(Part),
    Churn(churn::Part),
    Views(churn::views::Part),
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Writer(index) => write!(f, "writer {index}"),
            Self::Reader(index) => write!(f, "reader {index}"),
            Self::Member(index) | Self::Idler(index) => write!(f, "participant {index}"),
            Self::Isolation(part) => write!(f, "{part:?}"),
            Self::Churn(part) => write!(f, "{part:?}"),
            Self::Views(part) => write!(f, "{part:?}"),
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
    /// Of a participant of the measurement of isolation.
    pub(super) isolation: Option<Findings>,
    /// Of a participant of the measurement of churn.
    pub(super) churn: Option<churn::Findings>,
    /// Of a participant of the measurement of views.
    pub(super) views: Option<churn::views::Findings>,
}
