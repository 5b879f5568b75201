//! What a run prints, and how busy the machine was; rounds of it, and their medians.

use std::collections::BTreeMap;

use crate::model::Batches;
use serde::{Deserialize, Serialize};

use spindle_dds_tools::harness::cache_line::Around;
use spindle_dds_tools::harness::load::Load;
use spindle_dds_tools::harness::spread::Spread;

/// What a run comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Outcome {
    /// At the slowest reader.
    pub(super) messages_per_s: f64,
    /// At the slowest reader: payload.
    pub(super) gb_per_s: f64,
    /// From before claiming a message until it is taken, over all readers: if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) latency_mean_us: Option<f64>,
    /// Of the last that sends, until the slowest reader has what is measured.
    pub(super) last_messages_per_s: f64,
    /// Processor time of all participants for each message that a reader took.
    pub(super) cpu_us: f64,
    /// Of all participants.
    pub(super) nulls: u64,
    /// Pushes of all participants in subgroups.
    pub(super) pushes: u64,
    /// ... for each message that a reader took.
    pub(super) pushes_a_message: f64,
    /// Pushes while they stayed, if they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) still_pushes: Option<u64>,
    /// Messages that readers took for each time that they were told.
    pub(super) messages_an_upcall: f64,
    pub(super) send: Batches,
    pub(super) receive: Batches,
    pub(super) delivery: Batches,
    /// Share of all processors that others used.
    pub(super) foreign: f64,
    /// Nanoseconds that a cache line took between processors just before, and just after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_ns: Option<Around>,
    /// Messages a second of the first row of its table, just before and just after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_row: Option<(f64, f64)>,
}

impl Outcome {
    /// From the line that `spindle perf throughput --json` prints.
    pub(super) fn of(line: &str, load: Load, line_ns: Option<Around>) -> Result<Self, String> {
        let told: Told = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if told.lost > 0 {
            return Err(format!("{} samples were lost", told.lost));
        }
        let taken: u64 = told.per_reader.iter().map(|it| it.samples).sum();
        let readers = told.per_reader.iter().map(|it| &it.counters);
        // Members are in both.
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

    /// Of a run that is stamped.
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

/// The same run, several times. There is one at least.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Rounds {
    pub(super) each: Vec<Outcome>,
    /// Batches of all rounds.
    pub(super) send: Batches,
    pub(super) receive: Batches,
    pub(super) delivery: Batches,
}

impl Rounds {
    /// Nothing, if there are none.
    pub(super) fn of(each: &[Outcome]) -> Option<Self> {
        let batches = |of: fn(&Outcome) -> &Batches| {
            // In each, as many messages as there are.
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

    /// How its rate stands to that of the first row of its table: the median of how it stood to
    /// the mean of what that was just before and just after. The first row is what it is.
    pub(super) fn of_first(&self) -> f64 {
        let ratio = |one: &Outcome| {
            let (before, after) = one.first_row?;
            Some(one.rate() / f64::midpoint(before, after))
        };
        let ratios = self.each.iter().filter_map(ratio).collect();
        Spread::of(ratios).map_or(1.0, |ratios| ratios.median)
    }

    /// How it stands to another that it has taken turns with: the median of how it stood in
    /// each round. A machine that is slow for minutes is slow for both in most of them.
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

/// Of runs that are stamped.
pub(super) fn latency(rounds: &Rounds) -> f64 {
    rounds.median(Outcome::latency)
}

/// Of what `spindle perf throughput --json` prints.
#[derive(Deserialize)]
struct Told {
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
    /// Of a run in which nothing happened.
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
    fn what_is_slow_for_both_says_nothing_of_how_they_stand() {
        let (one, other) = (rounds([50.0, 10.0, 50.0]), rounds([100.0, 20.0, 20.0]));
        assert_eq!(one.over(&other, Outcome::rate), 0.5);
        // By their medians, it would be the other way round.
        assert_eq!(rate(&one) / rate(&other), 2.5);
    }

    #[test]
    fn a_row_stands_to_the_first_as_that_was_before_and_after_it() {
        let mut row = rounds([90.0, 45.0, 80.0]);
        let first = [(90.0, 110.0), (40.0, 60.0), (100.0, 100.0)];
        for (one, first_row) in row.each.iter_mut().zip(first) {
            one.first_row = Some(first_row);
        }
        assert_eq!(row.of_first(), 0.9);
        assert_eq!(rounds([90.0, 45.0, 80.0]).of_first(), 1.0);
    }
}
