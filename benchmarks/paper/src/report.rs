//! What a report holds: figures, what the paper says of each, and what we have. Runs in
//! virtual time and runs of real processes stand side by side in it.

use std::fmt;

use crate::model::constants::Constant;
use serde::{Serialize, Serializer};

use spindle_dds_tools::harness::spread::Spread;

/// What is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A figure, by its number in the paper.
    Figure(u32),
    /// What the paper's section III-D says of upcalls that take their time.
    Upcalls,
}

impl Subject {
    /// As on the command line.
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

/// What is known of it from one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Part {
    pub(crate) source: Source,
    /// What is to be known to read it.
    pub(crate) notes: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) tables: Vec<Table>,
    pub(crate) claims: Vec<Claim>,
    /// Runs that failed, and why.
    pub(crate) failures: Vec<String>,
}

/// Numbers that are no plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What stands above each column, with its unit.
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

/// An axis: what, and in which unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) log: bool,
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

/// A statement of the paper, and what we have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Claim {
    /// Where it stands.
    pub(crate) section: &'static str,
    pub(crate) text: &'static str,
    pub(crate) paper: &'static str,
    pub(crate) ours: String,
    pub(crate) verdict: Verdict,
    /// Why it does not hold, where it does not: written after full runs, see the page.
    pub(crate) why: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The number is near the paper's: within a fifth, if nothing else is said.
    Holds,
    /// The trend is the paper's, the number is not.
    Shape,
    /// Neither.
    Differs,
    /// The runs of this report do not tell.
    Untold,
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
    pub(crate) const ALL: [Self; 4] = [Self::Holds, Self::Shape, Self::Differs, Self::Untold];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Shape => "shape holds",
            Self::Differs => "differs",
            Self::Untold => "not run",
        }
    }
}

/// Where real processes ran, and what else it did meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Machine {
    /// Processors, their model, the kernel.
    pub(crate) description: String,
    pub(crate) cores: usize,
    /// How often each run was done.
    pub(crate) rounds: usize,
    /// Processes that ran or wanted to, on average over 1, 5 and 15 minutes, before the first
    /// run and after the last.
    pub(crate) load_average: [String; 2],
    /// Share of all processors that others used, over all runs.
    pub(crate) foreign: Option<Spread>,
    /// Rows of tables that were kept, in all rounds, and how many of them though the machine was
    /// another one before them than after.
    pub(crate) rows: [usize; 2],
    /// The part of their rate that threads keep which only count, one for each processor,
    /// beside one that sleeps for 100 µs at a time.
    pub(crate) kept_beside_a_sleeper: Option<Spread>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// How it was made.
    pub(crate) command: String,
    pub(crate) quick: bool,
    /// Of the runs of real processes, if there were any.
    pub(crate) machine: Option<Machine>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) figures: Vec<Figure>,
}
