//! The runs of a figure: panels, tables, and the paper's statements on them.

use super::outcome::Rounds;
use super::run::Run;
use crate::plan::{Found, PanelPlan};
use crate::report::{Claim, Subject};

/// The real part of a figure, still to be run.
pub(crate) struct Plan {
    pub(crate) subject: Subject,
    /// Remarks, such as what cannot be compared here.
    pub(super) notes: Vec<&'static str>,
    pub(super) panels: Vec<PanelPlan<Run>>,
    pub(super) tables: Vec<TablePlan>,
    pub(super) claims: fn(&Found<Rounds>) -> Vec<Claim>,
}

/// A table that is still to be run: each row is a run, and is compared with the first row. In the
/// results it follows the panels, and each row is a line with a run at 0.
pub(super) struct TablePlan {
    pub(super) title: &'static str,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<(String, Run)>,
    /// The cells of a row after its name.
    pub(super) cells: fn(&Rounds) -> Vec<String>,
    /// Whether a row is run again if the rate of the first row changed around it. False for tables
    /// whose rows take seconds, or are not compared closely.
    pub(super) repeats: bool,
}

impl Plan {
    pub(super) fn new(subject: Subject) -> Self {
        Self {
            subject,
            notes: Vec::new(),
            panels: Vec::new(),
            tables: Vec::new(),
            claims: |_| Vec::new(),
        }
    }

    /// Messages of a sender in each run of panels, and of tables.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> [Vec<u32>; 2] {
        [
            self.of_panels().map(|asked| asked.run.messages).collect(),
            self.of_tables().map(|asked| asked.run.messages).collect(),
        ]
    }

    /// All its runs.
    pub(super) fn asked(&self) -> impl Iterator<Item = Asked<'_>> {
        self.of_panels().chain(self.of_tables())
    }

    pub(super) fn of_panels(&self) -> impl Iterator<Item = Asked<'_>> {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        lines.flat_map(|line| line.runs.iter().map(|(_, run)| Asked::alone(run)))
    }

    fn of_tables(&self) -> impl Iterator<Item = Asked<'_>> {
        self.tables.iter().flat_map(TablePlan::asked)
    }
}

impl TablePlan {
    /// The run of each row.
    pub(super) fn asked(&self) -> impl Iterator<Item = Asked<'_>> {
        let first = self.rows.first().map(|(_, run)| run);
        self.rows.iter().map(move |(_, run)| Asked { run, first })
    }
}

/// A run, and, if it is a row, the first row of its table, with which it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked<'p> {
    pub(super) run: &'p Run,
    pub(super) first: Option<&'p Run>,
}

impl<'p> Asked<'p> {
    /// A run that is not a row.
    pub(super) fn alone(run: &'p Run) -> Self {
        Self { run, first: None }
    }
}
