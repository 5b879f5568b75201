//! What is printed.

use serde::Serialize;

use super::options::Durability;
use crate::Failure;

/// The outcome of a run.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) durability: Option<Durability>,
    pub(super) seed: u64,
    /// From the first joiner on.
    pub(super) seconds: f64,
    /// Samples that each writer had written before.
    pub(super) history_samples: u64,
    /// Samples that each writer has written.
    pub(super) published: Vec<u64>,
    /// The longest write.
    pub(super) longest_write_ms: f64,
    /// Joiners that were started.
    pub(super) joiners: u64,
    /// Readers that have got all history.
    pub(super) completed: u64,
    /// Joiners that were killed before, and after, that.
    pub(super) killed_midway: u64,
    pub(super) killed_later: u64,
    /// Joiners that left in order.
    pub(super) left: u64,
    /// Keepers that were killed while a joiner got history, and how many of these joiners got all.
    pub(super) donors_killed: u64,
    pub(super) completed_after_kill: u64,
    /// Samples that all readers have taken.
    pub(super) taken: u64,
    /// From the start of a joiner until it had all history: the median, and the longest.
    pub(super) history_ms: [f64; 2],
    pub(super) lost: u64,
    pub(super) twice: u64,
    pub(super) held: bool,
    /// What did not hold, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) complaints: Vec<String>,
}

impl Outcome {
    /// Notes the time that each joiner needed.
    pub(super) fn set_history_ns(&mut self, mut all_ns: Vec<u64>) {
        all_ns.sort_unstable();
        let ms = |ns: Option<&u64>| ns.copied().unwrap_or(0) as f64 / 1e6;
        self.history_ms = [ms(all_ns.get(all_ns.len() / 2)), ms(all_ns.last())];
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!(
            "{} joiners in {:.1} s: {} readers got all history, {} joiners were killed midway, {} \
             later, {} left",
            self.joiners,
            self.seconds,
            self.completed,
            self.killed_midway,
            self.killed_later,
            self.left
        );
        println!(
            "{} donors were killed, {} joiners of these got all history nevertheless",
            self.donors_killed, self.completed_after_kill
        );
        println!(
            "published {:?}, of which {} each were history; taken {}, lost {}, twice {}",
            self.published, self.history_samples, self.taken, self.lost, self.twice
        );
        println!(
            "history complete after {:.0} ms (median), {:.0} ms at most; longest write {:.1} ms",
            self.history_ms[0], self.history_ms[1], self.longest_write_ms
        );
        Ok(())
    }

    pub(super) fn judge(&self) -> Result<(), Failure> {
        match self.held {
            true => Ok(()),
            false => Err(Failure::Run(self.complaints.join("; "))),
        }
    }
}
