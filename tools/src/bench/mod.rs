//! `spindle bench`: Spindle and other middleware in turns on this machine.
//!
//! A *cell* is what is measured: a sample size, a number of readers, what they do with a sample,
//! how they wait. Its *contenders* run one after the other, round by round, so that other load on
//! the machine affects all of them. A round in which the machine changed (the processors were
//! closer together for some contenders than for others) is run again. Each run of a contender is
//! a *trial*, in processes of its own; the load by other processes is recorded with it.
//!
//! ```text
//!   options     which cells, how long, how many rounds
//!   cell        what is measured
//!   contender   what can be measured: spindle, cyclone, the programs of
//!               `benchmarks/competitors/`, and work: what bytes cost without a middleware
//!   trial       starts processes, reads their output, kills those that hang
//!   tally       trials of a cell become medians and ratios
//!   table       prints them
//! ```

mod cell;
mod contender;
pub(crate) mod cyclone;
mod options;
mod program;
mod spindle;
mod table;
mod tally;
mod trial;
mod work;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::json;

use crate::harness::cache_line::are_alike;
use crate::harness::{load, progress};
use cell::Cell;
use contender::{Contender, Setup};
pub(crate) use options::BenchOptions;
use tally::Tally;
use trial::Trial;

/// Reasons for the command to fail.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("--only {name}: not one of {known}")]
    Unknown { name: String, known: String },
    #[error("no figure of spindle for: {0}")]
    Spindle(String),
}

/// Runs all cells. Fails if Spindle has no result for one; other middleware may have none.
pub(crate) fn run(options: &BenchOptions) -> ExitCode {
    match measure(options, options.rounds as usize) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &BenchOptions, rounds: usize) -> Result<(), Failure> {
    let present = present(options)?;
    let cells: Vec<Cell> = Cell::all(options);
    let runs = |cell: &Cell| present.iter().filter(|it| it.takes_part(cell)).count();
    let trials: usize = cells.iter().map(runs).sum::<usize>() * (rounds + 1);
    let mut bench = Bench {
        options,
        rounds,
        progress: progress::bar(trials as u64, MESSAGE_COLUMNS),
        sessions: 0,
    };
    bench.say(&json!({ "kind": "machine", "machine": load::machine() }))?;
    let mut tallies = Vec::new();
    for cell in cells {
        tallies.push(bench.cell(&cell, &present)?);
    }
    bench.progress.finish_and_clear();
    let mut out = io::stdout().lock();
    if !options.json {
        table::print(&mut out, &tallies, options, rounds)?;
    }
    let without: Vec<String> = tallies
        .iter()
        .filter(|tally| tally.lacks_spindle())
        .map(|tally| tally.cell.to_string())
        .collect();
    match without.is_empty() {
        true => Ok(()),
        false => Err(Failure::Spindle(without.join("; "))),
    }
}

/// The contenders that are installed, Spindle first. Prints how to install the others.
fn present(options: &BenchOptions) -> Result<Vec<Box<dyn Contender>>, Failure> {
    let all = contender::all(options);
    let known = || all.iter().map(|it| it.name()).collect::<Vec<_>>();
    for name in &options.only {
        if !known().contains(&name.as_str()) {
            let known = known().join(", ");
            let name = name.clone();
            return Err(Failure::Unknown { name, known });
        }
    }
    let mut present = Vec::new();
    for contender in all {
        let name = contender.name();
        let wanted = options.only.is_empty() || options.only.iter().any(|it| it == name);
        if name != contender::SPINDLE && !wanted {
            continue;
        }
        match contender.missing() {
            None => present.push(contender),
            Some(how) if options.json => {
                let line = json!({ "kind": "absent", "contender": name, "install": how });
                writeln!(io::stdout(), "{line}")?;
            }
            Some(how) => writeln!(io::stdout(), "not installed: {name:<15} {how}")?,
        }
    }
    Ok(present)
}

/// A contender's name, and its trial or error.
type Outcome = (&'static str, Result<Trial, String>);

struct Bench<'a> {
    options: &'a BenchOptions,
    rounds: usize,
    progress: ProgressBar,
    sessions: u64,
}

impl Bench<'_> {
    fn cell(&mut self, cell: &Cell, present: &[Box<dyn Contender>]) -> Result<Tally, Failure> {
        let mut tally = Tally::new(cell.clone());
        let mut in_turn: Vec<&dyn Contender> = present
            .iter()
            .map(AsRef::as_ref)
            .filter(|contender| contender.takes_part(cell))
            .collect();
        let mut repeats = self.rounds;
        // Round 0 warms up, and finds how many samples fit into the time, and which contenders fail.
        for round in 0..=self.rounds {
            let outcomes = loop {
                let outcomes = self.round(cell, round, &in_turn, &tally)?;
                let trials = outcomes.iter().map(|(_, outcome)| outcome.as_ref());
                let all: Result<Vec<_>, _> = trials.collect();
                // A failed contender is reported, and the round is not run again.
                let counts = all.map_or(true, |all| {
                    are_alike(all.into_iter().filter_map(|trial| trial.line_ns))
                });
                if counts || round == 0 || repeats == 0 {
                    break outcomes;
                }
                repeats -= 1;
                self.progress.inc_length(in_turn.len() as u64);
            };
            let still = in_turn.len();
            // A contender that fails is not run again: one that hangs would cost its time limit
            // each round.
            for (name, outcome) in outcomes {
                if outcome.is_err() {
                    in_turn.retain(|contender| contender.name() != name);
                }
                tally.add(name, round, outcome);
            }
            let left = (self.rounds - round) as u64;
            self.progress.inc((still - in_turn.len()) as u64 * left);
        }
        for row in tally.rows() {
            self.say(&json!({ "kind": "row", "cell": cell, "row": row }))?;
        }
        Ok(tally)
    }

    /// Runs each contender once.
    fn round(
        &mut self,
        cell: &Cell,
        round: usize,
        in_turn: &[&dyn Contender],
        tally: &Tally,
    ) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::new();
        for contender in in_turn {
            let name = contender.name();
            self.progress.set_message(format!("{cell}: {name}"));
            let setup = self.setup(round, tally.rate_hz(name));
            let outcome = trial::run(*contender, cell, &setup)?;
            self.report(cell, name, round, &outcome)?;
            self.progress.inc(1);
            outcomes.push((name, outcome));
        }
        Ok(outcomes)
    }

    fn setup(&mut self, round: usize, rate_hz: Option<f64>) -> Setup {
        self.sessions += 1;
        let seconds = match round {
            0 => (self.options.seconds / 4.0).min(WARM_UP_S),
            _ => self.options.seconds,
        };
        Setup {
            session: format!("{}x{}", std::process::id(), self.sessions),
            seconds,
            samples: rate_hz.map(|rate_hz| (rate_hz * seconds) as u64),
            rate_hz: self.options.rate,
            limit: Duration::from_secs(self.options.limit),
        }
    }

    fn report(
        &self,
        cell: &Cell,
        name: &str,
        round: usize,
        outcome: &Result<Trial, String>,
    ) -> Result<(), Failure> {
        let mut line = json!({
            "kind": "trial", "cell": cell, "contender": name, "round": round,
        });
        match outcome {
            Ok(trial) => line["trial"] = json!(trial),
            Err(error) => {
                line["error"] = json!(error);
                let told = || eprintln!("{cell}: {name}: {error}");
                self.progress.suspend(told);
            }
        }
        self.say(&line)
    }

    /// Prints a line of JSON, with `--json`.
    fn say(&self, line: &serde_json::Value) -> Result<(), Failure> {
        if self.options.json {
            let written = self.progress.suspend(|| writeln!(io::stdout(), "{line}"));
            written?;
        }
        Ok(())
    }
}

const WARM_UP_S: f64 = 0.25;
const MESSAGE_COLUMNS: usize = 60;
