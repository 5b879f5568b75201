//! The output of a run, and the load of the machine; rounds, and their medians.

use std::collections::BTreeMap;

use crate::model::Batches;
use serde::{Deserialize, Serialize};

use spindle_dds_tools::harness::cache_line::Around;
use spindle_dds_tools::harness::load::Load;
use spindle_dds_tools::harness::spread::Spread;

/// The results of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Outcome {
    /// Messages per second at the slowest reader.
    pub(super) messages_per_s: f64,
    /// Payload at the slowest reader, GB/s.
    pub(super) gb_per_s: f64,
    /// From before claiming a message until it is taken, over all readers; only if messages are
    /// stamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency_mean_us: Option<f64>,
    /// Messages per second of the last sender, until the slowest reader has all measured messages.
    pub(super) last_messages_per_s: f64,
    /// Processor time of all participants per message that a reader took.
    pub(super) cpu_us: f64,
    /// Nulls of all participants.
    pub(super) nulls: u64,
    /// Pushes of all participants in subgroups.
    pub(super) pushes: u64,
    /// The same per message that a reader took.
    pub(super) pushes_a_message: f64,
    /// Pushes while the participants stayed idle afterwards, if they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) still_pushes: Option<u64>,
    /// Messages delivered per upcall.
    pub(super) messages_an_upcall: f64,
    pub(super) send: Batches,
    pub(super) receive: Batches,
    pub(super) delivery: Batches,
    /// Share of all processors that other processes used.
    pub(super) foreign: f64,
    /// Nanoseconds of a cache line between processors, just before and just after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_ns: Option<Around>,
    /// Messages per second of the first row of its table, just before and just after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_row: Option<(f64, f64)>,
}

impl Outcome {
    /// From the line that `spindle perf throughput --json` prints.
    pub(super) fn of(line: &str, load: Load, line_ns: Option<Around>) -> Result<Self, String> {
        let told: Printed = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if told.lost > 0 {
            return Err(format!("{} samples were lost", told.lost));
        }
        let taken: u64 = told.per_reader.iter().map(|it| it.samples).sum();
        let readers = told.per_reader.iter().map(|it| &it.counters);
        // A member's reader and writer share its counters.
        let writers = told.per_writer.iter().filter(|_| told.members.is_none());
        let all: Vec<&Counters> = readers.chain(writers.map(|it| &it.counters)).collect();
        let sum = |of: fn(&Counters) -> u64| all.iter().map(|it| of(it)).sum::<u64>();
        let batches = |messages, of: fn(&Counters) -> &Sizes| {
            merged(messages, all.iter().map(|it| &of(it).buckets[..]))
        };
        Ok(Self {
            messages_per_s: told.samples_per_s,
            gb_per_s: told.bytes_per_s / 1e9,
            latency_mean_us: told.latency_ns.map(|latency| latency.mean / 1e3),
            last_messages_per_s: told.per_writer.last().map_or(0, |it| it.samples) as f64
                / told.seconds.max(1e-9),
            cpu_us: told.cpu_seconds.total * 1e6 / taken.max(1) as f64,
            nulls: sum(|it| it.nulls),
            pushes: sum(|it| it.pushes),
            pushes_a_message: sum(|it| it.pushes) as f64 / taken.max(1) as f64,
            still_pushes: told.still_pushes.map(|pushes| pushes.iter().sum()),
            messages_an_upcall: sum(|it| it.delivered) as f64 / sum(|it| it.upcalls).max(1) as f64,
            send: batches(sum(|it| it.sent), |it| &it.send_batch),
            receive: batches(sum(|it| it.received), |it| &it.receive_batch),
            delivery: batches(sum(|it| it.delivered), |it| &it.delivery_batch),
            foreign: load.foreign,
            line_ns,
            first_row: None,
        })
    }
}

impl Outcome {
    pub(super) fn throughput(&self) -> f64 {
        self.gb_per_s
    }

    pub(super) fn rate(&self) -> f64 {
        self.messages_per_s
    }

    /// The mean latency of a stamped run.
    pub(super) fn latency(&self) -> f64 {
        self.latency_mean_us.unwrap_or(f64::NAN)
    }
}

fn merged<'a>(messages: u64, of: impl Iterator<Item = &'a [(u64, u64)]>) -> Batches {
    let mut buckets = BTreeMap::new();
    for (size, batches) in of.flatten() {
        *buckets.entry(*size).or_insert(0) += batches;
    }
    let batches: u64 = buckets.values().sum();
    Batches {
        mean: messages as f64 / batches.max(1) as f64,
        buckets: buckets.into_iter().collect(),
    }
}

/// Several rounds of the same run, at least one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Rounds {
    pub(super) each: Vec<Outcome>,
    /// Batches of all rounds.
    pub(super) send: Batches,
    pub(super) receive: Batches,
    pub(super) delivery: Batches,
}

impl Rounds {
    /// `None` if there are none.
    pub(super) fn of(each: &[Outcome]) -> Option<Self> {
        let batches = |of: fn(&Outcome) -> &Batches| {
            // The number of messages of each round.
            let messages = each.iter().map(|it| {
                let batches = of(it).buckets.iter().map(|(_, count)| count).sum::<u64>();
                of(it).mean * batches as f64
            });
            let messages = messages.sum::<f64>().round() as u64;
            merged(messages, each.iter().map(|it| &of(it).buckets[..]))
        };
        (!each.is_empty()).then(|| Self {
            each: each.to_vec(),
            send: batches(|it| &it.send),
            receive: batches(|it| &it.receive),
            delivery: batches(|it| &it.delivery),
        })
    }

    pub(super) fn spread(&self, of: fn(&Outcome) -> f64) -> Spread {
        let values = self.each.iter().map(of).collect();
        Spread::of(values).unwrap_or(Spread::ZERO)
    }

    pub(super) fn median(&self, of: fn(&Outcome) -> f64) -> f64 {
        self.spread(of).median
    }

    /// Its rate relative to the first row of its table: the median over the rounds of the ratio to
    /// the mean rate of the first row just before and just after. 1 for the first row itself.
    pub(super) fn of_first(&self) -> f64 {
        let ratio = |one: &Outcome| {
            let (before, after) = one.first_row?;
            Some(one.rate() / f64::midpoint(before, after))
        };
        let ratios = self.each.iter().filter_map(ratio).collect();
        Spread::of(ratios).map_or(1.0, |ratios| ratios.median)
    }

    /// The ratio to another run that took turns with it: the median over the rounds. A machine that
    /// is slow for minutes is slow for both in most rounds.
    pub(super) fn over(&self, other: &Self, of: fn(&Outcome) -> f64) -> f64 {
        let rounds = self.each.iter().zip(&other.each);
        let ratios = rounds.map(|(one, other)| of(one) / of(other)).collect();
        Spread::of(ratios).map_or(f64::NAN, |ratios| ratios.median)
    }
}

pub(super) fn throughput(rounds: &Rounds) -> f64 {
    rounds.median(Outcome::throughput)
}

pub(super) fn rate(rounds: &Rounds) -> f64 {
    rounds.median(Outcome::rate)
}

/// The latency of stamped runs.
pub(super) fn latency(rounds: &Rounds) -> f64 {
    rounds.median(Outcome::latency)
}

/// A part of the output of `spindle perf throughput --json`.
#[derive(Deserialize)]
struct Printed {
    members: Option<u32>,
    seconds: f64,
    samples_per_s: f64,
    bytes_per_s: f64,
    latency_ns: Option<Latency>,
    still_pushes: Option<Vec<u64>>,
    lost: u64,
    cpu_seconds: CpuSeconds,
    per_reader: Vec<OfOne>,
    per_writer: Vec<OfOne>,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
}

#[derive(Deserialize)]
struct CpuSeconds {
    total: f64,
}

#[derive(Deserialize)]
struct OfOne {
    samples: u64,
    counters: Counters,
}

#[derive(Deserialize)]
struct Counters {
    sent: u64,
    nulls: u64,
    received: u64,
    delivered: u64,
    upcalls: u64,
    pushes: u64,
    send_batch: Sizes,
    receive_batch: Sizes,
    delivery_batch: Sizes,
}

#[derive(Deserialize)]
struct Sizes {
    buckets: Vec<(u64, u64)>,
}

#[cfg(test)]
impl Outcome {
    /// The outcome of a run without messages.
    pub(super) fn test() -> Self {
        let no_batches = || Batches {
            mean: 0.0,
            buckets: Vec::new(),
        };
        Self {
            messages_per_s: 0.0,
            gb_per_s: 0.0,
            latency_mean_us: None,
            last_messages_per_s: 0.0,
            cpu_us: 0.0,
            nulls: 0,
            pushes: 0,
            pushes_a_message: 0.0,
            still_pushes: None,
            messages_an_upcall: 0.0,
            send: no_batches(),
            receive: no_batches(),
            delivery: no_batches(),
            foreign: 0.0,
            line_ns: None,
            first_row: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(rates: [f64; 3]) -> Rounds {
        let outcomes = rates.map(|messages_per_s| Outcome {
            messages_per_s,
            ..Outcome::test()
        });
        Rounds::of(&outcomes).expect("rounds")
    }

    #[test]
    fn a_round_that_is_slow_for_both_does_not_change_their_ratio() {
        let (one, other) = (rounds([50.0, 10.0, 50.0]), rounds([100.0, 20.0, 20.0]));
        assert_eq!(one.over(&other, Outcome::rate), 0.5);
        // The ratio of the medians is wrong.
        assert_eq!(rate(&one) / rate(&other), 2.5);
    }

    #[test]
    fn a_row_is_compared_with_the_first_row_before_and_after_it() {
        let mut row = rounds([90.0, 45.0, 80.0]);
        let first = [(90.0, 110.0), (40.0, 60.0), (100.0, 100.0)];
        for (one, first_row) in row.each.iter_mut().zip(first) {
            one.first_row = Some(first_row);
        }
        assert_eq!(row.of_first(), 0.9);
        assert_eq!(rounds([90.0, 45.0, 80.0]).of_first(), 1.0);
    }
}
