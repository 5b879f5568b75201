//! The content of a report: figures, the paper's statements on each, and our results, in virtual
//! time and with real processes.

use std::fmt;

use crate::model::constants::Constant;
use serde::{Serialize, Serializer};

pub(crate) use spindle_dds_tools::harness::plot::Axis;
use spindle_dds_tools::harness::spread::Spread;

/// A subject of the paper that is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A figure, by its number in the paper.
    Figure(u32),
    /// The paper's section III-D on slow upcalls.
    Upcalls,
}

impl Subject {
    /// Its name on the command line.
    pub(crate) fn id(self) -> String {
        match self {
            Self::Figure(number) => number.to_string(),
            Self::Upcalls => "upcalls".to_owned(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(number) => write!(f, "Figure {number}"),
            Self::Upcalls => f.write_str("Section III-D"),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Figure(number) => to.serialize_u32(*number),
            Self::Upcalls => to.serialize_str("upcalls"),
        }
    }
}

/// A figure of the paper, run again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) subject: Subject,
    pub(crate) title: String,
    /// One for each source.
    pub(crate) parts: Vec<Part>,
}

/// The results of a figure from one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) source: Source,
    /// Remarks for the reader.
    pub(crate) notes: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) tables: Vec<Table>,
    pub(crate) claims: Vec<Claim>,
    /// Runs that failed, and why.
    pub(crate) failures: Vec<String>,
}

/// Numbers that are not plotted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// The title of each column, with its unit.
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// One plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// A line of a plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) system: System,
    pub(crate) source: Source,
    pub(crate) points: Vec<(f64, f64)>,
}

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum System {
    /// What the paper compares with: no switch on.
    Baseline,
    /// Some of the switches on.
    Stage,
    /// All of them.
    Spindle,
    /// The machine alone.
    Machine,
}

/// Where figures are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// Virtual time, constants, the real engine.
    Simulated,
    /// This machine.
    Real,
}

/// A statement of the paper, and our result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Claim {
    /// Where the paper makes it.
    pub(crate) section: &'static str,
    pub(crate) text: &'static str,
    pub(crate) paper: &'static str,
    pub(crate) ours: String,
    pub(crate) verdict: Verdict,
    /// The reason if it does not hold: written after full runs, see the page.
    pub(crate) why: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The number is near the paper's: within a fifth, unless stated otherwise.
    Holds,
    /// The trend agrees with the paper's, the number does not.
    Shape,
    /// Neither agrees.
    Differs,
    /// This report has no runs for it.
    NotRun,
}

impl Source {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

impl Figure {
    /// How many claims of a source have this verdict.
    pub(crate) fn count(&self, source: Source, verdict: Verdict) -> usize {
        let parts = self.parts.iter().filter(|part| part.source == source);
        let claims = parts.flat_map(|part| &part.claims);
        claims.filter(|claim| claim.verdict == verdict).count()
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().flat_map(|part| &part.failures)
    }
}

impl Verdict {
    pub(crate) const ALL: [Self; 4] = [Self::Holds, Self::Shape, Self::Differs, Self::NotRun];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Shape => "shape holds",
            Self::Differs => "differs",
            Self::NotRun => "not run",
        }
    }
}

/// The machine on which real processes ran, and its other load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Processors, their model, the kernel.
    pub(crate) description: String,
    pub(crate) cores: usize,
    /// Number of rounds of each run.
    pub(crate) rounds: usize,
    /// Load average over 1, 5 and 15 minutes, before the first run and after the last.
    pub(crate) load_average: [String; 2],
    /// Share of all processors that other processes used, over all runs.
    pub(crate) foreign: Option<Spread>,
    /// Rows of tables that were kept, in all rounds, and the number of them that were kept although
    /// the machine's speed changed around them.
    pub(crate) rows: [usize; 2],
    /// The share of their rate that counting threads, one per processor, keep beside a thread that
    /// sleeps for 100 µs at a time.
    pub(crate) kept_beside_a_sleeper: Option<Spread>,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The command that made it.
    pub(crate) command: String,
    pub(crate) quick: bool,
    /// The machine, if real processes ran.
    pub(crate) machine: Option<Machine>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) figures: Vec<Figure>,
}
