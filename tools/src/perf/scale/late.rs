//! One more participant joins those that run, while these send samples at a pace.

use std::time::Duration;

use super::processes::Processes;
use super::protocol::{Matched, Order, Paced, Told};
use crate::perf::Failure;

/// How one more participant has joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateJoin {
    /// From when it was told to begin until all its endpoints were matched.
    pub(super) matched_s: f64,
    /// Longest time for which a process had no sample of one of the others, before it joined.
    pub(super) gap_before_s: f64,
    /// The same while it joined.
    pub(super) gap_s: f64,
}

/// What is told while it joins.
enum Answer {
    Paced(Paced),
    Matched(Matched),
}

impl Processes<'_> {
    /// Lets the last process join.
    pub(super) fn join_late(&mut self) -> Result<LateJoin, Failure> {
        let pace = Order::Pace {
            ms: PACED.as_millis() as u64,
        };
        let before = self.ask(pace, "sending at a pace", |told| match told {
            Told::Paced(paced) => Some(paced),
            _ => None,
        })?;
        let late = self.len();
        let order = |number| match number == late {
            true => Some(Order::Begin),
            false => Some(pace),
        };
        let answers = self.ask_all(order, "one more joins", |told| match told {
            Told::Paced(paced) => Some(Answer::Paced(paced)),
            Told::Matched(matched) => Some(Answer::Matched(matched)),
            _ => None,
        })?;
        let (mut during, mut matched_s) = (Vec::new(), 0.0);
        for answer in answers {
            match answer {
                Answer::Paced(paced) => during.push(paced),
                Answer::Matched(it) => {
                    matched_s = it.matched_at_ns.saturating_sub(it.began_at_ns) as f64 / 1e9;
                }
            }
        }
        Ok(LateJoin {
            matched_s,
            gap_before_s: longest_gap_s(&before)?,
            gap_s: longest_gap_s(&during)?,
        })
    }
}

fn longest_gap_s(all: &[Paced]) -> Result<f64, Failure> {
    if all.iter().any(|paced| paced.taken == 0) {
        return Err(Failure::Workers(
            "a process took no sample at all".to_owned(),
        ));
    }
    let longest = all.iter().map(|paced| paced.longest_gap_ns).max();
    Ok(longest.unwrap_or(0) as f64 / 1e9)
}

/// How long samples are sent, without the newcomer and while it joins.
const PACED: Duration = Duration::from_secs(5);
