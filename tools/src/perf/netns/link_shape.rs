//! What a link does to packets: it delays, loses, and limits them.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use spindle_dds_children::netns::LinkDiscipline;

use crate::perf::scenario::duration;

/// What each host's link does to the packets that the host sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args, Serialize)]
pub(crate) struct LinkShape {
    /// Time that each packet takes longer, one way (for example 500us): half of a round trip.
    #[arg(long = "delay", value_name = "TIME", value_parser = delay_ns)]
    delay_ns: Option<u64>,
    /// Share of the packets that are lost (for example 0.1%). Packets are then as long as on the
    /// wire; without loss, the kernel hands over up to 64 KiB at once.
    #[arg(long = "loss", value_name = "PERCENT", value_parser = percent)]
    loss_percent: Option<f64>,
    /// Bits per second of each link (for example 1gbit).
    #[arg(long = "rate", value_name = "RATE", value_parser = bits_per_s)]
    rate_bits_per_s: Option<u64>,
}

impl LinkShape {
    /// A link that only delays.
    pub(super) fn delaying(delay: Duration) -> Self {
        Self {
            delay_ns: Some(delay.as_nanos() as u64).filter(|ns| *ns > 0),
            ..Self::default()
        }
    }

    /// What a link of this shape is told.
    pub(super) fn discipline(&self) -> LinkDiscipline {
        LinkDiscipline {
            words: self.words(),
            is_unsegmented: self.loss_percent.is_some(),
        }
    }

    /// The queueing discipline, as `tc` takes it; `None` if a link does nothing to packets.
    fn words(&self) -> Option<String> {
        let needs_netem = self.delay_ns.is_some() || self.loss_percent.is_some();
        let words = match (needs_netem, self.rate_bits_per_s) {
            (false, None) => return None,
            // Part of more kernels than netem.
            (false, Some(rate)) => {
                let (burst, limit) = ((rate / 8 / TICKS_PER_S).max(BURST_MIN), QUEUE_BYTES);
                format!("tbf rate {rate}bit burst {burst} limit {limit}")
            }
            (true, rate) => {
                // The limit counts delayed packets: none must be lost because of it.
                let mut words = format!("netem limit {QUEUE_PACKETS}");
                if let Some(ns) = self.delay_ns {
                    words += &format!(" delay {}us", ns as f64 / 1e3);
                }
                if let Some(percent) = self.loss_percent {
                    words += &format!(" loss {percent}%");
                }
                if let Some(rate) = rate {
                    words += &format!(" rate {rate}bit");
                }
                words
            }
        };
        Some(words)
    }
}

impl std::fmt::Display for LinkShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let round_trip_ms = |ns| 2.0 * ns as f64 / 1e6;
        let delay = self.delay_ns.map(|ns| {
            let ms = round_trip_ms(ns);
            format!("{ms} ms a round trip")
        });
        let loss = self.loss_percent.map(|it| format!("{it} % lost"));
        let rate = self
            .rate_bits_per_s
            .map(|it| format!("{} Mbit/s", it as f64 / 1e6));
        let all: Vec<String> = [delay, loss, rate].into_iter().flatten().collect();
        match all.is_empty() {
            true => f.write_str("no delay, no loss"),
            false => f.write_str(&all.join(", ")),
        }
    }
}

fn delay_ns(text: &str) -> Result<u64, String> {
    duration(text).map(|delay: Duration| delay.as_nanos() as u64)
}

/// Parses `0.1%`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|it| it.parse().ok());
    let number = number.filter(|it| (0.0..100.0).contains(it));
    number.ok_or_else(|| "not a percentage from 0% to below 100%, for example 0.1%".to_owned())
}

/// Parses `1gbit`.
fn bits_per_s(text: &str) -> Result<u64, String> {
    let wrong = || "not a number followed by kbit, mbit or gbit, for example 1gbit".to_owned();
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let unit = match unit {
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let rate = number * unit;
    match (1e3..=1e12).contains(&rate) {
        true => Ok(rate as u64),
        false => Err("from 1kbit to 1000gbit".to_owned()),
    }
}

/// Packets that netem holds at once, at most.
const QUEUE_PACKETS: u32 = 100_000;
/// Bytes that wait at a link with a rate, at most: more than rings hold.
const QUEUE_BYTES: u32 = 1 << 30;
/// The least common rate of the kernel's timer, at which tbf lets packets through.
const TICKS_PER_S: u64 = 100;
/// A packet as the kernel hands it over.
const BURST_MIN: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_needed() {
        assert_eq!(percent("0.1%"), Ok(0.1));
        assert_eq!(percent("0%"), Ok(0.0));
        for bad in ["0.1", "%", "-1%", "100%", "x%", "NaN%"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
        assert_eq!(bits_per_s("1gbit"), Ok(1_000_000_000));
        assert_eq!(bits_per_s("2.5mbit"), Ok(2_500_000));
        for bad in ["1", "gbit", "1gb", "-1gbit", "0kbit", "1e9gbit", "2000gbit"] {
            assert!(bits_per_s(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_link_is_shaped_by_what_is_asked_for() {
        let check = |delay, loss, rate, expected: Option<&str>| {
            let shape = LinkShape {
                delay_ns: delay,
                loss_percent: loss,
                rate_bits_per_s: rate,
            };
            assert_eq!(shape.words().as_deref(), expected);
        };
        check(None, None, None, None);
        let netem = "netem limit 100000 delay 500us loss 0.1% rate 1000000bit";
        check(Some(500_000), Some(0.1), Some(1_000_000), Some(netem));
        check(None, Some(1.0), None, Some("netem limit 100000 loss 1%"));
        let tbf = "tbf rate 1000000000bit burst 1250000 limit 1073741824";
        check(None, None, Some(1_000_000_000), Some(tbf));
    }

    #[test]
    fn a_shape_is_told_in_words() {
        let shape = LinkShape {
            delay_ns: Some(500_000),
            loss_percent: Some(0.1),
            rate_bits_per_s: Some(1_000_000_000),
        };
        assert_eq!(
            shape.to_string(),
            "1 ms a round trip, 0.1 % lost, 1000 Mbit/s"
        );
        assert_eq!(LinkShape::default().to_string(), "no delay, no loss");
    }
}
