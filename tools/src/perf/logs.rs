//! What the logs of a measurement take, with `--durability persistent`.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use spindle_dds::DomainParticipant;

use super::Failure;
use super::job::{Job, Report};
use super::options::Durability;
use super::plain_log::{self, Load};

/// The figures of a participant's log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LogReport {
    records: u64,
    bytes: u64,
    syncs: u64,
    syncs_of_state: u64,
}

impl LogReport {
    /// `None` if the participant does not log.
    pub(super) fn of(job: &Job, participant: &DomainParticipant) -> Result<Option<Self>, Failure> {
        if job.durability != Durability::Persistent {
            return Ok(None);
        }
        let logs = participant.counters()?.logs;
        Ok(Some(Self {
            records: logs.records,
            bytes: logs.bytes,
            syncs: logs.syncs,
            syncs_of_state: logs.syncs_of_state,
        }))
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Logs {
    /// `spindle.log.sync`.
    sync: String,
    per_log: Vec<OfLog>,
    /// From the first sample until the last one is acknowledged, and so on disk.
    seconds: f64,
    /// Samples of all writers in that time.
    samples_per_s: f64,
    /// The same bytes, written by plain writers afterwards.
    plain_seconds: f64,
    plain_samples_per_s: f64,
    /// The rate of the logs, of that of the plain writers.
    of_plain: f64,
}

#[derive(Debug, Serialize)]
struct OfLog {
    #[serde(flatten)]
    report: LogReport,
    /// Calls of `fdatasync` for the file of records.
    syncs_per_sample: f64,
    /// Bytes that were written for a sample.
    bytes_per_sample: f64,
    /// The same beside the sample as it is in its message.
    beside_per_sample: f64,
}

impl Logs {
    /// The figures of these logs and writers, and those of plain writers, which run now; `None` if nothing
    /// was logged.
    pub(super) fn measure(
        job: &Job,
        reports: &[LogReport],
        writers: &[Report],
    ) -> Result<Option<Self>, Failure> {
        let samples: u64 = writers.iter().map(|it| it.samples).sum();
        if reports.is_empty() || samples == 0 {
            return Ok(None);
        }
        let payload: u64 = writers.iter().map(|it| it.counts.sent_bytes).sum();
        let payload = payload as f64 / samples as f64;
        let on_disk_ns = writers.iter().map(|it| it.on_disk_ns).max();
        let seconds = on_disk_ns.unwrap_or(0) as f64 / 1e9;
        let loads: Vec<Load> = reports
            .iter()
            .map(|it| Load {
                bytes: it.bytes,
                syncs: it.syncs,
            })
            .collect();
        let plain_seconds = plain_log::write(&loads)?;
        let per_second = |seconds: f64| samples as f64 / seconds.max(1e-9);
        Ok(Some(Self {
            sync: job.log_sync().to_owned(),
            per_log: reports.iter().map(|it| OfLog::new(it, payload)).collect(),
            seconds,
            samples_per_s: per_second(seconds),
            plain_seconds,
            plain_samples_per_s: per_second(plain_seconds),
            of_plain: plain_seconds / seconds.max(1e-9),
        }))
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\n{:<10} {:>9} {:>9} {:>9} {:>13} {:>13} {:>13}",
            "logs", "records", "syncs", "others", "syncs/sample", "bytes/sample", "beside it"
        )?;
        for (number, log) in self.per_log.iter().enumerate() {
            let report = &log.report;
            writeln!(
                out,
                "log {number:<6} {:>9} {:>9} {:>9} {:>13.4} {:>13.1} {:>13.1}",
                report.records,
                report.syncs,
                report.syncs_of_state,
                log.syncs_per_sample,
                log.bytes_per_sample,
                log.beside_per_sample
            )?;
        }
        writeln!(
            out,
            "\nspindle.log.sync={}: {:.0} samples/s until all are on disk; plain writers of the same bytes \
             with as many syncs: {:.0}; ratio {:.2}",
            self.sync, self.samples_per_s, self.plain_samples_per_s, self.of_plain
        )
    }
}

impl OfLog {
    /// `payload`: bytes of a sample in its message.
    fn new(report: &LogReport, payload: f64) -> Self {
        let of_sample = |count: u64| count as f64 / report.records.max(1) as f64;
        Self {
            report: *report,
            syncs_per_sample: of_sample(report.syncs),
            bytes_per_sample: of_sample(report.bytes),
            beside_per_sample: of_sample(report.bytes) - payload,
        }
    }
}
