//! The command lines.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use spindle_dds::properties::engine_switches;

use super::netns::LinkShape;
use super::scenario::{Last, Scenario, duration};

/// The hosts of the participants, and the fabric between them.
#[derive(Debug, Clone, Args)]
pub(crate) struct Hosts {
    /// Fabric that carries the samples [default: shm].
    #[arg(long, value_enum)]
    pub(crate) fabric: Option<Fabric>,
    /// Addresses of this machine; each acts as a host, and participants are assigned to them in
    /// turn. With --fabric tcp or rdma.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    pub(crate) hosts: Vec<IpAddr>,
    /// RDMA device of each host. With --fabric rdma.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// File with a secret (`spindle.secret_file`): what goes between hosts by TCP is encrypted. With
    /// --fabric tcp or rdma.
    #[arg(long, value_name = "PATH")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The namespaces of the hosts, which `netns` has made.
    #[arg(skip)]
    pub(crate) namespaces: Option<Box<Namespaces>>,
}

impl Hosts {
    /// What the links between namespaces do to packets.
    pub(super) fn links(&self) -> Option<LinkShape> {
        self.namespaces.as_ref().map(|it| it.shape)
    }

    pub(crate) fn fabric(&self) -> Fabric {
        self.fabric.unwrap_or(Fabric::Shm)
    }
}

/// Hosts that are network namespaces.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces {
    /// The path of each, by which processes enter it.
    pub(crate) paths: Vec<PathBuf>,
    /// What the links do to packets.
    pub(crate) shape: LinkShape,
    /// The address and the path of one more host, for a participant that has nothing to do with
    /// what is measured.
    pub(crate) outsider: Option<(IpAddr, PathBuf)>,
}

/// Options of both throughput and latency.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) on: Hosts,
    /// Number of writers, each in its own process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) writers: u32,
    /// Number of readers, each in its own process.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) readers: u32,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 1024)]
    pub(crate) size: usize,
    /// Delivery level of the writers.
    #[arg(long, value_enum, default_value_t = Level::Atomic)]
    pub(crate) level: Level,
    /// DURABILITY of writers and readers: what participants keep of the samples.
    #[arg(long, value_enum, default_value_t = Durability::Volatile)]
    pub(crate) durability: Durability,
    /// When logs are synced (`spindle.log.sync`): each, batch, or interval:<ms>. With --durability
    /// persistent [default: the product's].
    #[arg(long, value_name = "WHEN")]
    pub(crate) log_sync: Option<String>,
    /// Copy samples in and out instead of building and reading them in place.
    #[arg(long)]
    pub(crate) copy: bool,
    /// Write and sum every byte instead of the first and the last.
    #[arg(long)]
    pub(crate) fill: bool,
    /// Readers use a listener instead of a thread that waits for samples.
    #[arg(long)]
    pub(crate) listener: bool,
    /// Number of idle topics beside the measured one, with the same writers and readers.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=500))]
    pub(crate) idle_topics: u32,
    /// Readers poll for samples, and yield the processor while there are none.
    #[arg(long, conflicts_with = "listener")]
    pub(crate) poll: bool,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
    /// Print a JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Properties of the participants.
#[derive(Debug, Clone, Args)]
pub(crate) struct Tuning {
    /// Kernel object on which polling threads sleep.
    #[arg(long, value_enum, default_value_t = Doorbell::Auto)]
    pub(crate) doorbell: Doorbell,
    /// How long waiting threads and polling threads spin before they sleep.
    #[arg(long, value_enum, default_value_t = Wait::Balanced)]
    pub(crate) wait: Wait,
    /// Allocate all memory of the rings at the start (`spindle.prefault`).
    #[arg(long)]
    pub(crate) prefault: bool,
    /// Messages in flight of one writer (`spindle.ring.messages`) [default: the product's].
    #[arg(long)]
    pub(crate) ring_messages: Option<u32>,
    /// Bytes in flight of one writer (`spindle.ring.bytes`) [default: the product's; more if
    /// --ring-messages, or 256 samples of more than 64 KiB, need it].
    #[arg(long)]
    pub(crate) ring_bytes: Option<u64>,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Time limit of the measurement in seconds.
    #[arg(long, default_value_t = 600)]
    pub(crate) timeout: u64,
}

/// `spindle perf throughput`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ThroughputOptions {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Samples sent by each writer.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) samples: u64,
    /// Number of participants that both write and read, instead of writers and readers.
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(2..=32),
        conflicts_with_all = ["writers", "readers", "poll"]
    )]
    pub(crate) members: Option<u32>,
    /// Engine optimisations to switch off.
    #[arg(long, value_name = "SWITCH,...", value_delimiter = ',', value_parser = switches())]
    pub(crate) without: Vec<String>,
    /// Switch all engine optimisations off: the paper's baseline. A silent writer then stops the
    /// others.
    #[arg(long, conflicts_with = "without")]
    pub(crate) baseline: bool,
    /// Number of members that write [default: all]. The others only read.
    #[arg(long, requires = "members", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) senders: Option<u32>,
    /// The last writing member waits this long after each sample (for example 100us), in a loop
    /// that yields the processor. It stops when it has received all samples of the others, which
    /// are what is measured.
    #[arg(long, requires = "members", value_name = "TIME", value_parser = duration)]
    pub(crate) delay_one: Option<Duration>,
    /// Like --delay-one, but it sleeps, so a timer wakes it for each sample.
    #[arg(
        long,
        requires = "members",
        conflicts_with = "delay_one",
        value_name = "TIME",
        value_parser = duration
    )]
    pub(crate) sleep_one: Option<Duration>,
    /// The last writing member sends nothing. It deletes its writer when it has received all
    /// samples of the others, or after this time (for example 2s), which lets blocked members
    /// continue.
    #[arg(
        long,
        requires = "members",
        conflicts_with_all = ["delay_one", "sleep_one"],
        value_name = "TIME",
        value_parser = duration
    )]
    pub(crate) silent_one: Option<Duration>,
    /// Run a thread beside the participants that only sleeps, for this long at a time (for
    /// example 100us): shows what its wake-ups alone cost them.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) beside: Option<Duration>,
    /// Number of topics, each in its own subgroup. Each member writes in each of them, with one
    /// thread per topic.
    #[arg(
        long,
        requires = "members",
        conflicts_with = "senders",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=32)
    )]
    pub(crate) topics: u32,
    /// Time to wait before the first sample (for example 200ms), so that a short measurement
    /// does not include the set-up of many topics.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) settle: Option<Duration>,
    /// Listeners take this long for each sample (for example 100us). Implies --listener.
    #[arg(long, conflicts_with = "poll", value_name = "TIME", value_parser = duration)]
    pub(crate) upcall: Option<Duration>,
    /// With --upcall: listeners take that time once per call, not per sample.
    #[arg(long, requires = "upcall")]
    pub(crate) upcall_once: bool,
    /// Also measure the time of each sample from before the claim until it is taken. Writers send
    /// as fast as they can, so most of it is queueing.
    #[arg(long)]
    pub(crate) stamp: bool,
    /// Writing members stay this long after the last sample (for example 5s) and count their
    /// pushes while idle.
    #[arg(long, requires = "members", value_name = "TIME", value_parser = duration)]
    pub(crate) still: Option<Duration>,
}

/// `spindle perf latency`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LatencyOptions {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Samples sent by each writer, after a tenth more to warm up.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) samples: u64,
    /// Samples per second of each writer.
    #[arg(long, default_value_t = 1_000.0)]
    pub(crate) rate: f64,
    /// Number of readers that also have a writer of the topic which sends nothing, and so takes
    /// part in the total order.
    #[arg(long, default_value_t = 0)]
    pub(crate) silent: u32,
}

/// `spindle perf idle`.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdleOptions {
    #[command(flatten)]
    pub(crate) on: Hosts,
    /// Heartbeat timeout in milliseconds (`spindle.failure.limit_ms`) [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Number of participants, each with a writer and a reader.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=32))]
    pub(crate) participants: u32,
    /// Idle time in seconds.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// Number of wake-ups that are measured afterwards.
    #[arg(long, default_value_t = 51)]
    pub(crate) wakes: u64,
    /// Measure this doorbell only [default: both].
    #[arg(long, value_enum)]
    pub(crate) doorbell: Option<Doorbell>,
    /// Print a JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spindle perf work`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkOptions {
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 128)]
    pub(crate) size: usize,
    /// Number of threads that sum each sample.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=32))]
    pub(crate) readers: u32,
    /// Number of samples that are written and summed.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Print a JSON object instead of a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The fabric between participants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fabric {
    /// Shared memory of this host.
    Shm,
    /// TCP between hosts.
    Tcp,
    /// RDMA between hosts. Needs the cargo feature `verbs`.
    Rdma,
}

/// Delivery level of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Delivered on receipt: BEST_EFFORT.
    Unordered,
    /// Delivered when stable, in one total order: RELIABLE.
    Atomic,
}

/// DURABILITY of writers and readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Durability {
    /// Nothing is kept.
    Volatile,
    /// The writer's participant keeps all samples.
    TransientLocal,
    /// Each participant keeps the last sample, as DURABILITY_SERVICE says by default.
    Transient,
    /// Each participant logs all samples, in a directory that is removed afterwards.
    Persistent,
}

/// Values of the property `spindle.doorbell`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Doorbell {
    /// The one that the machine supports.
    Auto,
    /// Futex words in the peers' rows.
    Futex,
    /// Event file descriptors.
    Event,
}

/// Values of the property `spindle.wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wait {
    /// Briefly.
    Balanced,
    /// Some milliseconds.
    Spin,
    /// Not at all.
    Block,
}

fn switches() -> PossibleValuesParser {
    PossibleValuesParser::new(engine_switches())
}

impl ThroughputOptions {
    /// What participants do besides sending and taking.
    pub(super) fn scenario(&self) -> Scenario {
        let ns = |time: Option<Duration>| time.map(|time| time.as_nanos() as u64);
        let delayed = ns(self.delay_one).map(Last::DelayedNs);
        let sleeps = ns(self.sleep_one).map(Last::SleepsNs);
        let silent = ns(self.silent_one).map(Last::SilentNs);
        Scenario {
            last: delayed.or(sleeps).or(silent).unwrap_or_default(),
            settle_ns: ns(self.settle).unwrap_or(0),
            more_topics: self.topics - 1,
            is_stamped: self.stamp,
            upcall_ns: ns(self.upcall).unwrap_or(0),
            is_upcall_once: self.upcall_once,
            still_ns: ns(self.still).unwrap_or(0),
        }
    }

    /// Engine switches that are off.
    pub(crate) fn switched_off(&self) -> Vec<String> {
        match self.baseline {
            true => engine_switches().map(str::to_owned).collect(),
            false => self.without.clone(),
        }
    }
}

impl Tuning {
    /// Bytes of the rings: room for --ring-messages samples, or for many large ones; `None` for
    /// the product's default.
    pub(crate) fn ring_bytes(&self, size: usize) -> Option<u64> {
        let sample = size as u64 + HEADER_BYTES;
        let most = RING_BYTES_MAX.max(sample.saturating_mul(4));
        let of_large = (size > LARGE).then_some(OF_LARGE);
        let room = |messages| sample.saturating_mul(u64::from(messages));
        let wanted = self.ring_messages.or(of_large).map(room);
        self.ring_bytes
            .or_else(|| wanted.map(|wanted| wanted.clamp(RING_BYTES_MIN, most)))
    }
}

macro_rules! display_as_on_the_command_line {
    ($($name:ident),+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value = self.to_possible_value();
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
    )+ };
}

display_as_on_the_command_line!(Fabric, Level, Durability, Doorbell, Wait);

/// Bytes of a sample besides its payload, at most.
pub(crate) const HEADER_BYTES: u64 = 64;
const RING_BYTES_MIN: u64 = 1 << 20;
const RING_BYTES_MAX: u64 = 1 << 30;
/// Samples of more bytes are large.
pub(super) const LARGE: usize = 1 << 16;
/// Large samples for which a ring has room.
pub(super) const OF_LARGE: u32 = 256;
