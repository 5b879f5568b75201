//! `spindle perf throughput`.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::figures::{Counts, OfPeer};
use super::job::{Job, LIMIT_MS, Report, Role};
use super::options::{Common, ThroughputOptions};
use super::place::Place;
use super::{Failure, fleet};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    fabric: String,
    level: String,
    writers: u32,
    readers: u32,
    size: usize,
    copy: bool,
    fill: bool,
    doorbell: String,
    wait: String,
    ring_messages: u32,
    ring_bytes: u64,
    /// Samples that every reader got.
    samples: u64,
    /// Payload that every reader got.
    bytes: u64,
    /// Of the slowest reader.
    seconds: f64,
    /// Of the slowest reader.
    samples_per_s: f64,
    /// Of the slowest reader.
    bytes_per_s: f64,
    lost: u64,
    retries: u64,
    cpu_seconds: CpuSeconds,
    per_reader: Vec<OfReader>,
    per_writer: Vec<OfWriter>,
}

/// Processor time of each process.
#[derive(Debug, Serialize)]
pub(super) struct CpuSeconds {
    writers: Vec<f64>,
    readers: Vec<f64>,
    pub(super) total: f64,
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
    peers: Vec<OfPeer>,
}

pub(super) fn run(options: &ThroughputOptions) -> Result<(), Failure> {
    let common = &options.common;
    let job = job(common, options.samples, 0, 0)?;
    let time_limit = Duration::from_secs(common.tuning.timeout);
    let reports = fleet::run(&job, &roles(common), time_limit)?;
    let (readers, writers) = reports.split_at(common.readers as usize);
    let outcome = Outcome::of(common, &job, readers, writers);
    let mut out = io::stdout().lock();
    match common.json {
        true => writeln!(out, "{}", serde_json::to_string(&outcome)?)?,
        false => outcome.print(&mut out)?,
    }
    Ok(())
}

/// Readers first, so that they are there when the first sample comes.
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
        place: None,
        participants: common.writers + common.readers,
        writers: common.writers as i32,
        level: common.level,
        doorbell: tuning.doorbell,
        wait: tuning.wait,
        ring_messages: tuning.ring_messages,
        ring_bytes: tuning.ring_bytes(common.size),
        copy: common.copy,
        fill: common.fill,
        size: common.size,
        samples,
        warm_up,
        period_ns,
        idle_ns: 0,
        phase_ns: 0,
        free: false,
        limit_ms: LIMIT_MS,
        views: 0,
        forget: false,
    })
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
    fn of(common: &Common, job: &Job, readers: &[Report], writers: &[Report]) -> Self {
        let per_reader: Vec<OfReader> = readers
            .iter()
            .map(|report| {
                let seconds = report.elapsed_ns as f64 / 1e9;
                // The clock starts at the first sample: it is not among those timed.
                let samples_per_s = match seconds > 0.0 {
                    true => report.samples.saturating_sub(1) as f64 / seconds,
                    false => 0.0,
                };
                OfReader {
                    samples: report.samples,
                    seconds,
                    samples_per_s,
                    bytes_per_s: samples_per_s * job.size as f64,
                    counters: report.counts,
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
        Self {
            fabric: common.on.fabric.to_string(),
            level: common.level.to_string(),
            writers: common.writers,
            readers: common.readers,
            size: job.size,
            copy: job.copy,
            fill: job.fill,
            doorbell: job.doorbell.to_string(),
            wait: job.wait.to_string(),
            ring_messages: job.ring_messages,
            ring_bytes: job.ring_bytes,
            samples,
            bytes: samples * job.size as u64,
            seconds: per_reader.iter().map(|one| one.seconds).fold(0.0, f64::max),
            samples_per_s: least(|one| one.samples_per_s),
            bytes_per_s: least(|one| one.bytes_per_s),
            lost: readers.iter().map(|report| report.lost).sum(),
            retries: writers.iter().map(|report| report.retries).sum(),
            cpu_seconds: CpuSeconds::of(readers, writers),
            per_writer: writers
                .iter()
                .map(|report| OfWriter {
                    samples: report.samples,
                    seconds: report.elapsed_ns as f64 / 1e9,
                    retries: report.retries,
                    counters: report.counts,
                    peers: report.peers.clone(),
                })
                .collect(),
            per_reader,
        }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{} writers, {} readers, {} bytes, {}, {}{}",
            self.writers,
            self.readers,
            self.size,
            self.level,
            if self.copy { "copied" } else { "in place" },
            if self.fill { ", every byte" } else { "" },
        )?;
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
            "", "nulls", "send p50", "recv p50", "dlvr p50", "wake-ups", "rings"
        )?;
        let readers = self.per_reader.iter().map(|one| ("reader", &one.counters));
        let writers = self.per_writer.iter().map(|one| ("writer", &one.counters));
        for (name, counts) in readers.chain(writers) {
            writeln!(
                out,
                "{name:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                counts.nulls,
                counts.send_batch.p50,
                counts.receive_batch.p50,
                counts.delivery_batch.p50,
                counts.wake_ups,
                counts.rings
            )?;
        }
        if self.lost + self.retries > 0 {
            writeln!(out)?;
            writeln!(
                out,
                "lost {}, tried again for want of room {}",
                self.lost, self.retries
            )?;
        }
        Ok(())
    }
}
