//! What a report holds: figures, what the paper says of each, and what we have. Runs in
//! virtual time and runs of real processes stand side by side in it.

use serde::Serialize;
use spindle_dds_sim::paper::constants::Constant;

/// A figure of the paper, run again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// Its number in the paper.
    pub(crate) number: u32,
    pub(crate) title: String,
    /// What is to be known to read it.
    pub(crate) notes: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) claims: Vec<Claim>,
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

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Shape => "shape holds",
            Self::Differs => "differs",
            Self::Untold => "not run",
        }
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// How it was made.
    pub(crate) command: String,
    pub(crate) quick: bool,
    pub(crate) constants: Vec<Constant>,
    pub(crate) figures: Vec<Figure>,
}
