//! The command lines.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use spindle_dds::properties::engine_switches;

use super::drill::{Drill, Last, duration};

/// Where participants are.
#[derive(Debug, Clone, Args)]
pub(crate) struct Hosts {
    /// What carries the samples.
    #[arg(long, value_enum, default_value_t = Fabric::Shm)]
    pub(crate) fabric: Fabric,
    /// Addresses of this host, each of which takes the part of a host for the participants
    /// that are dealt out to it: with --fabric tcp or rdma.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    pub(crate) hosts: Vec<IpAddr>,
    /// RDMA device of each of the hosts: with --fabric rdma.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
}

/// What throughput and latency have in common.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) on: Hosts,
    /// Number of writers, each in a process of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) writers: u32,
    /// Number of readers, each in a process of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) readers: u32,
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 1024)]
    pub(crate) size: usize,
    /// Delivery level of the writers.
    #[arg(long, value_enum, default_value_t = Level::Atomic)]
    pub(crate) level: Level,
    /// Copy samples in and out, instead of building and reading them in place.
    #[arg(long)]
    pub(crate) copy: bool,
    /// Write and sum every byte, instead of touching the first and the last.
    #[arg(long)]
    pub(crate) fill: bool,
    /// Have readers told of samples by a listener, instead of a thread that waits for them.
    #[arg(long)]
    pub(crate) listener: bool,
    /// Topics beside the measured one, with the same writers and readers, in which nothing
    /// is sent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=500))]
    pub(crate) idle_topics: u32,
    /// Have readers look for samples again and again, and yield while there are none.
    #[arg(long, conflicts_with = "listener")]
    pub(crate) poll: bool,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What tunes the participants.
#[derive(Debug, Clone, Args)]
pub(crate) struct Tuning {
    /// What the polling threads sleep on.
    #[arg(long, value_enum, default_value_t = Doorbell::Auto)]
    pub(crate) doorbell: Doorbell,
    /// How long threads that wait, and the polling threads, spin before they sleep.
    #[arg(long, value_enum, default_value_t = Wait::Balanced)]
    pub(crate) wait: Wait,
    /// Participants have all memory of their rings from the start: `spindle.prefault`.
    #[arg(long)]
    pub(crate) prefault: bool,
    /// Messages in flight of one writer [default: the product's].
    #[arg(long)]
    pub(crate) ring_messages: Option<u32>,
    /// Bytes in flight of one writer [default: the product's, or more: room for all of
    /// --ring-messages, and for 256 samples of more than 64 KiB].
    #[arg(long)]
    pub(crate) ring_bytes: Option<u64>,
    /// Who is silent for so many milliseconds has failed [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Give up after so many seconds.
    #[arg(long, default_value_t = 600)]
    pub(crate) timeout: u64,
}

/// `spindle perf throughput`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ThroughputOptions {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Samples that each writer sends.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) samples: u64,
    /// Number of participants that all write and read, instead of writers and readers.
    #[arg(
        long,
        value_parser = clap::value_parser!(u32).range(2..=32),
        conflicts_with_all = ["writers", "readers", "poll"]
    )]
    pub(crate) members: Option<u32>,
    /// Optimisations of the engine that are switched off.
    #[arg(long, value_name = "SWITCH,...", value_delimiter = ',', value_parser = switches())]
    pub(crate) without: Vec<String>,
    /// Switch all of them off: the baseline of the paper. Who is silent stops the others then.
    #[arg(long, conflicts_with = "without")]
    pub(crate) baseline: bool,
    /// Of the members, how many write [default: all]. The others read.
    #[arg(long, requires = "members", value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) senders: Option<u32>,
    /// Have the last of the members that write wait for so long after each of its samples, as
    /// 100us, and stop when it has all of the others. It waits in a loop, in which it gives way to
    /// who wants the processor. What is measured are the samples of the others.
    #[arg(long, requires = "members", value_name = "TIME", value_parser = duration)]
    pub(crate) delay_one: Option<Duration>,
    /// The same, but it sleeps, so that a timer has to wake it for each sample.
    #[arg(
        long,
        requires = "members",
        conflicts_with = "delay_one",
        value_name = "TIME",
        value_parser = duration
    )]
    pub(crate) sleep_one: Option<Duration>,
    /// Have the last of the members that write send nothing, and delete its writer when it has
    /// all samples of the others, or after so long, as 2s: whom it stops goes on then.
    #[arg(
        long,
        requires = "members",
        conflicts_with_all = ["delay_one", "sleep_one"],
        value_name = "TIME",
        value_parser = duration
    )]
    pub(crate) silent_one: Option<Duration>,
    /// Have a thread beside the participants sleep for so long, as 100us, again and again, and
    /// do nothing else: what its wake-ups alone cost them.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) beside: Option<Duration>,
    /// Number of topics, each in a subgroup of its own, in each of which each member writes,
    /// by a thread for each.
    #[arg(
        long,
        requires = "members",
        conflicts_with = "senders",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=32)
    )]
    pub(crate) topics: u32,
    /// Have participants wait for so long before the first sample, as 200ms: with many topics
    /// there is much to set up, which a short measurement would count.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) settle: Option<Duration>,
    /// Have listeners take so long for each sample, as 100us: readers are told by listeners
    /// then.
    #[arg(long, conflicts_with = "poll", value_name = "TIME", value_parser = duration)]
    pub(crate) upcall: Option<Duration>,
    /// ... for each call, however many samples there are to take.
    #[arg(long, requires = "upcall")]
    pub(crate) upcall_once: bool,
    /// Time each sample too, from before its place is claimed until it is taken: with writers
    /// that send as fast as they can, most of it is waiting behind the others.
    #[arg(long)]
    pub(crate) stamp: bool,
    /// Have members that write stay for so long when all is over, as 5s, and count what they
    /// push.
    #[arg(long, requires = "members", value_name = "TIME", value_parser = duration)]
    pub(crate) still: Option<Duration>,
}

/// `spindle perf latency`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LatencyOptions {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Samples that each writer sends, after a tenth more to warm up.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) samples: u64,
    /// Samples a second of each writer.
    #[arg(long, default_value_t = 1_000.0)]
    pub(crate) rate: f64,
    /// So many of the readers have a writer of the topic too, which sends nothing: each has its
    /// part in the order.
    #[arg(long, default_value_t = 0)]
    pub(crate) silent: u32,
}

/// `spindle perf idle`.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdleOptions {
    #[command(flatten)]
    pub(crate) on: Hosts,
    /// Who is silent for so many milliseconds has failed [default: the product's].
    #[arg(long)]
    pub(crate) limit_ms: Option<u64>,
    /// Number of participants, all of which have a writer and a reader.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=32))]
    pub(crate) participants: u32,
    /// How long they do nothing.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) seconds: f64,
    /// How often they are woken afterwards.
    #[arg(long, default_value_t = 51)]
    pub(crate) wakes: u64,
    /// Measure this doorbell only [default: both].
    #[arg(long, value_enum)]
    pub(crate) doorbell: Option<Doorbell>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spindle perf work`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkOptions {
    /// Bytes of payload in a sample.
    #[arg(long, default_value_t = 128)]
    pub(crate) size: usize,
    /// How often a sample is summed, each time by another thread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=32))]
    pub(crate) readers: u32,
    /// Samples that are written and summed.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: u64,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What carries samples between participants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fabric {
    /// Shared memory of this host.
    Shm,
    /// Streams between hosts.
    Tcp,
    /// RDMA between hosts. Needs the cargo feature `verbs`.
    Rdma,
}

/// Delivery level of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// On receipt: BEST_EFFORT.
    Unordered,
    /// When stable, in one order: RELIABLE.
    Atomic,
}

/// Values of the property `spindle.doorbell`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Doorbell {
    /// Whichever is there.
    Auto,
    /// Words in the peers' rows.
    Futex,
    /// Event descriptors.
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
    /// What is asked beside sending and taking.
    pub(super) fn drill(&self) -> Drill {
        let ns = |time: Option<Duration>| time.map(|time| time.as_nanos() as u64);
        let delayed = ns(self.delay_one).map(Last::DelayedNs);
        let sleeps = ns(self.sleep_one).map(Last::SleepsNs);
        let silent = ns(self.silent_one).map(Last::SilentNs);
        Drill {
            last: delayed.or(sleeps).or(silent).unwrap_or_default(),
            settle_ns: ns(self.settle).unwrap_or(0),
            more_topics: self.topics - 1,
            stamped: self.stamp,
            upcall_ns: ns(self.upcall).unwrap_or(0),
            upcall_once: self.upcall_once,
            still_ns: ns(self.still).unwrap_or(0),
        }
    }

    /// What is switched off.
    pub(crate) fn switched_off(&self) -> Vec<String> {
        match self.baseline {
            true => engine_switches().map(str::to_owned).collect(),
            false => self.without.clone(),
        }
    }
}

impl Tuning {
    /// Room for many samples, but no more memory than it takes; the product's default if
    /// that is many.
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

macro_rules! shown_as_on_the_command_line {
    ($($name:ident),+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let value = self.to_possible_value();
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
    )+ };
}

shown_as_on_the_command_line!(Fabric, Level, Doorbell, Wait);

/// What a sample takes besides its payload, at most.
pub(crate) const HEADER_BYTES: u64 = 64;
const RING_BYTES_MIN: u64 = 1 << 20;
const RING_BYTES_MAX: u64 = 1 << 30;
/// A sample of more bytes is large.
pub(super) const LARGE: usize = 1 << 16;
/// So many large samples a ring has room for.
pub(super) const OF_LARGE: u32 = 256;
