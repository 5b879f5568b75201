//! `processes crowd`: many participants on few processors come at once, exchange samples, and leave
//! at once.
//!
//! Each participant is a process. It enters, waits until it is matched with all, publishes a few
//! samples, takes those of all, and leaves. None may be expelled: a participant that is stops with
//! an error, and one that came back would be matched twice.

mod options;
mod roles;

use std::time::Duration;

use serde::Serialize;

pub(crate) use self::options::Options;
pub(crate) use self::roles::{Role, work};
use crate::Failure;
use crate::workers::{self, Job};
use roles::Findings;

/// What is printed: the worst of all runs.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    participants: usize,
    runs: usize,
    /// From the first start of a process to the last entry.
    entered_after_ms: f64,
    /// From the start of a process to its entry.
    join_ms_max: f64,
    /// Views until the last sample had been taken.
    views: u64,
    /// Samples taken, over all participants and runs.
    taken: u64,
    /// Processor time of all processes of a run.
    cpu_ms: f64,
    descriptors_max: u64,
    mappings_max: u64,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut outcome = Outcome::default();
    for run in 1..=options.repeat {
        let findings = run_once(options).map_err(|failure| {
            Failure::Run(format!("run {run} of {}: {failure}", options.repeat))
        })?;
        outcome.add(&findings);
    }
    match options.json {
        true => println!("{}", serde_json::to_string(&outcome)?),
        false => outcome.print(),
    }
    Ok(())
}

fn run_once(options: &Options) -> Result<Vec<Findings>, Failure> {
    let participants = options.participants;
    let role = workers::Role::Crowd(Role::Participant);
    let roles: Vec<_> = (0..participants).map(|_| role).collect();
    let job = Job {
        limit_ms: options.limit_ms,
        wait: workers::Wait::Block,
        ring_messages: RING_MESSAGES,
        ring_bytes: RING_BYTES,
        samples: options.samples,
        ..Job::new(role, participants, 0.0, 1.0, 0)?
    };
    let hosts = |below: &_| options.fabric.hosts(below);
    workers::run(job, &roles, PATIENCE, hosts)
}

impl Outcome {
    /// Adds a run.
    fn add(&mut self, findings: &[Findings]) {
        let max = |of: fn(&Findings) -> u64| findings.iter().map(of).max().unwrap_or(0);
        let min = |of: fn(&Findings) -> u64| findings.iter().map(of).min().unwrap_or(0);
        let ms = |ns: u64| ns as f64 / 1e6;
        let entered_after = max(|it| it.entered_at_ns).saturating_sub(min(|it| it.started_at_ns));
        let join = max(|it| it.entered_at_ns - it.started_at_ns);
        let cpu: u64 = findings.iter().map(|it| it.cpu_ns).sum();
        self.participants = findings.len();
        self.runs += 1;
        self.entered_after_ms = self.entered_after_ms.max(ms(entered_after));
        self.join_ms_max = self.join_ms_max.max(ms(join));
        self.views = self.views.max(max(|it| it.view));
        self.taken += findings.iter().map(|it| it.taken).sum::<u64>();
        self.cpu_ms = self.cpu_ms.max(ms(cpu));
        self.descriptors_max = self.descriptors_max.max(max(|it| it.resources.descriptors));
        self.mappings_max = self.mappings_max.max(max(|it| it.resources.mappings));
    }

    fn print(&self) {
        println!(
            "{} participants, {} runs: none was expelled, {} samples were taken",
            self.participants, self.runs, self.taken
        );
        println!(
            "at most: all entered after {:.0} ms, one after {:.0} ms; {} views; {:.0} ms of processor \
             time; {} descriptors and {} mappings of one process",
            self.entered_after_ms,
            self.join_ms_max,
            self.views,
            self.cpu_ms,
            self.descriptors_max,
            self.mappings_max
        );
    }
}

/// Of one participant: what it has to hold is small, and there are many.
const RING_MESSAGES: u32 = 16;
const RING_BYTES: u64 = 1 << 14;
/// After the start of a run.
const PATIENCE: Duration = Duration::from_secs(300);
