//! `spindle perf scale`: many participants with many topics. How long it takes until all endpoints
//! match, what a process holds then, and after a few samples.
//!
//! ```text
//!   options     how many, beside which peer, how often
//!   run         one run: what its processes do one after the other
//!   late        one more participant joins those that run
//!   processes   starts them, gives them orders, reads what they hold
//!   protocol    the orders and answers
//!   worker      a process of Spindle's; cyclone: one of Cyclone DDS (cyclone.py)
//!   pacing      its samples at a pace
//!   resources   what a process holds, by the kernel's word
//!   summary     medians and spreads
//!   table, page print them; the page has the plots of the curve
//! ```

mod contender;
mod cyclone;
mod late;
mod options;
mod pacing;
mod page;
mod processes;
mod protocol;
mod resources;
mod run;
mod summary;
mod table;
mod worker;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fmt};

use indicatif::ProgressBar;
use serde::Serialize;

use self::contender::Contender;
use self::run::Plan;
use self::summary::Cell;
use super::Failure;
use crate::harness::{load, progress};

pub(crate) use self::options::ScaleOptions;
pub(super) use self::worker::run as work;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Size {
    participants: u32,
    topics: u32,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.participants, self.topics)
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    machine: String,
    /// The middleware beside Spindle, with its version.
    peer: Option<String>,
    /// Bytes of payload of the few samples.
    sample_bytes: u32,
    rounds: u32,
    /// Whether many samples were sent at the end.
    burst: bool,
    /// Of the size that was asked for.
    #[serde(flatten)]
    cell: Cell,
    /// Of all sizes, with `--curve`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    curve: Vec<Cell>,
}

pub(super) fn run(options: &ScaleOptions) -> Result<(), Failure> {
    options.check()?;
    let peer = match options.contenders().contains(&Contender::Cyclone) {
        true => Some(cyclone::version()?),
        false => None,
    };
    // What cannot be written is told before the runs, not after them.
    let report = options.report.as_deref().map(Report::create).transpose()?;
    let mut cells = measure(options)?;
    let cell = cells.iter().find(|cell| cell.size == options.whole());
    let Some(cell) = cell.cloned() else {
        return Err(Failure::Workers("nothing was measured".to_owned()));
    };
    if !options.curve {
        cells.clear();
    }
    let outcome = Outcome {
        machine: load::machine(),
        peer,
        sample_bytes: options.size,
        rounds: options.repeat,
        burst: options.burst,
        cell,
        curve: cells,
    };
    if let Some(report) = report {
        report.write(&outcome)?;
    }
    let mut out = io::stdout().lock();
    match options.json {
        true => writeln!(out, "{}", serde_json::to_string(&outcome)?)?,
        false => table::print(&mut out, &outcome)?,
    }
    Ok(())
}

/// All sizes, each in all rounds.
fn measure(options: &ScaleOptions) -> Result<Vec<Cell>, Failure> {
    let contenders = options.contenders();
    let plan = |size, contender| Plan {
        contender,
        size,
        sample_bytes: options.size,
        burst: options.burst,
        late: options.late,
        time_limit: options.time_limit(),
    };
    let sizes = options.sizes();
    let in_turn = |size| {
        contenders
            .iter()
            .map(move |contender| plan(size, *contender))
    };
    let steps = sizes
        .iter()
        .flat_map(|size| in_turn(*size))
        .map(|it| it.steps());
    let steps = steps.sum::<u64>() * u64::from(options.repeat);
    let progress = progress::bar(steps, MESSAGE_COLUMNS);
    let mut cells = Vec::new();
    for size in sizes {
        let mut rounds = Vec::new();
        for _ in 0..options.repeat {
            rounds.push(round(in_turn(size), &progress)?);
        }
        cells.push(Cell::of(size, &contenders, &rounds));
    }
    progress.finish_and_clear();
    Ok(cells)
}

fn round(
    in_turn: impl Iterator<Item = Plan>,
    progress: &ProgressBar,
) -> Result<Vec<run::RunFigures>, Failure> {
    in_turn.map(|plan| plan.run(progress)).collect()
}

impl Outcome {
    /// All sizes that were measured.
    fn cells(&self) -> &[Cell] {
        match self.curve.is_empty() {
            true => std::slice::from_ref(&self.cell),
            false => &self.curve,
        }
    }

    /// What was measured where.
    fn describe(&self) -> String {
        let peer = self.peer.as_ref();
        let peer = peer.map_or_else(String::new, |peer| format!("; in turns with {peer}"));
        let rounds = match self.rounds {
            1 => "one round".to_owned(),
            rounds => format!("medians of {rounds} rounds, [min .. max]"),
        };
        format!(
            "{}; {rounds}; samples of {} bytes{peer}",
            self.machine, self.sample_bytes
        )
    }
}

/// The file of the report.
struct Report {
    path: PathBuf,
    file: File,
}

impl Report {
    fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = File::options();
        // An older report stays until there is a new one.
        options.create(true).write(true).truncate(false);
        match options.open(path) {
            Ok(file) => Ok(Self {
                path: path.to_owned(),
                file,
            }),
            Err(error) => Err(Self::failure(path, &error)),
        }
    }

    fn write(mut self, outcome: &Outcome) -> Result<(), Failure> {
        let words = env::args_os().skip(1);
        let words: Vec<_> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let page = page::page(outcome, &format!("spindle {}", words.join(" ")));
        let emptied = self.file.set_len(0);
        let written = emptied.and_then(|()| self.file.write_all(page.as_bytes()));
        written.map_err(|error| Self::failure(&self.path, &error))
    }

    fn failure(path: &Path, error: &io::Error) -> Failure {
        Failure::Workers(format!("--report {}: {error}", path.display()))
    }
}

/// Ports of more participants of Cyclone DDS would be those of other domains.
const PEER_PARTICIPANTS_MAX: u32 = 100;
const MESSAGE_COLUMNS: usize = 40;
