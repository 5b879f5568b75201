//! When each sample is sent.

use crate::Arguments;
use crate::clock::{monotonic_ns, wait_until};

/// Number and time of a sample, sent with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Counts from 0.
    pub number: u64,
    /// Whether this is the last sample.
    pub last: bool,
    /// When it was sent, by CLOCK_MONOTONIC; 0 if it is not timed.
    pub sent_at_ns: u64,
}

impl Stamp {
    /// Two words, to be sent in front of the payload.
    pub fn words(self) -> [u64; 2] {
        let last = if self.last { LAST } else { 0 };
        [self.number | last, self.sent_at_ns]
    }

    /// Decodes [`words`](Self::words).
    pub fn of_words([number, sent_at_ns]: [u64; 2]) -> Self {
        Self {
            number: number & !LAST,
            last: number & LAST != 0,
            sent_at_ns,
        }
    }
}

/// Yields the stamps of the samples; each call of `next` waits until its sample is due.
#[derive(Debug)]
pub(crate) struct Schedule {
    started_ns: u64,
    ends_at_ns: u64,
    samples: u64,
    period_ns: Option<f64>,
    next: u64,
    over: bool,
}

impl Schedule {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let started_ns = monotonic_ns();
        Self {
            started_ns,
            ends_at_ns: match arguments.samples {
                Some(_) => u64::MAX,
                None => started_ns + (arguments.seconds * 1e9) as u64,
            },
            samples: arguments.samples.unwrap_or(u64::MAX),
            period_ns: arguments.rate.map(|rate| 1e9 / rate),
            next: 0,
            over: false,
        }
    }

    pub(crate) fn started_ns(&self) -> u64 {
        self.started_ns
    }
}

impl Iterator for Schedule {
    type Item = Stamp;

    fn next(&mut self) -> Option<Stamp> {
        if self.over {
            return None;
        }
        let number = self.next;
        let mut sent_at_ns = 0;
        if let Some(period_ns) = self.period_ns {
            wait_until(self.started_ns + (number as f64 * period_ns) as u64);
            sent_at_ns = monotonic_ns();
        }
        // Reading the clock for each sample would cost as much as a sample of some middleware.
        let read_clock = self.period_ns.is_some() || number.is_multiple_of(READ_CLOCK_EVERY);
        self.over = number + 1 >= self.samples || (read_clock && monotonic_ns() >= self.ends_at_ns);
        self.next += 1;
        Some(Stamp {
            number,
            last: self.over,
            sent_at_ns,
        })
    }
}

const LAST: u64 = 1 << 63;
const READ_CLOCK_EVERY: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn check(arguments: &[&str]) -> Vec<Stamp> {
        let arguments = [&["peer", "publisher"], arguments].concat();
        Schedule::new(&Arguments::parse_from(arguments)).collect()
    }

    #[test]
    fn numbers_rise_and_one_is_the_last() {
        for arguments in [
            &["--samples", "1000"][..],
            &["--seconds", "0.01"],
            &["--seconds", "0.01", "--rate", "5000"],
        ] {
            let stamps = check(arguments);
            let numbers: Vec<u64> = stamps.iter().map(|stamp| stamp.number).collect();
            assert_eq!(numbers, (0..stamps.len() as u64).collect::<Vec<_>>());
            assert_eq!(stamps.iter().filter(|stamp| stamp.last).count(), 1);
            assert!(stamps[stamps.len() - 1].last);
        }
        assert_eq!(check(&["--samples", "1000"]).len(), 1000);
    }

    #[test]
    fn words_are_the_stamp() {
        for stamp in check(&["--samples", "3", "--rate", "100000"]) {
            assert_eq!(Stamp::of_words(stamp.words()), stamp);
            assert!(stamp.sent_at_ns > 0);
        }
    }
}
