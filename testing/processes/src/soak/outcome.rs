//! What a run has shown.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Soak;
use super::fault::Fault;
use super::process::Balance;
use crate::{Failure, clock};

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    seed: u64,
    seconds: f64,
    processes: u32,
    topics: u32,
    faults: BTreeMap<Fault, usize>,
    written: u64,
    taken: u64,
    /// SAMPLE_LOST of the participants that were stopped.
    missed: u64,
    /// Times that something was refused for want of resources.
    refusals: u64,
    /// From SIGCONT until a stopped participant was known to be back, in milliseconds: three seconds
    /// at least, as it may not know before that it was out.
    back_after_ms_max: f64,
    /// What each process that lived long enough held at first and at the end.
    balances: BTreeMap<usize, Balance>,
    /// What did not hold, in words.
    complaints: Vec<String>,
}

impl Outcome {
    pub(super) fn of(soak: &Soak<'_>, seed: u64) -> Self {
        let now_ns = clock::monotonic_ns();
        let mut faults = BTreeMap::new();
        for (_, fault, _) in &soak.faults {
            *faults.entry(*fault).or_default() += 1;
        }
        let mut complaints = soak.complaints.clone();
        let mut balances = BTreeMap::new();
        for (number, process) in soak.processes.iter().enumerate() {
            let Some(balance) = process.balance(now_ns) else {
                continue;
            };
            let excess = balance.excess().into_iter();
            complaints.extend(excess.map(|excess| format!("participant {number} has {excess}")));
            balances.insert(number, balance);
        }
        let sum = |of: fn(&super::messages::State) -> u64| -> u64 {
            soak.processes.iter().map(|it| of(&it.state)).sum()
        };
        Self {
            seed,
            seconds: soak.seconds(now_ns),
            processes: soak.options.processes,
            topics: soak.options.topics,
            faults,
            written: soak.ended.0 + sum(|it| it.written),
            taken: soak.ended.1 + sum(|it| it.taken),
            missed: sum(|it| it.missed),
            refusals: soak.refusals,
            back_after_ms_max: soak
                .back_after_ns
                .iter()
                .max()
                .map_or(0.0, |it| *it as f64 / 1e6),
            balances,
            complaints,
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!(
            "{} participants with {} topics, {:.0} s, seed {}: {} samples written, {} taken",
            self.processes, self.topics, self.seconds, self.seed, self.written, self.taken
        );
        for (fault, count) in &self.faults {
            println!("{count:>5} times {}", fault.name());
        }
        println!(
            "missed by those that were stopped {}, refused {}, back after {:.0} ms at most",
            self.missed, self.refusals, self.back_after_ms_max
        );
        println!("{:<4} {:<40} at the end", "", "at first");
        for (number, Balance { first, last, .. }) in &self.balances {
            println!("{number:<4} {first} | {last}");
        }
        Ok(())
    }

    pub(super) fn judge(&self) -> Result<(), Failure> {
        if self.complaints.is_empty() {
            return Ok(());
        }
        let (seed, complaints) = (self.seed, self.complaints.join("; "));
        Err(Failure::Run(format!("seed {seed}: {complaints}")))
    }
}
