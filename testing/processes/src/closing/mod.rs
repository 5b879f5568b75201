//! `processes closing`: a participant with many topics closes while others exchange samples.
//!
//! Each of the participants has a writer and a reader of every topic. The last one closes in an
//! orderly way, which ends the epochs of all topics at once. The others publish to all topics in
//! turn, before and after; none of them may be expelled, and each has to get all that they publish,
//! once each and in order.

mod options;
mod roles;

use std::time::Duration;

use serde::Serialize;

pub(crate) use self::options::Options;
use self::roles::Findings;
pub(crate) use self::roles::{Role, work};
use crate::Failure;
use crate::workers::{self, Job};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    participants: usize,
    topics: u32,
    /// How long `close` took.
    close_ms: f64,
    /// The longest write of those that stay.
    longest_write_ms: f64,
    /// By those that stay.
    published: u64,
    /// Of these, how many were not taken, or twice, over all that stay.
    lost: u64,
    /// Processor time of all processes.
    cpu_ms: f64,
    descriptors_max: u64,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let stay = (0..options.participants as u32 - 1).map(Role::Stays);
    let roles: Vec<_> = stay
        .chain([Role::Closes])
        .map(workers::Role::Closing)
        .collect();
    let (seconds, rate_hz) = (options.seconds, options.rate);
    let job = Job {
        limit_ms: options.limit_ms,
        ring_messages: RING_MESSAGES,
        ring_bytes: RING_BYTES,
        topics: options.topics,
        ..Job::new(roles[0], roles.len(), seconds, rate_hz, 0)?
    };
    let hosts = |below: &_| options.fabric.hosts(below);
    let findings = workers::run(job, &roles, PATIENCE, hosts)?;
    let outcome = Outcome::of(options, &findings);
    match options.json {
        true => println!("{}", serde_json::to_string(&outcome)?),
        false => outcome.print(),
    }
    match outcome.lost {
        0 => Ok(()),
        lost => Err(Failure::Run(format!(
            "{lost} samples were lost, or delivered twice"
        ))),
    }
}

impl Outcome {
    fn of(options: &Options, findings: &[Findings]) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let max = |of: fn(&Findings) -> u64| findings.iter().map(of).max().unwrap_or(0);
        let published: u64 = findings.iter().map(|it| it.published).sum();
        let stay = findings.iter().filter(|it| it.close_ns == 0);
        Self {
            participants: findings.len(),
            topics: options.topics,
            close_ms: ms(max(|it| it.close_ns)),
            longest_write_ms: ms(max(|it| it.longest_write_ns)),
            published,
            lost: stay.map(|it| published.abs_diff(it.taken)).sum(),
            cpu_ms: ms(findings.iter().map(|it| it.cpu_ns).sum()),
            descriptors_max: max(|it| it.descriptors),
        }
    }

    fn print(&self) {
        println!(
            "{} participants, {} topics: the one that closes took {:.0} ms; the longest write of the \
             others took {:.0} ms",
            self.participants, self.topics, self.close_ms, self.longest_write_ms
        );
        println!(
            "published {}, lost {}; {:.0} ms of processor time, at most {} descriptors of one process",
            self.published, self.lost, self.cpu_ms, self.descriptors_max
        );
    }
}

/// There are many rings.
const RING_MESSAGES: u32 = 16;
const RING_BYTES: u64 = 1 << 12;
const PATIENCE: Duration = Duration::from_secs(300);
