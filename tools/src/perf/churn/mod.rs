//! `spindle perf churn`: what it costs others that endpoints come and go.
//!
//! ```text
//!   writer   publishes Busy as fast as there is room, Calm at a pace
//!   reader   reads both
//!   near     creates and deletes a reader and a writer of Busy, in a loop
//!   far      the same with a topic of its own
//! ```
//!
//! Busy, Calm and the topic of `far` have subgroups of their own: Calm is in none that
//! changes. First nobody comes or goes, then both do, then nobody again. The reader has
//! to get all that was published, once each and in order, and so has whoever comes, from
//! its first sample on.
//!
//! With `--views` it is another measurement, of what views leave behind: see `views`.

mod belongings;
mod devices;
mod endpoints;
mod parts;
pub(super) mod views;

use std::time::Duration;

use serde::Serialize;

use self::belongings::Belongings;
pub(super) use self::parts::{Findings, Part, work};
use super::job::{Job, Report, Role};
use super::options::ChurnOptions;
use super::place::Place;
use super::{Failure, fleet};

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    seconds: f64,
    /// Endpoints created or deleted, by `near` and `far`.
    changes: [usize; 2],
    busy: Rates,
    calm: Rates,
    /// The longest time in which nothing of Busy came, in each change of its subgroup.
    outage_ms: Spread,
    /// The same in as many, and as long, parts of the time in which nothing changed.
    quiet_ms: Spread,
    /// The longest that a write of Busy took.
    longest_write_ms: f64,
    published: u64,
    /// Samples of Busy and Calm that the reader did not get, and those of guests that it
    /// did not, or got twice.
    lost: u64,
    /// Samples that `near` and `far` published with writers that came and went.
    by_guests: u64,
    /// Samples that readers got that came and went.
    to_guests: u64,
    /// Views that began meanwhile.
    views: u64,
    /// What the process of `near` had before the changes, and after.
    belongings: [Belongings; 2],
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

pub(super) fn run(options: &ChurnOptions) -> Result<(), Failure> {
    if let Some(count) = options.views {
        return views::run(options, count);
    }
    let role = Role::Churn(Part::Writer);
    let (seconds, rate, size) = (options.seconds, options.rate, options.size);
    let job = Job {
        places: Place::all(&options.on)?,
        limit_ms: options.limit_ms,
        ..Job::in_phases(role, PARTS.len(), seconds, rate, size)?
    };
    let phases = Duration::from_nanos(job.phase_ns) * 2;
    let reports = fleet::run(&job, &PARTS.map(Role::Churn), phases + SLACK)?;
    let outcome = Outcome::of(options.seconds, &reports)?;
    match options.json {
        true => println!("{}", serde_json::to_string(&outcome)?),
        false => outcome.print(),
    }
    match outcome.lost {
        0 => Ok(()),
        lost => Err(Failure::Workers(format!(
            "{lost} samples were lost, or came twice"
        ))),
    }
}

impl Outcome {
    fn of(seconds: f64, reports: &[Report]) -> Result<Self, Failure> {
        let findings: Vec<&Findings> = reports
            .iter()
            .filter_map(|report| report.churn.as_ref())
            .collect();
        let [writer, reader, near, far] = findings[..] else {
            let text = "a participant told nothing of what it found";
            return Err(Failure::Workers(text.to_owned()));
        };
        let windows: Vec<(u64, u64)> = near
            .changed_at_ns
            .windows(2)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        let quiet = as_long(&windows, &reader.quiet_ns);
        let by_guests = near.guests_sent + far.guests_sent;
        let got = reader.guests_taken + far.own_taken;
        Ok(Self {
            seconds,
            changes: [near, far].map(|it| it.changed_at_ns.len()),
            busy: Rates::of(seconds, reader.busy),
            calm: Rates::of(seconds, reader.calm),
            outage_ms: Spread::of(&windows, &reader.gaps_ns),
            quiet_ms: Spread::of(&quiet, &reader.gaps_ns),
            longest_write_ms: writer.longest_write_ns as f64 / 1e6,
            published: writer.published.iter().sum(),
            lost: writer.published[0].abs_diff(reader.taken[0])
                + writer.published[1].abs_diff(reader.taken[1])
                + by_guests.abs_diff(got),
            by_guests,
            to_guests: near.own_taken + far.own_taken,
            views: near.views,
            belongings: near.belongings,
        })
    }

    fn print(&self) {
        let rate = |name: &str, rates: &Rates| {
            println!(
                "{name:<6} {:>12.0} {:>12.0} {:>8.3}",
                rates.quiet_hz, rates.churn_hz, rates.ratio
            );
        };
        println!(
            "{:<6} {:>12} {:>12} {:>8}",
            "topic", "quiet, /s", "churn, /s", "ratio"
        );
        rate("Busy", &self.busy);
        rate("Calm", &self.calm);
        println!();
        println!(
            "{} + {} changes in {} s; longest gap of Busy in a change, ms: median {:.2}, max {:.2} \
             (as long without: {:.2}, {:.2})",
            self.changes[0],
            self.changes[1],
            self.seconds,
            self.outage_ms.median,
            self.outage_ms.max,
            self.quiet_ms.median,
            self.quiet_ms.max
        );
        println!(
            "published {}, lost {}; by writers that came and went {}, to readers {}",
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
    /// Of samples before, while and after endpoints come and go: before and after are
    /// half as long each.
    fn of(seconds: f64, counts: [u64; 3]) -> Self {
        let hz = |count: u64| count as f64 / seconds;
        let (quiet_hz, churn_hz) = (hz(counts[0] + counts[2]), hz(counts[1]));
        Self {
            quiet_hz,
            churn_hz,
            ratio: churn_hz / quiet_hz.max(1.0),
        }
    }
}

impl Spread {
    /// Of the longest gap that reaches into each window. Both are in the order of time.
    fn of(windows: &[(u64, u64)], gaps: &[(u64, u64)]) -> Self {
        let longest = |(from, to): &(u64, u64)| {
            let first = gaps.partition_point(|(_, end)| end <= from);
            let within = gaps[first..].iter().take_while(|(start, _)| start < to);
            let lengths = within.map(|(start, end)| end - start);
            lengths.max().unwrap_or(0)
        };
        let mut longest: Vec<u64> = windows.iter().map(longest).collect();
        longest.sort_unstable();
        let at = |place: Option<&u64>| place.copied().unwrap_or(0) as f64 / 1e6;
        Self {
            median: at(longest.get(longest.len() / 2)),
            max: at(longest.last()),
        }
    }
}

/// Windows of these lengths in other stretches of time, as many as there is room for.
fn as_long(windows: &[(u64, u64)], stretches: &[(u64, u64)]) -> Vec<(u64, u64)> {
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

/// In the order of their reports.
const PARTS: [Part; 4] = [Part::Writer, Part::Reader, Part::Near, Part::Far];
/// For the formation of the group, and its end.
const SLACK: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_of_each_window() {
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
    fn windows_elsewhere() {
        let windows = [(0, 3), (3, 5), (5, 9), (9, 10)];
        let found = as_long(&windows, &[(100, 106), (200, 201)]);
        assert_eq!(found, [(100, 103), (103, 105), (200, 201)]);
    }
}
