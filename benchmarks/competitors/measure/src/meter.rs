//! The measurements of a reader.

use hdrhistogram::Histogram;

use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::report::{Latency, Report};
use crate::{Arguments, Failure, Read, Stamp};

/// Counts samples, measures their latencies, and reads their bytes.
#[derive(Debug)]
pub(crate) struct Meter {
    role: &'static str,
    kind: &'static str,
    read: Read,
    /// The first samples, which are not timed.
    warm_up: u64,
    samples: u64,
    lost: u64,
    late: u64,
    next: u64,
    complete: bool,
    started_ns: u64,
    ended_ns: u64,
    started_cpu_ns: u64,
    sum: u64,
    latency: Histogram<u64>,
}

impl Meter {
    pub(crate) fn new(
        role: &'static str,
        kind: &'static str,
        arguments: &Arguments,
    ) -> Result<Self, Failure> {
        let paced = arguments.rate.unwrap_or(0.0) * arguments.seconds;
        let samples = arguments.samples.unwrap_or(paced as u64);
        Ok(Self {
            role,
            kind,
            read: arguments.read,
            warm_up: samples / 10,
            samples: 0,
            lost: 0,
            late: 0,
            next: 0,
            complete: false,
            started_ns: 0,
            ended_ns: 0,
            started_cpu_ns: 0,
            sum: 0,
            latency: Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3)?,
        })
    }

    /// Records a received sample.
    pub(crate) fn sample(&mut self, stamp: Stamp, payload: &[u8]) {
        self.sum = self.sum.wrapping_add(match self.read {
            Read::Sum => sum_all(payload),
            Read::Touch => {
                let ends = [payload.first(), payload.last()];
                ends.into_iter()
                    .flatten()
                    .map(|byte| u64::from(*byte))
                    .sum()
            }
        });
        if stamp.number < self.next {
            self.late += 1;
            self.lost = self.lost.saturating_sub(1);
        } else {
            self.lost += stamp.number - self.next;
            self.next = stamp.number + 1;
        }
        let timed = stamp.sent_at_ns > 0;
        if timed || stamp.last || self.samples.is_multiple_of(READ_CLOCK_EVERY) {
            self.read_clock(stamp);
        }
        self.samples += 1;
        self.complete |= stamp.last;
    }

    fn read_clock(&mut self, stamp: Stamp) {
        let now_ns = monotonic_ns();
        if self.samples == 0 {
            self.started_ns = now_ns;
            self.started_cpu_ns = process_cpu_ns();
        }
        self.ended_ns = now_ns;
        if stamp.sent_at_ns > 0 && stamp.number >= self.warm_up {
            let took_ns = now_ns.saturating_sub(stamp.sent_at_ns);
            self.latency.saturating_record(took_ns);
        }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn report(&self) -> Report {
        // Otherwise the compiler may remove the reads of the payload.
        std::hint::black_box(self.sum);
        let latency = (!self.latency.is_empty()).then(|| Latency {
            kind: self.kind,
            samples: self.latency.len(),
            p50_ns: self.latency.value_at_quantile(0.5),
            p99_ns: self.latency.value_at_quantile(0.99),
        });
        Report {
            role: self.role,
            samples: self.samples,
            seconds: (self.ended_ns - self.started_ns) as f64 / 1e9,
            lost: self.lost,
            late: self.late,
            complete: self.complete,
            cpu_seconds: match self.samples {
                0 => 0.0,
                _ => (process_cpu_ns() - self.started_cpu_ns) as f64 / 1e9,
            },
            latency,
        }
    }
}

/// The sum of all bytes, in blocks whose sum fits into 16 bits, so that the compiler can use vector
/// additions. Adding byte by byte is limited to about 7 GB/s, which would dominate the measurement.
fn sum_all(payload: &[u8]) -> u64 {
    let blocks = payload.chunks(256);
    let sums = blocks.map(|block| block.iter().map(|byte| u16::from(*byte)).sum::<u16>());
    sums.map(u64::from).sum()
}

const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Reading the clock costs as much as a sample of the fastest middleware.
const READ_CLOCK_EVERY: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn check(numbers: &[u64], last: u64) -> Report {
        let arguments = Arguments::parse_from(["peer", "subscriber"]);
        let mut meter = Meter::new("subscriber", "one_way", &arguments).expect("a meter");
        for number in numbers {
            let stamp = Stamp {
                number: *number,
                last: *number == last,
                sent_at_ns: 0,
            };
            meter.sample(stamp, b"ab");
        }
        meter.report()
    }

    #[test]
    fn gaps_are_lost_and_what_comes_late_is_not() {
        let all = check(&[0, 1, 2, 3], 3);
        assert_eq!(
            (all.samples, all.lost, all.late, all.complete),
            (4, 0, 0, true)
        );
        let gap = check(&[0, 3, 4], 9);
        assert_eq!((gap.samples, gap.lost, gap.complete), (3, 2, false));
        let late = check(&[0, 2, 1, 3], 3);
        assert_eq!((late.samples, late.lost, late.late), (4, 0, 1));
    }

    #[test]
    fn blocks_of_the_highest_bytes_are_summed() {
        assert_eq!(sum_all(&[255; 1000]), 255_000);
    }
}
