//! `spindle perf throughput`.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use spindle_dds::{PeerPath, RDMA_BATCH_CLASSES};

use super::bystander::{Bystander, beside};
use super::figures::{Counts, Quantiles, merged};
use super::job::{Job, Report, Role};
use super::logs::{LogReport, Logs};
use super::netns::LinkShape;
use super::options::{Common, Durability, ThroughputOptions};
use super::per_host::PerHost;
use super::place::Place;
use super::scenario::{Last, Scenario};
use super::{Failure, fleet, show};

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    fabric: String,
    /// What the links between hosts in namespaces do to packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<LinkShape>,
    level: String,
    durability: String,
    /// Number of members, which both write and read, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<u32>,
    writers: usize,
    readers: usize,
    size: usize,
    copy: bool,
    fill: bool,
    poll: bool,
    doorbell: String,
    wait: String,
    listener: bool,
    idle_topics: u32,
    /// Size of the rings in messages and bytes; `None` for the product's default.
    ring_messages: Option<u32>,
    ring_bytes: Option<u64>,
    /// Engine switches that were off.
    without: Vec<String>,
    /// What participants did besides sending and taking.
    scenario: Scenario,
    /// The thread that only slept, with `--beside`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bystander: Option<Bystander>,
    /// Samples that every reader received.
    samples: u64,
    /// Bytes of payload that every reader received.
    bytes: u64,
    /// Of the slowest reader.
    seconds: f64,
    /// Of the slowest reader.
    samples_per_s: f64,
    /// Of the slowest reader.
    bytes_per_s: f64,
    /// From before the claim until the take, with `--stamp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<Latency>,
    /// Pushes of each writing member in its subgroups while it stayed, with `--still`.
    #[serde(skip_serializing_if = "Option::is_none")]
    still_pushes: Option<Vec<u64>>,
    lost: u64,
    retries: u64,
    cpu_seconds: CpuSeconds,
    voluntary_switches: Switches,
    /// What each host takes for a sample, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_host: Option<PerHost>,
    /// What was logged, with `--durability persistent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<Logs>,
    per_reader: Vec<OfReader>,
    per_writer: Vec<OfWriter>,
}

/// Latencies over all readers.
#[derive(Debug, Serialize)]
struct Latency {
    mean: f64,
    #[serde(flatten)]
    quantiles: Quantiles,
}

/// Processor time of each process.
#[derive(Debug, Serialize)]
pub(super) struct CpuSeconds {
    writers: Vec<f64>,
    readers: Vec<f64>,
    pub(super) total: f64,
}

/// Voluntary context switches of each process.
#[derive(Debug, Serialize)]
pub(super) struct Switches {
    writers: Vec<u64>,
    readers: Vec<u64>,
}

impl Switches {
    pub(super) fn of(readers: &[Report], writers: &[Report]) -> Self {
        let switches = |reports: &[Report]| reports.iter().map(|report| report.switches).collect();
        Self {
            writers: switches(writers),
            readers: switches(readers),
        }
    }
}

#[derive(Debug, Serialize)]
struct OfReader {
    samples: u64,
    seconds: f64,
    samples_per_s: f64,
    bytes_per_s: f64,
    counters: Counts,
}

#[derive(Debug, Serialize)]
struct OfWriter {
    samples: u64,
    seconds: f64,
    retries: u64,
    counters: Counts,
    peers: Vec<PeerPath>,
}

pub(super) fn run(options: &ThroughputOptions) -> Result<(), Failure> {
    measure(options)?.show(options.common.json)
}

pub(super) fn measure(options: &ThroughputOptions) -> Result<Outcome, Failure> {
    let common = &options.common;
    let mut job = job(common, options.samples, 0, 0)?;
    job.without = options.switched_off();
    let mut roles = roles(common);
    job.scenario = options.scenario();
    job.listener |= options.upcall.is_some();
    if let Some(members) = options.members {
        let senders = senders(options, members)?;
        (job.participants, job.writers) = (members, senders as i32);
        // A member's thread sends, so it cannot wait for samples.
        job.listener = true;
        // Members that only read come first, as readers do in `roles`.
        roles = (senders..members)
            .chain(0..senders)
            .map(Role::Member)
            .collect();
    }
    let time_limit = Duration::from_secs(common.tuning.timeout);
    let run = || fleet::run(&job, &roles, time_limit);
    let (reports, bystander) = beside(options.beside, run)?;
    let mut readers = reports?;
    let samples = options.written(&readers);
    let per_host = PerHost::of(job.places.len(), &readers, samples);
    let writers: Vec<Report> = match options.members {
        Some(_) => {
            let written = readers.iter_mut().filter_map(|it| it.written.take());
            written.map(|it| *it).collect()
        }
        None => readers.split_off(common.readers as usize),
    };
    // A member's log is that of its reader.
    let others = writers.iter().filter(|_| options.members.is_none());
    let logs: Vec<LogReport> = readers
        .iter()
        .chain(others)
        .filter_map(|it| it.log)
        .collect();
    let logs = Logs::measure(&job, &logs, &writers)?;
    Ok(Outcome {
        members: options.members,
        bystander,
        per_host,
        logs,
        ..Outcome::of(common, &job, &readers, &writers)?
    })
}

impl ThroughputOptions {
    /// Samples that were written, by the reports of all workers.
    fn written(&self, reports: &[Report]) -> u64 {
        let samples = |report: &Report| report.samples;
        match self.members {
            Some(_) => {
                let written = reports.iter().filter_map(|it| it.written.as_deref());
                written.map(samples).sum()
            }
            None => {
                let writers = reports.iter().skip(self.common.readers as usize);
                writers.map(samples).sum()
            }
        }
    }
}

/// Number of members that write: two or more if one of them is delayed or silent.
fn senders(options: &ThroughputOptions, members: u32) -> Result<u32, Failure> {
    let senders = options.senders.unwrap_or(members);
    let least = match options.scenario().last {
        Last::Prompt => 1,
        _ => 2,
    };
    match (least..=members).contains(&senders) {
        true => Ok(senders),
        false => Err(Failure::Workers(format!(
            "--senders {senders}: it is {least} to {members}"
        ))),
    }
}

/// Roles with the readers first, so that they exist when the first sample is sent.
pub(super) fn roles(common: &Common) -> Vec<Role> {
    let readers = (0..common.readers).map(Role::Reader);
    readers
        .chain((0..common.writers).map(Role::Writer))
        .collect()
}

pub(super) fn job(
    common: &Common,
    samples: u64,
    warm_up: u64,
    period_ns: u64,
) -> Result<Job, Failure> {
    let tuning = &common.tuning;
    Ok(Job {
        parent: std::process::id(),
        role: Role::Reader(0),
        directory: std::path::PathBuf::new(),
        places: Place::all(&common.on)?,
        outsider: Place::of_outsider(&common.on),
        place: None,
        participants: common.writers + common.readers,
        writers: common.writers as i32,
        level: common.level,
        durability: common.durability,
        log_sync: log_sync(common)?,
        doorbell: tuning.doorbell,
        wait: tuning.wait,
        prefault: tuning.prefault,
        limit_ms: tuning.limit_ms,
        ring_messages: tuning.ring_messages,
        ring_bytes: tuning.ring_bytes(common.size),
        without: Vec::new(),
        copy: common.copy,
        fill: common.fill,
        listener: common.listener,
        idle_topics: common.idle_topics,
        poll: common.poll,
        scenario: Scenario::default(),
        size: common.size,
        samples,
        warm_up,
        period_ns,
        silent: 0,
        idle_ns: 0,
    })
}

fn log_sync(common: &Common) -> Result<Option<String>, Failure> {
    if common.log_sync.is_some() && common.durability != Durability::Persistent {
        let text = "--log-sync goes with --durability persistent";
        return Err(Failure::Workers(text.to_owned()));
    }
    Ok(common.log_sync.clone())
}

impl CpuSeconds {
    pub(super) fn of(readers: &[Report], writers: &[Report]) -> Self {
        let seconds = |reports: &[Report]| -> Vec<f64> {
            reports
                .iter()
                .map(|report| report.cpu_ns as f64 / 1e9)
                .collect()
        };
        let (readers, writers) = (seconds(readers), seconds(writers));
        Self {
            total: readers.iter().chain(&writers).sum(),
            writers,
            readers,
        }
    }
}

impl Outcome {
    pub(super) fn show(&self, as_json: bool) -> Result<(), Failure> {
        show(self, as_json, |it, out| it.print(out))
    }

    fn of(
        common: &Common,
        job: &Job,
        readers: &[Report],
        writers: &[Report],
    ) -> Result<Self, Failure> {
        let per_reader: Vec<OfReader> = readers
            .iter()
            .map(|report| {
                let seconds = report.elapsed_ns as f64 / 1e9;
                // The clock starts at the first sample, which therefore does not count.
                let samples_per_s = match seconds > 0.0 {
                    true => report.samples.saturating_sub(1) as f64 / seconds,
                    false => 0.0,
                };
                OfReader {
                    samples: report.samples,
                    seconds,
                    samples_per_s,
                    bytes_per_s: samples_per_s * job.size as f64,
                    counters: report.counts.clone(),
                }
            })
            .collect();
        let least = |value: fn(&OfReader) -> f64| {
            per_reader.iter().map(value).fold(f64::INFINITY, f64::min)
        };
        let samples = readers
            .iter()
            .map(|report| report.samples)
            .min()
            .unwrap_or(0);
        let latency = merged(readers.iter().map(|report| &report.uncorrected))?;
        Ok(Self {
            links: common.on.links(),
            fabric: common.on.fabric().to_string(),
            level: common.level.to_string(),
            durability: common.durability.to_string(),
            members: None,
            writers: writers.len(),
            readers: readers.len(),
            size: job.size,
            copy: job.copy,
            fill: job.fill,
            poll: job.poll,
            doorbell: job.doorbell.to_string(),
            wait: job.wait.to_string(),
            listener: job.listener,
            idle_topics: job.idle_topics,
            ring_messages: job.ring_messages,
            ring_bytes: job.ring_bytes,
            without: job.without.clone(),
            scenario: job.scenario,
            bystander: None,
            samples,
            bytes: samples * job.size as u64,
            seconds: per_reader.iter().map(|one| one.seconds).fold(0.0, f64::max),
            samples_per_s: least(|one| one.samples_per_s),
            bytes_per_s: least(|one| one.bytes_per_s),
            latency_ns: job.scenario.is_stamped.then(|| Latency {
                mean: latency.mean(),
                quantiles: Quantiles::from(&latency),
            }),
            still_pushes: (job.scenario.still_ns > 0).then(|| {
                let pushed = writers.iter().map(|it| it.idle_traffic.subgroup_pushes);
                pushed.collect()
            }),
            lost: readers.iter().map(|report| report.lost).sum(),
            retries: writers.iter().map(|report| report.retries).sum(),
            cpu_seconds: CpuSeconds::of(readers, writers),
            voluntary_switches: Switches::of(readers, writers),
            per_host: None,
            logs: None,
            per_writer: writers
                .iter()
                .map(|report| OfWriter {
                    samples: report.samples,
                    seconds: report.elapsed_ns as f64 / 1e9,
                    retries: report.retries,
                    counters: report.counts.clone(),
                    peers: report.peers.clone(),
                })
                .collect(),
            per_reader,
        })
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{} writers, {} readers, {} bytes, {}, {}, {}{}",
            self.writers,
            self.readers,
            self.size,
            self.level,
            self.durability,
            if self.copy { "copied" } else { "in place" },
            if self.fill { ", every byte" } else { "" },
        )?;
        if !self.without.is_empty() {
            writeln!(out, "without {}", self.without.join(", "))?;
        }
        writeln!(out)?;
        writeln!(
            out,
            "{:<10} {:>11} {:>9} {:>13} {:>11} {:>8}",
            "", "samples", "seconds", "samples/s", "MB/s", "CPU s"
        )?;
        let cpu = &self.cpu_seconds;
        for (index, (one, cpu_s)) in self.per_reader.iter().zip(&cpu.readers).enumerate() {
            writeln!(
                out,
                "reader {index:<3} {:>11} {:>9.3} {:>13.0} {:>11.1} {cpu_s:>8.2}",
                one.samples,
                one.seconds,
                one.samples_per_s,
                one.bytes_per_s / 1e6
            )?;
        }
        for (index, (one, cpu_s)) in self.per_writer.iter().zip(&cpu.writers).enumerate() {
            let samples_per_s = one.samples as f64 / one.seconds.max(1e-9);
            writeln!(
                out,
                "writer {index:<3} {:>11} {:>9.3} {samples_per_s:>13.0} {:>11.1} {cpu_s:>8.2}",
                one.samples,
                one.seconds,
                samples_per_s * self.size as f64 / 1e6
            )?;
        }
        writeln!(out)?;
        writeln!(
            out,
            "{:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "nulls", "send p50", "recv p50", "dlvr p50", "wake-ups", "doorbells"
        )?;
        let readers = self.per_reader.iter().map(|one| ("reader", &one.counters));
        // A member's readers and writers share its counters.
        let others = self.per_writer.iter().filter(|_| self.members.is_none());
        let writers = others.map(|one| ("writer", &one.counters));
        for (name, counts) in readers.chain(writers) {
            writeln!(
                out,
                "{name:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                counts.nulls,
                counts.send_batch.p50,
                counts.receive_batch.p50,
                counts.delivery_batch.p50,
                counts.wake_ups,
                counts.peer_wakes
            )?;
        }
        self.print_work_requests(out)?;
        self.print_scenario(out)?;
        if let Some(per_host) = &self.per_host {
            per_host.print(self.links.as_ref(), out)?;
        }
        if let Some(logs) = &self.logs {
            logs.print(out)?;
        }
        if self.lost + self.retries > 0 {
            writeln!(out)?;
            writeln!(
                out,
                "lost {}, retried for lack of room {}",
                self.lost, self.retries
            )?;
        }
        Ok(())
    }

    /// Prints what participants did besides sending and taking, and the figures of that.
    fn print_scenario(&self, out: &mut impl Write) -> io::Result<()> {
        let ms = |ns: u64| ns as f64 / 1e6;
        match self.scenario.last {
            Last::Prompt => {}
            Last::DelayedNs(ns) => writeln!(
                out,
                "\nthe last writer waits for {} ms after each sample; the figures are of the others",
                ms(ns)
            )?,
            Last::SleepsNs(ns) => writeln!(
                out,
                "\nthe last writer sleeps for {} ms after each sample; the figures are of the others",
                ms(ns)
            )?,
            Last::SilentNs(ns) => writeln!(
                out,
                "\nthe last writer is silent, for {} ms at most; the figures are of the others",
                ms(ns)
            )?,
        }
        if let Some(bystander) = &self.bystander {
            writeln!(
                out,
                "\na thread beside the participants slept for {} ms, {} times",
                ms(bystander.pause_ns),
                bystander.wake_ups
            )?;
        }
        if let Some(latency) = &self.latency_ns {
            let quantiles = &latency.quantiles;
            let us = [latency.mean, quantiles.p50 as f64, quantiles.p99 as f64];
            let [mean, p50, p99] = us.map(|ns| ns / 1e3);
            writeln!(
                out,
                "\nfrom claim to take, us: mean {mean:.1}, p50 {p50:.1}, p99 {p99:.1}"
            )?;
        }
        if let Some(pushes) = &self.still_pushes {
            let all: u64 = pushes.iter().sum();
            writeln!(
                out,
                "\npushes in subgroups in {} s of idling afterwards: {all}",
                self.scenario.still_ns as f64 / 1e9
            )?;
        }
        Ok(())
    }

    /// Prints how many work requests the batches of each writer took, over all its RDMA peers.
    fn print_work_requests(&self, out: &mut impl Write) -> io::Result<()> {
        let mut head = Some(["1", "2", "3", "4", "5", "more", "sleep words", "doorbells"]);
        for (index, writer) in self.per_writer.iter().enumerate() {
            let (mut batches, mut sleep_words, mut doorbells) = ([0; RDMA_BATCH_CLASSES], 0, 0);
            let by_rdma = writer.peers.iter().filter_map(|path| match path {
                PeerPath::Rdma(counters) => Some(counters),
                _ => None,
            });
            let mut peers = 0;
            for counters in by_rdma {
                peers += 1;
                for (sum, count) in batches.iter_mut().zip(counters.batches) {
                    *sum += count;
                }
                sleep_words += counters.sleep_words;
                doorbells += counters.doorbells_sent;
            }
            if peers == 0 {
                continue;
            }
            if let Some(head) = head.take() {
                let columns = head.map(|name| format!("{name:>9}")).join(" ");
                writeln!(
                    out,
                    "\nbatches by number of work requests, over all RDMA peers"
                )?;
                writeln!(out, "{:<10} {columns}", "")?;
            }
            let counts = batches.iter().chain([&sleep_words, &doorbells]);
            let columns: Vec<_> = counts.map(|count| format!("{count:>9}")).collect();
            writeln!(out, "writer {index:<3} {}", columns.join(" "))?;
        }
        Ok(())
    }
}
