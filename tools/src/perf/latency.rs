//! `spindle perf latency`: one way, from when a sample was due to when it was taken.
//!
//! A sample is timed from when it was *due*, not from when it was sent: a delayed sample also
//! delays those behind it, which a sender that waits would hide (coordinated omission).
//! `uncorrected` has the times since sending.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use spindle_dds::PeerPath;

use super::figures::{Counts, Quantiles, merged};
use super::job::Job;
use super::netns::LinkShape;
use super::options::LatencyOptions;
use super::per_host::PerHost;
use super::throughput::{CpuSeconds, Switches, job, roles};
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
    writers: u32,
    readers: u32,
    size: usize,
    copy: bool,
    fill: bool,
    poll: bool,
    doorbell: String,
    wait: String,
    listener: bool,
    idle_topics: u32,
    silent: u32,
    rate_hz: f64,
    /// Measured latencies, over all readers.
    samples: u64,
    seconds: f64,
    #[serde(flatten)]
    latency_ns: Quantiles,
    uncorrected: Quantiles,
    lost: u64,
    cpu_seconds: CpuSeconds,
    voluntary_switches: Switches,
    /// What each host takes for a sample, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_host: Option<PerHost>,
    reader_counters: Vec<Counts>,
    writer_counters: Vec<Counts>,
    /// For each writer, the path of its samples to each peer.
    writer_peers: Vec<Vec<PeerPath>>,
}

pub(super) fn run(options: &LatencyOptions) -> Result<(), Failure> {
    measure(options)?.show(options.common.json)
}

pub(super) fn measure(options: &LatencyOptions) -> Result<Outcome, Failure> {
    let common = &options.common;
    if !(options.rate > 0.0 && options.rate <= RATE_MAX_HZ) {
        return Err(Failure::Workers(format!(
            "--rate {}: it is above 0 and at most {RATE_MAX_HZ}",
            options.rate
        )));
    }
    let period_ns = (1e9 / options.rate) as u64;
    let job = Job {
        silent: options.silent.min(common.readers),
        ..job(common, options.samples, options.samples / 10, period_ns)?
    };
    let time_limit = Duration::from_secs(common.tuning.timeout);
    let reports = fleet::run(&job, &roles(common), time_limit)?;
    let (readers, writers) = reports.split_at(common.readers as usize);
    let latency = merged(readers.iter().map(|report| &report.latency))?;
    let samples = writers.iter().map(|report| report.samples).sum();
    let per_host = PerHost::of(job.places.len(), &reports, samples);
    let uncorrected = merged(readers.iter().map(|report| &report.uncorrected))?;
    Ok(Outcome {
        links: common.on.links(),
        fabric: common.on.fabric().to_string(),
        level: common.level.to_string(),
        durability: common.durability.to_string(),
        writers: common.writers,
        readers: common.readers,
        size: common.size,
        copy: common.copy,
        fill: common.fill,
        poll: job.poll,
        doorbell: job.doorbell.to_string(),
        wait: job.wait.to_string(),
        listener: job.listener,
        idle_topics: job.idle_topics,
        silent: job.silent,
        rate_hz: options.rate,
        samples: latency.len(),
        seconds: readers
            .iter()
            .map(|report| report.elapsed_ns)
            .max()
            .unwrap_or(0) as f64
            / 1e9,
        latency_ns: Quantiles::from(&latency),
        uncorrected: Quantiles::from(&uncorrected),
        lost: readers.iter().map(|report| report.lost).sum(),
        cpu_seconds: CpuSeconds::of(readers, writers),
        voluntary_switches: Switches::of(readers, writers),
        per_host,
        reader_counters: readers.iter().map(|report| report.counts.clone()).collect(),
        writer_counters: writers.iter().map(|report| report.counts.clone()).collect(),
        writer_peers: writers.iter().map(|report| report.peers.clone()).collect(),
    })
}

impl Outcome {
    pub(super) fn show(&self, as_json: bool) -> Result<(), Failure> {
        show(self, as_json, |it, out| it.print(out))
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{} writers at {} samples/s, {} readers, {} bytes, {}, {}, {}",
            self.writers,
            self.rate_hz,
            self.readers,
            self.size,
            self.level,
            self.durability,
            if self.copy { "copied" } else { "in place" },
        )?;
        writeln!(out)?;
        writeln!(
            out,
            "{:<12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "one way, us", "min", "p50", "p90", "p99", "p99.9", "max"
        )?;
        for (name, ns) in [
            ("since due", &self.latency_ns),
            ("since sent", &self.uncorrected),
        ] {
            let us = [ns.min, ns.p50, ns.p90, ns.p99, ns.p999, ns.max].map(|ns| ns as f64 / 1e3);
            let columns: Vec<String> = us.iter().map(|us| format!("{us:>10.2}")).collect();
            writeln!(out, "{name:<12} {}", columns.join(" "))?;
        }
        writeln!(out)?;
        writeln!(
            out,
            "{} latencies, {} lost, {:.2} CPU seconds",
            self.samples, self.lost, self.cpu_seconds.total
        )?;
        match &self.per_host {
            Some(per_host) => per_host.print(self.links.as_ref(), out),
            None => Ok(()),
        }
    }
}

const RATE_MAX_HZ: f64 = 1e7;
