//! `processes churn --views`: whether views leave something behind.
//!
//! ```text
//!   writer    publishes Busy at a pace
//!   reader    reads it
//!   changer   in a loop: creates and deletes a reader and a writer of Busy; a participant of
//!             its process, the guest, joins with both, and leaves
//! ```
//!
//! So subgroup epochs come and go, and with the guest connections: over RDMA, queue pairs. Each
//! of the three processes counts what it holds of the system after the first views, and again
//! after as many views as were asked for. At both times nothing comes or goes, and all that was
//! temporary has gone. The same is counted of the RDMA devices, which no other process may use
//! meanwhile. More than before is a leak, and an error; so is a sample that is lost.

mod device_resources;
mod rest;
mod roles;

use std::time::Duration;

use serde::Serialize;

use self::device_resources::DeviceResources;
use self::roles::Findings;
pub(crate) use self::roles::{Role, work};
use crate::Failure;
use crate::churn::Options;
use crate::resources::Resources;
use crate::workers::participant::SAMPLE_OVERHEAD;
use crate::workers::{self, Job, Wait};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Views that began between the two counts.
    views: u64,
    /// How long they took.
    seconds: f64,
    /// Endpoints created or deleted by the changer, and times that the guest joined or left.
    changes: [u64; 2],
    published: u64,
    /// Samples that the reader did not get, or got twice.
    lost: u64,
    /// What each process held before and after.
    belongings: Vec<OfProcess>,
    /// What was allocated of the RDMA devices, if these are the fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<[DeviceResources; 2]>,
    /// What there is more of afterwards, in words.
    leaks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct OfProcess {
    process: String,
    before: Resources,
    after: Resources,
}

pub(crate) fn run(options: &Options, views: u64) -> Result<(), Failure> {
    let roles = ROLES.map(workers::Role::Leaks);
    let (rate_hz, payload_len) = (options.rate, options.size);
    let job = Job {
        limit_ms: options.limit_ms,
        views,
        forget: options.forget,
        // Speed is not measured, and a thread that spins takes the processor from the others.
        wait: Wait::Block,
        // Small rings are made faster, and are as many.
        ring_messages: RING_MESSAGES,
        ring_bytes: ((payload_len + SAMPLE_OVERHEAD) as u64) * u64::from(RING_MESSAGES),
        ..Job::new(roles[0], ROLES.len(), 0.0, rate_hz, payload_len)?
    };
    let views = u32::try_from(views).unwrap_or(u32::MAX);
    let time_limit = SLACK + VIEW_MAX.saturating_mul(views);
    let findings = workers::run(job, &roles, time_limit, |below| options.fabric.hosts(below))?;
    let outcome = Outcome::of(&findings)?;
    match options.json {
        true => println!("{}", serde_json::to_string(&outcome)?),
        false => outcome.print(),
    }
    outcome.judge()
}

impl Outcome {
    fn of(findings: &[Findings]) -> Result<Self, Failure> {
        let [writer, reader, changer] = findings else {
            let text = "a participant has reported nothing";
            return Err(Failure::Run(text.to_owned()));
        };
        let (mut belongings, mut leaks) = (Vec::new(), Vec::new());
        for (role, found) in ROLES.iter().zip(findings) {
            let (process, [before, after]) = (format!("{role:?}"), found.resources);
            let excess = after.excess_over(&before).into_iter();
            leaks.extend(excess.map(|excess| format!("{process} has {excess}")));
            belongings.push(OfProcess {
                process,
                before,
                after,
            });
        }
        if let Some([before, after]) = &changer.devices {
            let excess = after.excess_over(before).into_iter();
            leaks.extend(excess.map(|excess| format!("the devices have {excess}")));
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
            for (name, held) in [(&*of.process, &of.before), ("", &of.after)] {
                println!(
                    "{name:<8} {:>12} {:>9} {:>8} {:>12}",
                    held.descriptors, held.mappings, held.threads, held.pinned_kib
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
            let text = format!("{} samples were lost, or delivered twice", self.lost);
            return Err(Failure::Run(text));
        }
        if self.leaks.is_empty() {
            return Ok(());
        }
        let (views, leaks) = (self.views, self.leaks.join("; "));
        Err(Failure::Run(format!(
            "{views} views have left something behind: {leaks}"
        )))
    }
}

/// In the order of their findings.
const ROLES: [Role; 3] = [Role::Writer, Role::Reader, Role::Changer];
/// Messages in flight of one sender.
const RING_MESSAGES: u32 = 64;
/// For the formation of the group, for counting, and for its end.
const SLACK: Duration = Duration::from_secs(300);
/// Far more than a view takes, also where the processor is emulated.
const VIEW_MAX: Duration = Duration::from_secs(10);
