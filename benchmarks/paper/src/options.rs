//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::real;
use crate::report::Subject;
use crate::simulated::figures;

/// Runs the Spindle paper's experiments again, in virtual time and with real processes on this
/// machine, and writes a report.
#[derive(Debug, Parser)]
#[command(name = "paper", version)]
pub(crate) struct Options {
    /// Run in virtual time only, with costs from the paper's text.
    #[arg(long, conflicts_with = "real")]
    pub(crate) simulated: bool,
    /// Run real processes only.
    #[arg(long)]
    pub(crate) real: bool,
    /// Rounds of real processes for each figure [default: 5, and 1 with --quick].
    #[arg(long, conflicts_with = "simulated",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Run only this figure of the paper, or `upcalls` for its section III-D. May be repeated.
    #[arg(long, value_name = "N", value_parser = subject)]
    pub(crate) figure: Vec<Subject>,
    /// Run few points with few messages: seconds instead of minutes.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Directory for report.html and runs.jsonl; created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "paper-report")]
    pub(crate) out: PathBuf,
}

impl Options {
    /// Rounds of real processes; `None` if there are none.
    pub(crate) fn real_rounds(&self) -> Option<usize> {
        let default = if self.quick { 1 } else { ROUNDS };
        let rounds = self.rounds.map_or(default, |rounds| rounds as usize);
        (!self.simulated).then_some(rounds)
    }

    /// Whether anything runs in virtual time.
    pub(crate) fn has_simulated(&self) -> bool {
        !self.real
    }

    /// The subjects to run, in the paper's order.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        let all = real::SUBJECTS.into_iter();
        all.filter(|it| self.figure.is_empty() || self.figure.contains(it))
    }

    /// The command line with these options.
    pub(crate) fn command(&self) -> String {
        let source = match (self.has_simulated(), self.real_rounds()) {
            (_, None) => " --simulated".to_owned(),
            (true, Some(rounds)) => format!(" --rounds {rounds}"),
            (false, Some(rounds)) => format!(" --real --rounds {rounds}"),
        };
        let figures = self
            .figure
            .iter()
            .map(|subject| format!(" --figure {}", subject.id()));
        let quick = if self.quick { " --quick" } else { "" };
        format!(
            "paper{source}{quick}{} --out {}",
            figures.collect::<String>(),
            self.out.display()
        )
    }
}

fn subject(text: &str) -> Result<Subject, String> {
    let mut known = real::SUBJECTS.into_iter();
    known.find(|subject| subject.id() == text).ok_or_else(|| {
        let first = figures::NUMBERS[0];
        let last = figures::NUMBERS[figures::NUMBERS.len() - 1];
        format!("the paper's experiments are figures {first} to {last}, and `upcalls`")
    })
}

const ROUNDS: usize = 5;
