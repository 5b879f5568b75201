//! What participants are asked to do beside sending and taking: to be late, or silent, to
//! take their time over samples, to write in several topics, to stay when all is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nothing of it, by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Drill {
    /// Of members, what the last of those that write does. The samples of the others are
    /// what is measured.
    pub(super) last: Last,
    /// How long participants wait for what is being set up, before the first sample.
    pub(super) settle_ns: u64,
    /// Measured topics beside the first, each in a subgroup of its own: every member writes
    /// in each, by a thread for each.
    pub(super) more_topics: u32,
    /// Samples are timed, from before their place is claimed until they are taken.
    pub(super) stamped: bool,
    /// How long a listener takes ...
    pub(super) upcall_ns: u64,
    /// ... for a call, whatever there is to take; else for each sample.
    pub(super) upcall_once: bool,
    /// How long members stay when they have all samples, and count what they push.
    pub(super) still_ns: u64,
}

/// What the last of the members that write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Last {
    /// The same as the others.
    #[default]
    Prompt,
    /// It waits for so long after each sample, in a loop that gives way to others, and stops when
    /// it has all of theirs.
    DelayedNs(u64),
    /// The same, but it sleeps, and a timer wakes it.
    SleepsNs(u64),
    /// It sends nothing, and deletes its writer when it has all samples of the others, or
    /// after so long; the others follow when something is missing still.
    SilentNs(u64),
}

impl Drill {
    /// Whether samples of this one of so many writers in a topic are measured.
    pub(super) fn is_prompt(&self, writer: usize, writers: usize) -> bool {
        self.last == Last::Prompt || !(writer + 1).is_multiple_of(writers.max(1))
    }
}

/// A time with its unit: `100us`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err("a number with ns, us, ms or s behind it, as 100us".to_owned()),
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
    fn times_have_units() {
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
    fn the_last_writer_of_each_topic_is_not_prompt() {
        let drill = Drill {
            last: Last::DelayedNs(1),
            ..Drill::default()
        };
        let prompt: Vec<bool> = (0..6).map(|writer| drill.is_prompt(writer, 3)).collect();
        assert_eq!(prompt, [true, true, false, true, true, false]);
        assert!(Drill::default().is_prompt(2, 3));
    }
}
