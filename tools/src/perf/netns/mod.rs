//! `spindle perf netns`: throughput or latency between hosts that are network namespaces of this
//! machine, over links that delay, lose and limit packets.

mod link_shape;

use std::time::Duration;

use clap::{Args, FromArgMatches, Subcommand};
use indicatif::ProgressBar;
use spindle_dds_children::netns::{Network, NetworkError};

pub(crate) use self::link_shape::LinkShape;
use super::options::{Fabric, Hosts, LatencyOptions, Namespaces, ThroughputOptions};
use super::scenario::duration;
use super::{Failure, latency, throughput};
use crate::harness::progress;

/// `spindle perf netns`. Without `--limit-ms` the heartbeat timeout is 20 seconds, as all hosts
/// share the processors of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct NetnsOptions {
    /// Number of hosts.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=16))]
    hosts: u32,
    /// Number of participants on each host: each writes and reads; for `latency`, each that does
    /// not write reads [default: those of the measurement; without one, 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16))]
    members: Option<u32>,
    #[command(flatten)]
    shape: LinkShape,
    /// One more host, whose link delays by this time (for example 50ms) and does nothing else. Its
    /// participant has a topic of its own, and nothing to do with what is measured.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    outsider: Option<Duration>,
    /// Print a JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// What is measured [default: throughput].
    #[command(subcommand)]
    measurement: Option<Measurement>,
}

/// What is measured between the hosts.
#[derive(Debug, Clone, Subcommand)]
enum Measurement {
    /// Samples per second, with writers that send as fast as they can.
    Throughput(Box<ThroughputOptions>),
    /// Latency from writer to reader, with writers that keep a fixed rate.
    Latency(Box<LatencyOptions>),
}

pub(super) fn run(options: &NetnsOptions) -> Result<(), Failure> {
    let mut measurement = options.measurement()?;
    let steps = u64::from(options.hosts) + u64::from(options.outsider.is_some()) + 1;
    let progress = progress::bar(steps, MESSAGE_COLUMNS);
    let network = network(options, &progress)?;
    let mut hosts = network.hosts();
    let outsider = options.outsider.and_then(|_| hosts.pop());
    let (hosts, paths) = hosts.into_iter().unzip();
    let on = measurement.hosts();
    *on = Hosts {
        fabric: Some(Fabric::Tcp),
        hosts,
        devices: Vec::new(),
        secret_file: on.secret_file.take(),
        namespaces: Some(Box::new(Namespaces {
            paths,
            shape: options.shape,
            outsider,
        })),
    };
    progress.set_message("measuring");
    progress.enable_steady_tick(TICK);
    let clear = || progress.finish_and_clear();
    match &measurement {
        Measurement::Throughput(it) => {
            let outcome = throughput::measure(it).inspect_err(|_| clear())?;
            clear();
            outcome.show(options.json || it.common.json)
        }
        Measurement::Latency(it) => {
            let outcome = latency::measure(it).inspect_err(|_| clear())?;
            clear();
            outcome.show(options.json || it.common.json)
        }
    }
}

fn network(options: &NetnsOptions, progress: &ProgressBar) -> Result<Network, NetworkError> {
    progress.set_message("namespaces");
    let outsider = options.outsider.map(LinkShape::delaying);
    let shapes = std::iter::repeat_n(options.shape, options.hosts as usize);
    let shapes: Vec<LinkShape> = shapes.chain(outsider).collect();
    let links: Vec<_> = shapes.iter().map(LinkShape::discipline).collect();
    let mut network = Network::new(&links)?;
    for link in &links {
        network.add_host(link)?;
        progress.inc(1);
    }
    Ok(network)
}

impl NetnsOptions {
    /// The measurement with as many participants as asked for.
    fn measurement(&self) -> Result<Measurement, Failure> {
        let refused = |problem: String| Err(Failure::Workers(problem));
        let (mut measurement, members) = match &self.measurement {
            Some(measurement) => (measurement.clone(), self.members),
            None => (Measurement::default_throughput()?, self.members.or(Some(1))),
        };
        let on = measurement.hosts();
        if on.fabric.is_some() || !on.hosts.is_empty() || !on.devices.is_empty() {
            return refused(
                "netns makes the hosts: --fabric, --hosts and --devices do not go after the \
                 measurement"
                    .to_owned(),
            );
        }
        if let Some(members) = members {
            let all = self.hosts * members;
            if all > PARTICIPANTS_MAX {
                return refused(format!(
                    "{} hosts with {members} members each are {all} participants; at most \
                     {PARTICIPANTS_MAX} are possible",
                    self.hosts
                ));
            }
            measurement.set_participants(all)?;
        }
        measurement.be_patient();
        let participants = measurement.participants();
        if participants < self.hosts {
            return refused(format!(
                "{participants} participants cannot be on {} hosts: give --members, or more \
                 --writers and --readers",
                self.hosts
            ));
        }
        Ok(measurement)
    }
}

impl Measurement {
    fn default_throughput() -> Result<Self, Failure> {
        let command = ThroughputOptions::augment_args(clap::Command::new("throughput"));
        let given = command.get_matches_from(["throughput"]);
        let options = ThroughputOptions::from_arg_matches(&given);
        let options = options.map_err(|error| Failure::Workers(error.to_string()))?;
        Ok(Self::Throughput(Box::new(options)))
    }

    fn hosts(&mut self) -> &mut Hosts {
        match self {
            Self::Throughput(it) => &mut it.common.on,
            Self::Latency(it) => &mut it.common.on,
        }
    }

    /// All hosts share the processors of this machine: no participant is to be suspected because
    /// there are too few.
    fn be_patient(&mut self) {
        let common = match self {
            Self::Throughput(it) => &mut it.common,
            Self::Latency(it) => &mut it.common,
        };
        common.tuning.limit_ms.get_or_insert(LIMIT_MS);
    }

    fn participants(&self) -> u32 {
        let common = match self {
            Self::Throughput(it) => match it.members {
                Some(members) => return members,
                None => &it.common,
            },
            Self::Latency(it) => &it.common,
        };
        common.writers + common.readers
    }

    fn set_participants(&mut self, all: u32) -> Result<(), Failure> {
        let refused = |problem: &str| Err(Failure::Workers(problem.to_owned()));
        match self {
            Self::Throughput(it) if it.members.is_some() => {
                return refused("--members is given twice: for each host, and for all");
            }
            Self::Throughput(it) => {
                if (it.common.writers, it.common.readers) != (1, 1) || it.common.poll {
                    return refused(
                        "--members on each host all write and read: --writers, --readers and \
                         --poll do not go with them",
                    );
                }
                it.members = Some(all);
            }
            Self::Latency(it) => {
                if it.common.readers != 1 {
                    return refused("--members on each host read: --readers does not go with them");
                }
                match all.checked_sub(it.common.writers) {
                    Some(readers @ 1..) => it.common.readers = readers,
                    _ => return refused("there are as many --writers as participants"),
                }
            }
        }
        Ok(())
    }
}

/// Heartbeat timeout, unless one is given.
const LIMIT_MS: u64 = 20_000;
/// The limit of the measurements.
const PARTICIPANTS_MAX: u32 = 32;
const MESSAGE_COLUMNS: usize = 10;
const TICK: Duration = Duration::from_secs(1);
