//! `spindle perf throughput`.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use spindle_dds::{PeerWay, RDMA_BATCH_CLASSES};

use super::figures::Counts;
use super::job::{Job, Report, Role};
use super::options::{Common, ThroughputOptions};
use super::place::Place;
use super::{Failure, fleet};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    fabric: String,
    level: String,
    /// They are the writers and the readers.
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
    ring_messages: u32,
    ring_bytes: u64,
    /// Switches of the engine that were off.
    without: Vec<String>,
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
    voluntary_switches: Switches,
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

/// How often the threads of each process went to sleep.
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
    peers: Vec<PeerWay>,
}

pub(super) fn run(options: &ThroughputOptions) -> Result<(), Failure> {
    let common = &options.common;
    let mut job = job(common, options.samples, 0, 0)?;
    job.without = options.switched_off();
    let mut roles = roles(common);
    if let Some(members) = options.members {
        (job.participants, job.writers) = (members, members as i32);
        // Who writes cannot wait for samples.
        job.listener = true;
        roles = (0..members).map(Role::Member).collect();
    }
    let time_limit = Duration::from_secs(common.tuning.timeout);
    let mut readers = fleet::run(&job, &roles, time_limit)?;
    let writers: Vec<Report> = match options.members {
        Some(_) => {
            let written = readers.iter_mut().filter_map(|it| it.written.take());
            written.map(|it| *it).collect()
        }
        None => readers.split_off(common.readers as usize),
    };
    let outcome = Outcome {
        members: options.members,
        ..Outcome::of(common, &job, &readers, &writers)
    };
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
        limit_ms: tuning.limit_ms,
        ring_messages: tuning.ring_messages,
        ring_bytes: tuning.ring_bytes(common.size),
        without: Vec::new(),
        copy: common.copy,
        fill: common.fill,
        listener: common.listener,
        idle_topics: common.idle_topics,
        poll: common.poll,
        size: common.size,
        samples,
        warm_up,
        period_ns,
        idle_ns: 0,
        phase_ns: 0,
        free: false,
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
            samples,
            bytes: samples * job.size as u64,
            seconds: per_reader.iter().map(|one| one.seconds).fold(0.0, f64::max),
            samples_per_s: least(|one| one.samples_per_s),
            bytes_per_s: least(|one| one.bytes_per_s),
            lost: readers.iter().map(|report| report.lost).sum(),
            retries: writers.iter().map(|report| report.retries).sum(),
            cpu_seconds: CpuSeconds::of(readers, writers),
            voluntary_switches: Switches::of(readers, writers),
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
            "", "nulls", "send p50", "recv p50", "dlvr p50", "wake-ups", "rings"
        )?;
        let readers = self.per_reader.iter().map(|one| ("reader", &one.counters));
        // Of members they are the same.
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
                counts.rings
            )?;
        }
        self.print_work_requests(out)?;
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

    /// How many work requests the batches of each writer took, over all its peers.
    fn print_work_requests(&self, out: &mut impl Write) -> io::Result<()> {
        let mut head = Some(["1", "2", "3", "4", "5", "more", "sleep words", "doorbells"]);
        for (index, writer) in self.per_writer.iter().enumerate() {
            let (mut batches, mut sleep_words, mut doorbells) = ([0; RDMA_BATCH_CLASSES], 0, 0);
            let by_rdma = writer.peers.iter().filter_map(|way| match way {
                PeerWay::Rdma(counters) => Some(counters),
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
                    "\nbatches by their work requests, over all peers by RDMA"
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
