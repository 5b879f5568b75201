//! `processes isolation`: what one participant that misbehaves costs the others.
//!
//! ```text
//!   writer     publishes A, B, C, D
//!   reader     reads all, publishes a little of B
//!   culprit    reads A to D, publishes B and E; in a phase between two baselines it
//!                loans      holds samples of A, and builder loans of B and E
//!                listener   has a listener on B that does not return
//!                keep_all   does not take from C, of which it keeps 16 samples
//! ```
//!
//! The rate at which samples are taken, slice by slice, is compared with the baselines directly
//! before and after the phase. In the phase `keep_all` topic C stands still for both of its
//! readers; all else goes on. At the end both readers must have taken the same samples of each
//! topic in the same order.

mod entities;
mod options;
mod pacer;
mod roles;
mod timetable;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::options::Options;
use self::roles::{Findings, Misdeeds};
pub(crate) use self::roles::{Role, work};
use self::timetable::{PHASES, Phase, SLICES, TOPICS};
use crate::Failure;
use crate::workers::{self, Job};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    seconds: f64,
    rate_hz: f64,
    /// Whether A was sent as fast as there is room.
    free: bool,
    size: usize,
    phases: Vec<OfPhase>,
    /// The smallest of the ratios.
    least_ratio: f64,
    /// By topic, at the reader and at the culprit.
    digests: BTreeMap<String, [String; 2]>,
    identical: bool,
    /// Samples published and not taken, or taken twice.
    missed: u64,
    misdeeds: Misdeeds,
    cpu_seconds: BTreeMap<Role, f64>,
}

/// A phase of misbehaviour.
#[derive(Debug, Serialize)]
struct OfPhase {
    phase: Phase,
    streams: Vec<Stream>,
    /// By topic of the writer: samples whose write began in the phase.
    sent: BTreeMap<String, u64>,
    /// By topic: samples that the culprit took in the phase.
    taken_by_culprit: BTreeMap<String, u64>,
    /// By topic of the writer: its longest write.
    longest_write_ns: BTreeMap<String, u64>,
}

/// One topic at one of its readers.
#[derive(Debug, Serialize)]
struct Stream {
    participant: Role,
    topic: &'static str,
    /// Samples a second, medians: in the baselines before and after, and in the phase.
    baseline_hz: f64,
    rate_hz: f64,
    ratio: f64,
    /// The ratio of the slice with the fewest samples.
    least_slice_ratio: f64,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let roles = ROLES.map(workers::Role::Isolation);
    let (seconds, rate_hz, payload_len) = (options.seconds, options.rate, options.size);
    let job = Job {
        free: options.free,
        ..Job::new(roles[0], ROLES.len(), seconds, rate_hz, payload_len)?
    };
    let phases = Duration::from_nanos(job.phase_ns) * PHASES.len() as u32;
    let slice_s = (job.phase_ns / SLICES as u64) as f64 / 1e9;
    let findings = workers::run(job, &roles, phases + SLACK, |_| Ok(Vec::new()))?;
    let outcome = Outcome::of(options, slice_s, &findings)?;
    if options.json {
        println!("{}", serde_json::to_string(&outcome)?);
    } else {
        outcome.print();
    }
    if !outcome.identical || outcome.missed > 0 {
        return Err(Failure::Run(format!(
            "the readers differ, or missed samples: digests {:?}, {} samples missed",
            outcome.digests, outcome.missed
        )));
    }
    Ok(())
}

impl Outcome {
    fn of(options: &Options, slice_s: f64, findings: &[Findings]) -> Result<Self, Failure> {
        let [writer, reader, culprit] = findings else {
            let text = "a participant has reported nothing";
            return Err(Failure::Run(text.to_owned()));
        };
        let phases: Vec<OfPhase> = (1..PHASES.len() - 1)
            .step_by(2)
            .map(|at| OfPhase {
                phase: PHASES[at],
                streams: streams(at, slice_s, reader, culprit),
                sent: values_of_phase(at, &writer.sent),
                taken_by_culprit: taken_in_phase(at, culprit),
                longest_write_ns: values_of_phase(at, &writer.longest_write_ns),
            })
            .collect();
        let streams = phases.iter().flat_map(|phase| &phase.streams);
        let digests: BTreeMap<String, [String; 2]> = TOPICS
            .iter()
            .map(|topic| {
                let digest = |of: &Findings| format!("{:016x}", of.seen[*topic].digest);
                ((*topic).to_owned(), [digest(reader), digest(culprit)])
            })
            .collect();
        Ok(Self {
            seconds: options.seconds,
            rate_hz: options.rate,
            free: options.free,
            size: options.size,
            least_ratio: streams.map(|stream| stream.ratio).fold(f64::MAX, f64::min),
            phases,
            identical: digests.values().all(|[one, other]| one == other),
            digests,
            missed: missed(findings),
            misdeeds: culprit.misdeeds,
            cpu_seconds: ROLES
                .into_iter()
                .zip(findings.iter().map(|found| found.cpu_ns as f64 / 1e9))
                .collect(),
        })
    }

    fn print(&self) {
        println!(
            "A {}, B {:.0} samples/s, {} bytes, phases of {} s",
            if self.free { "free" } else { "paced" },
            self.rate_hz,
            self.size,
            self.seconds
        );
        println!();
        println!(
            "{:<10} {:<8} {:<5} {:>12} {:>12} {:>7} {:>12}",
            "phase", "reader", "topic", "baseline/s", "samples/s", "ratio", "least slice"
        );
        for phase in &self.phases {
            for stream in &phase.streams {
                println!(
                    "{:<10} {:<8} {:<5} {:>12.0} {:>12.0} {:>7.3} {:>12.3}",
                    format!("{:?}", phase.phase),
                    format!("{:?}", stream.participant),
                    stream.topic,
                    stream.baseline_hz,
                    stream.rate_hz,
                    stream.ratio,
                    stream.least_slice_ratio
                );
            }
        }
        println!();
        for phase in &self.phases {
            let longest = phase.longest_write_ns.iter();
            let longest: Vec<String> = longest
                .map(|(topic, ns)| format!("{topic} {:.1}", *ns as f64 / 1e6))
                .collect();
            println!(
                "{:<10} longest write, ms: {}",
                format!("{:?}", phase.phase),
                longest.join(", ")
            );
        }
        println!();
        println!(
            "digests {}, missed {}, held {} samples and {} loans",
            if self.identical {
                "identical"
            } else {
                "DIFFER"
            },
            self.missed,
            self.misdeeds.samples_held,
            self.misdeeds.loans_held
        );
    }
}

/// The streams that keep their rates in a phase: all but the topic that is not taken. The
/// culprit's listener takes B, and nothing while it does not return.
fn streams(at: usize, slice_s: f64, reader: &Findings, culprit: &Findings) -> Vec<Stream> {
    let of_reader = TOPICS.map(|topic| (Role::Reader, topic, reader));
    let of_culprit = TOPICS.map(|topic| (Role::Culprit, topic, culprit));
    let affected = |role: Role, topic: &str| match PHASES[at] {
        Phase::Listener => role == Role::Culprit && topic == "B",
        Phase::KeepAll => topic == "C",
        _ => false,
    };
    of_reader
        .into_iter()
        .chain(of_culprit)
        .filter(|(role, topic, _)| !affected(*role, topic))
        .map(|(participant, topic, findings)| {
            let phase = |at: usize| &findings.seen[topic].slices[at * SLICES..(at + 1) * SLICES];
            let baseline = (median(phase(at - 1)) + median(phase(at + 1))) / 2.0;
            let least = phase(at).iter().copied().min().unwrap_or(0) as f64;
            let rate = median(phase(at));
            Stream {
                participant,
                topic,
                baseline_hz: baseline / slice_s,
                rate_hz: rate / slice_s,
                ratio: rate / baseline.max(1.0),
                least_slice_ratio: least / baseline.max(1.0),
            }
        })
        .collect()
}

/// By topic: the value of one phase.
fn values_of_phase(at: usize, by_phase: &BTreeMap<String, Vec<u64>>) -> BTreeMap<String, u64> {
    let topics = by_phase.iter();
    topics
        .map(|(topic, values)| (topic.clone(), values[at]))
        .collect()
}

/// By topic: samples taken in a phase.
fn taken_in_phase(at: usize, findings: &Findings) -> BTreeMap<String, u64> {
    let of_phase = |slices: &[u64]| slices[at * SLICES..(at + 1) * SLICES].iter().sum();
    let seen = findings.seen.iter();
    seen.map(|(topic, seen)| (topic.clone(), of_phase(&seen.slices)))
        .collect()
}

fn median(counts: &[u64]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => 0.0,
        len => (sorted[(len - 1) / 2] + sorted[len / 2]) as f64 / 2.0,
    }
}

/// Samples that were published and that a reader has not taken, or has taken twice.
fn missed(findings: &[Findings]) -> u64 {
    let published = |topic: &str| -> u64 {
        let of_topic = findings.iter().filter_map(|one| one.published.get(topic));
        of_topic.sum()
    };
    let seen = findings.iter().flat_map(|one| &one.seen);
    seen.map(|(topic, seen)| published(topic).abs_diff(seen.samples))
        .sum()
}

/// In the order of their findings.
const ROLES: [Role; 3] = [Role::Writer, Role::Reader, Role::Culprit];
/// For the formation of the group, and to take what is left.
const SLACK: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_slices() {
        for (counts, expected) in [
            (&[][..], 0.0),
            (&[3], 3.0),
            (&[5, 1, 3], 3.0),
            (&[4, 1, 2, 3], 2.5),
        ] {
            assert_eq!(median(counts), expected, "{counts:?}");
        }
    }
}
