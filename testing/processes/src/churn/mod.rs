//! `processes churn`: what it costs others that endpoints come and go.
//!
//! ```text
//!   writer   publishes Busy as fast as there is room, and Calm at a pace
//!   reader   reads both
//!   near     creates and deletes a reader and a writer of Busy, in a loop
//!   far      does the same with a topic of its own
//! ```
//!
//! Busy, Calm and the topic of `far` have subgroups of their own, so no change touches that of
//! Calm. In a first phase nothing changes, in a second one `near` and `far` make their changes,
//! in a third one nothing changes again. The reader has to get all that was published, once
//! each and in order; a reader of `near` or `far` has to get the same from its first sample on.
//! The writers of `near` and `far` are called guests.

mod entities;
mod options;
mod roles;
mod waits;
mod watch;

use std::time::Duration;

use serde::Serialize;

pub(crate) use self::entities::{BUSY, COUNTED, Entities, START};
pub(crate) use self::options::Options;
use self::roles::Findings;
pub(crate) use self::roles::{CATCH_UP_NS, GUEST_SAMPLES, Role, TICK, work};
pub(crate) use self::waits::{
    delete_reader, wait_for_readers, wait_for_view_after, wait_for_writers,
};
pub(crate) use self::watch::{SharedWatch, TakingListener, Watch, with};
use crate::Failure;
use crate::resources::Resources;
use crate::workers::{self, Job};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    seconds: f64,
    /// Endpoints created or deleted, by `near` and by `far`.
    changes: [usize; 2],
    busy: Rates,
    calm: Rates,
    /// The longest time without a sample of Busy, in each change of its subgroup.
    outage_ms: Spread,
    /// The same in as many windows, as long, of the time in which nothing changed.
    quiet_ms: Spread,
    /// The longest write of Busy.
    longest_write_ms: f64,
    /// Samples of Busy and Calm.
    published: u64,
    /// Samples of Busy, Calm and guests that the reader did not get, or got twice.
    lost: u64,
    /// Samples that guests published.
    by_guests: u64,
    /// Samples that the readers of `near` and `far` got.
    to_guests: u64,
    /// Views that began during the changes.
    views: u64,
    /// What the process of `near` held before the changes and after them.
    belongings: [Resources; 2],
}

/// Samples a second at the reader.
#[derive(Debug, Serialize)]
struct Rates {
    quiet_hz: f64,
    churn_hz: f64,
    ratio: f64,
}

#[derive(Debug, Default, Serialize)]
struct Spread {
    median: f64,
    max: f64,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let roles = ROLES.map(workers::Role::Churn);
    let (seconds, rate_hz, payload_len) = (options.seconds, options.rate, options.size);
    let job = Job {
        limit_ms: options.limit_ms,
        ..Job::new(roles[0], ROLES.len(), seconds, rate_hz, payload_len)?
    };
    let phases = Duration::from_nanos(job.phase_ns) * 2;
    let hosts = |below: &_| options.fabric.hosts(below);
    let findings = workers::run(job, &roles, phases + SLACK, hosts)?;
    let outcome = Outcome::of(options.seconds, &findings)?;
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
    fn of(seconds: f64, findings: &[Findings]) -> Result<Self, Failure> {
        let [writer, reader, near, far] = findings else {
            let text = "a participant has reported nothing";
            return Err(Failure::Run(text.to_owned()));
        };
        let windows: Vec<(u64, u64)> = near
            .changed_at_ns
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        let quiet = windows_as_long(&windows, &reader.quiet_ns);
        let by_guests = near.guests_sent + far.guests_sent;
        let taken_of_guests = reader.guests_taken + far.taken_by_guests;
        Ok(Self {
            seconds,
            changes: [near, far].map(|it| it.changed_at_ns.len()),
            busy: Rates::of(seconds, reader.busy_by_phase),
            calm: Rates::of(seconds, reader.calm_by_phase),
            outage_ms: Spread::of(&windows, &reader.gaps_ns),
            quiet_ms: Spread::of(&quiet, &reader.gaps_ns),
            longest_write_ms: writer.longest_write_ns as f64 / 1e6,
            published: writer.published.iter().sum(),
            lost: writer.published[0].abs_diff(reader.taken[0])
                + writer.published[1].abs_diff(reader.taken[1])
                + by_guests.abs_diff(taken_of_guests),
            by_guests,
            to_guests: near.taken_by_guests + far.taken_by_guests,
            views: near.views,
            belongings: near.resources,
        })
    }

    fn print(&self) {
        println!(
            "{:<6} {:>12} {:>12} {:>8}",
            "topic", "quiet, /s", "churn, /s", "ratio"
        );
        for (name, rates) in [("Busy", &self.busy), ("Calm", &self.calm)] {
            println!(
                "{name:<6} {:>12.0} {:>12.0} {:>8.3}",
                rates.quiet_hz, rates.churn_hz, rates.ratio
            );
        }
        println!();
        println!(
            "{} + {} changes in {} s; longest gap of Busy in a change, ms: median {:.2}, max {:.2} \
             (in as long a time without changes: {:.2}, {:.2})",
            self.changes[0],
            self.changes[1],
            self.seconds,
            self.outage_ms.median,
            self.outage_ms.max,
            self.quiet_ms.median,
            self.quiet_ms.max
        );
        println!(
            "published {}, lost {}; by writers that came and went {}, to such readers {}",
            self.published, self.lost, self.by_guests, self.to_guests
        );
        let [before, after] = &self.belongings;
        println!(
            "{} views; descriptors of one process before and after: {}, {}; mappings {}, {}; \
             pinned, KiB: {}, {}",
            self.views,
            before.descriptors,
            after.descriptors,
            before.mappings,
            after.mappings,
            before.pinned_kib,
            after.pinned_kib
        );
    }
}

impl Rates {
    /// Of the samples of the three phases, the first and last of which are half as long as the
    /// second.
    fn of(seconds: f64, samples: [u64; 3]) -> Self {
        let hz = |count: u64| count as f64 / seconds;
        let (quiet_hz, churn_hz) = (hz(samples[0] + samples[2]), hz(samples[1]));
        Self {
            quiet_hz,
            churn_hz,
            ratio: churn_hz / quiet_hz.max(1.0),
        }
    }
}

impl Spread {
    /// Of the longest gap that reaches into each window. Windows and gaps are pairs of
    /// nanoseconds, from and to, in the order of time.
    fn of(windows: &[(u64, u64)], gaps: &[(u64, u64)]) -> Self {
        let longest = |(from, to): &(u64, u64)| {
            let first = gaps.partition_point(|(_, end)| end <= from);
            let within = gaps[first..].iter().take_while(|(start, _)| start < to);
            let lengths = within.map(|(start, end)| end - start);
            lengths.max().unwrap_or(0)
        };
        let mut longest: Vec<u64> = windows.iter().map(longest).collect();
        longest.sort_unstable();
        let ms = |ns: Option<&u64>| ns.copied().unwrap_or(0) as f64 / 1e6;
        Self {
            median: ms(longest.get(longest.len() / 2)),
            max: ms(longest.last()),
        }
    }
}

/// Windows of the same lengths within other stretches of time, as many as there is room for.
fn windows_as_long(windows: &[(u64, u64)], stretches: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut lengths = windows.iter().map(|(from, to)| to - from);
    let mut found = Vec::new();
    for (mut from, end) in stretches.iter().copied() {
        for length in lengths.by_ref() {
            if from + length > end {
                break;
            }
            found.push((from, from + length));
            from += length;
        }
    }
    found
}

/// In the order of their findings.
const ROLES: [Role; 4] = [Role::Writer, Role::Reader, Role::Near, Role::Far];
/// For the formation of the group, and its end.
const SLACK: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_of_each_window_counts() {
        let gaps = [(0, 3_000_000), (10_000_000, 11_000_000)];
        let check = |windows: &[(u64, u64)], median: f64, max: f64| {
            let spread = Spread::of(windows, &gaps);
            assert_eq!((spread.median, spread.max), (median, max), "{windows:?}");
        };
        check(&[], 0.0, 0.0);
        check(&[(2_000_000, 4_000_000)], 3.0, 3.0);
        check(&[(3_000_000, 4_000_000)], 0.0, 0.0);
        check(&[(3_000_000, 4_000_000), (4_000_000, 20_000_000)], 1.0, 1.0);
        check(&[(1, 2), (2, 3), (10_500_000, 10_600_000)], 3.0, 3.0);
    }

    #[test]
    fn windows_of_the_same_lengths_fill_other_stretches() {
        let windows = [(0, 3), (3, 5), (5, 9), (9, 10)];
        let found = windows_as_long(&windows, &[(100, 106), (200, 201)]);
        assert_eq!(found, [(100, 103), (103, 105), (200, 201)]);
    }
}
