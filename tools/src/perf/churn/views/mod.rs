//! `spindle perf churn --views`: whether views leave something behind.
//!
//! ```text
//!   writer    publishes Busy at a pace
//!   reader    reads it
//!   changer   in a loop: a reader and a writer of Busy are created and deleted; a
//!             participant, the guest, joins with both, and leaves
//! ```
//!
//! So lanes come and go, and with the guest connections: over RDMA, queue pairs. Each of
//! the three processes counts what it has of the system after the first views, and once
//! more after as many as were asked for: both times nobody comes or goes, and all that
//! had come has gone. So is what they have of RDMA devices, which nobody else may use
//! meanwhile. More than before is a leak. Nothing may be lost, either.

mod parts;

use std::time::Duration;

use serde::Serialize;

pub(in crate::perf) use self::parts::{Findings, Part, work};
use super::super::job::{Job, Report, Role};
use super::super::options::{ChurnOptions, HEADER_BYTES, Wait};
use super::super::place::Place;
use super::super::{Failure, fleet};
use super::belongings::Belongings;
use super::devices::OfDevices;

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Between the two times that was counted.
    views: u64,
    /// How long they took.
    seconds: f64,
    /// Endpoints created or deleted by who stays, and participants that joined or left.
    changes: [u64; 2],
    published: u64,
    /// Samples of all that the reader did not get, or got twice.
    lost: u64,
    /// What each process had before, and after.
    belongings: Vec<Of>,
    /// What all had of the RDMA devices together, if that is the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<[OfDevices; 2]>,
    /// What there was more of afterwards, in words.
    leaks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Of {
    process: String,
    before: Belongings,
    after: Belongings,
}

pub(super) fn run(options: &ChurnOptions, views: u64) -> Result<(), Failure> {
    let role = Role::Views(Part::Writer);
    let (rate, size) = (options.rate, options.size);
    let job = Job {
        places: Place::all(&options.on)?,
        limit_ms: options.limit_ms,
        views,
        forget: options.forget,
        // Nobody measures how fast they are, and who spins keeps the others from working.
        wait: Wait::Block,
        // Nor how much they have in flight: small rings are made faster, and no fewer.
        ring_messages: Some(RING_MESSAGES),
        ring_bytes: Some((size as u64 + HEADER_BYTES) * u64::from(RING_MESSAGES)),
        ..Job::in_phases(role, PARTS.len(), 0.0, rate, size)?
    };
    let patience = SLACK + OF_EACH_VIEW.saturating_mul(u32::try_from(views).unwrap_or(u32::MAX));
    let reports = fleet::run(&job, &PARTS.map(Role::Views), patience)?;
    let outcome = Outcome::of(&reports)?;
    match options.json {
        true => println!("{}", serde_json::to_string(&outcome)?),
        false => outcome.print(),
    }
    outcome.judge()
}

impl Outcome {
    fn of(reports: &[Report]) -> Result<Self, Failure> {
        let findings = reports.iter().filter_map(|report| report.views.as_ref());
        let findings: Vec<&Findings> = findings.collect();
        let [writer, reader, changer] = findings[..] else {
            let text = "a participant told nothing of what it found";
            return Err(Failure::Workers(text.to_owned()));
        };
        let (mut belongings, mut leaks) = (Vec::new(), Vec::new());
        for (part, found) in PARTS.iter().zip(findings) {
            let (process, [before, after]) = (format!("{part:?}"), found.belongings);
            let more = after.more_than(&before).into_iter();
            leaks.extend(more.map(|more| format!("{process} has {more}")));
            belongings.push(Of {
                process,
                before,
                after,
            });
        }
        if let Some([before, after]) = &changer.devices {
            let more = after.more_than(before).into_iter();
            leaks.extend(more.map(|more| format!("the devices have {more}")));
        }
        let published = writer.samples + changer.samples;
        Ok(Self {
            views: changer.views,
            seconds: changer.elapsed_ns as f64 / 1e9,
            changes: changer.changes,
            published,
            lost: published.abs_diff(reader.samples),
            belongings,
            devices: changer.devices,
            leaks,
        })
    }

    fn print(&self) {
        println!(
            "{} views in {:.1} s ({:.1}/s): {} changes of endpoints, {} of participants; \
             published {}, lost {}",
            self.views,
            self.seconds,
            self.views as f64 / self.seconds.max(1e-9),
            self.changes[0],
            self.changes[1],
            self.published,
            self.lost
        );
        println!(
            "{:<8} {:>12} {:>9} {:>8} {:>12}",
            "", "descriptors", "mappings", "threads", "pinned, KiB"
        );
        for of in &self.belongings {
            for (name, has) in [(&*of.process, &of.before), ("", &of.after)] {
                println!(
                    "{name:<8} {:>12} {:>9} {:>8} {:>12}",
                    has.descriptors, has.mappings, has.threads, has.pinned_kib
                );
            }
        }
        if let Some([before, after]) = &self.devices {
            println!(
                "of the devices, before and after: queue pairs {}, {}; completion queues {}, {}; \
                 registered regions {}, {}",
                before.queue_pairs,
                after.queue_pairs,
                before.completion_queues,
                after.completion_queues,
                before.regions,
                after.regions
            );
        }
    }

    fn judge(&self) -> Result<(), Failure> {
        if self.lost > 0 {
            let text = format!("{} samples were lost, or came twice", self.lost);
            return Err(Failure::Workers(text));
        }
        if self.leaks.is_empty() {
            return Ok(());
        }
        let (views, leaks) = (self.views, self.leaks.join("; "));
        Err(Failure::Workers(format!(
            "{views} views have left something behind: {leaks}"
        )))
    }
}

/// In the order of their reports.
const PARTS: [Part; 3] = [Part::Writer, Part::Reader, Part::Changer];
/// Samples in flight of one sender.
const RING_MESSAGES: u32 = 64;
/// For the formation of the group, for counting, and for its end.
const SLACK: Duration = Duration::from_secs(300);
/// Far more than one takes, also where the processor is emulated.
const OF_EACH_VIEW: Duration = Duration::from_secs(10);
