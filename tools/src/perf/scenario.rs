//! What participants do besides sending and taking: delayed or silent senders, slow upcalls,
//! several topics, idling at the end. `benchmarks/paper` measures these.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What participants do besides sending and taking; by default nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Scenario {
    /// What the last writing member does. Only the samples of the others are measured.
    pub(super) last: Last,
    /// Time to wait before the first sample, for the set-up to end.
    pub(super) settle_ns: u64,
    /// Measured topics beside the first, each in its own subgroup. Every member writes in each of
    /// them, with one thread per topic.
    pub(super) more_topics: u32,
    /// Whether samples carry the time from before their claim, so that their latency is measured.
    pub(super) is_stamped: bool,
    /// Time that a listener takes for each sample, or for each call.
    pub(super) upcall_ns: u64,
    /// Whether `upcall_ns` is per call, not per sample.
    pub(super) is_upcall_once: bool,
    /// Time for which members stay idle after the last sample and count their pushes.
    pub(super) still_ns: u64,
}

/// What the last writing member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    /// It sends like the others.
    #[default]
    Prompt,
    /// It waits this long after each sample, in a loop that yields the processor, and stops when
    /// it has received all samples of the others.
    DelayedNs(u64),
    /// The same, but it sleeps, so a timer wakes it.
    SleepsNs(u64),
    /// It sends nothing, and deletes its writer when it has received all samples of the others, or
    /// after this time. The others then do the same if samples are missing still.
    SilentNs(u64),
}

impl Scenario {
    /// Whether the samples of a writer are measured: `writer` counts through all topics, of
    /// which each has `writers`.
    pub(super) fn is_prompt(&self, writer: usize, writers: usize) -> bool {
        self.last == Last::Prompt || !(writer + 1).is_multiple_of(writers.max(1))
    }
}

/// Parses a time with its unit: `100us`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err("not a number followed by ns, us, ms or s, for example 100us".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|error| format!("{number}: {error}"))?;
    let ns = number.checked_mul(ns).filter(|ns| *ns <= LONGEST_NS);
    ns.map(Duration::from_nanos)
        .ok_or_else(|| "at most an hour".to_owned())
}

const LONGEST_NS: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit() {
        let check = |text: &str, ns: u64| assert_eq!(duration(text), Ok(Duration::from_nanos(ns)));
        check("100us", 100_000);
        check("3s", 3_000_000_000);
        check("0ms", 0);
        for bad in [
            "100",
            "us",
            "",
            "1.5ms",
            "1 us",
            "-1s",
            "1m",
            "99999999999999999999s",
            "3601s",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_last_writer_of_each_topic_is_not_measured() {
        let scenario = Scenario {
            last: Last::DelayedNs(1),
            ..Scenario::default()
        };
        let prompt: Vec<bool> = (0..6).map(|writer| scenario.is_prompt(writer, 3)).collect();
        assert_eq!(prompt, [true, true, false, true, true, false]);
        assert!(Scenario::default().is_prompt(2, 3));
    }
}
