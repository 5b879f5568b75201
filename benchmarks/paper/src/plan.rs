//! The parts of a figure, before and after its runs.

use std::collections::BTreeMap;

use crate::model::{Batches, Experiment, Measured};

use super::report::{Axis, Claim, Series, System, Verdict};

/// The simulated part of a figure, still to be run.
pub(super) struct Plan {
    pub(super) number: u32,
    pub(super) title: &'static str,
    pub(super) notes: Vec<&'static str>,
    pub(super) panels: Vec<PanelPlan>,
    /// Compares the paper's statements with the results.
    pub(super) claims: fn(&Found) -> Vec<Claim>,
}

/// A plot that is still to be run.
pub(super) struct PanelPlan<W: Work = Experiment> {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line<W>>,
    /// Series that need no run.
    pub(super) given: fn() -> Vec<Series>,
}

/// A line of a plot: a run at each x.
pub(super) struct Line<W: Work = Experiment> {
    pub(super) name: String,
    pub(super) system: System,
    pub(super) reading: Reading<W::Outcome>,
    pub(super) runs: Vec<(f64, W)>,
}

/// A run.
pub(super) trait Work {
    /// The result of the run.
    type Outcome;
}

impl Work for Experiment {
    type Outcome = Measured;
}

/// The value of a run that is plotted.
pub(super) enum Reading<M> {
    /// One value.
    Value(fn(&M) -> f64),
    /// A histogram: shares of all batches, by size. The line has one run.
    Batches(fn(&M) -> &Batches),
}

impl<W: Work> Line<W> {
    pub(super) fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// The points of its runs.
    pub(super) fn points(&self, runs: &[(f64, W::Outcome)]) -> Vec<(f64, f64)> {
        match self.reading {
            Reading::Value(read) => runs.iter().map(|(x, found)| (*x, read(found))).collect(),
            Reading::Batches(read) => runs
                .iter()
                .flat_map(|(_, found)| parts(read(found)))
                .collect(),
        }
    }
}

fn parts(batches: &Batches) -> Vec<(f64, f64)> {
    let all: u64 = batches.buckets.iter().map(|(_, count)| count).sum();
    let part = |(size, count): &(u64, u64)| (*size as f64, *count as f64 / all as f64);
    let buckets = batches.buckets.iter().filter(|(size, _)| *size > 0);
    buckets.map(part).collect()
}

/// The results, by panel, name of the line, and x.
#[derive(Debug)]
pub(super) struct Found<M = Measured>(BTreeMap<(usize, String), Vec<(f64, M)>>);

impl<M> Default for Found<M> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<M> Found<M> {
    pub(super) fn add(&mut self, panel: usize, line: &str, runs: Vec<(f64, M)>) {
        self.0.insert((panel, line.to_owned()), runs);
    }

    pub(super) fn line(&self, panel: usize, line: &str) -> &[(f64, M)] {
        self.0
            .get(&(panel, line.to_owned()))
            .map_or(&[], Vec::as_slice)
    }

    /// The run at `x`.
    pub(super) fn at(&self, panel: usize, line: &str, x: f64) -> Option<&M> {
        let runs = self.line(panel, line).iter();
        runs.clone()
            .find(|(at, _)| *at == x)
            .map(|(_, found)| found)
    }

    /// The ratio of the second line to the first, at each x that both have.
    pub(super) fn ratios(
        &self,
        (panel, line): (usize, &str),
        (other_panel, other): (usize, &str),
        of: fn(&M) -> f64,
    ) -> Vec<(f64, f64)> {
        let pairs = self.line(panel, line).iter();
        pairs
            .filter_map(|(x, found)| Some((*x, of(self.at(other_panel, other, *x)?) / of(found))))
            .collect()
    }
}

/// The mean of the y values.
pub(super) fn mean(points: &[(f64, f64)]) -> Option<f64> {
    let sum: f64 = points.iter().map(|(_, y)| y).sum();
    (!points.is_empty()).then(|| sum / points.len() as f64)
}

/// The point with the largest y.
pub(super) fn peak(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The point with the smallest y.
pub(super) fn trough(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Values of a line.
pub(super) fn values<M>(runs: &[(f64, M)], of: fn(&M) -> f64) -> Vec<(f64, f64)> {
    runs.iter().map(|(x, found)| (*x, of(found))).collect()
}

/// Within a fifth.
pub(super) fn near(ours: f64, papers: f64) -> bool {
    (ours / papers - 1.0).abs() <= 0.2
}

/// The verdict, from whether the number agrees and whether the trend does.
pub(super) fn verdict(number: bool, shape: bool) -> Verdict {
    match (number, shape) {
        (true, _) => Verdict::Holds,
        (false, true) => Verdict::Shape,
        (false, false) => Verdict::Differs,
    }
}

/// A statement of the paper, before it is compared.
#[derive(Clone, Copy)]
pub(super) struct Saying {
    pub(super) section: &'static str,
    pub(super) text: &'static str,
    pub(super) paper: &'static str,
    /// The reason to give where the number differs from the paper's.
    pub(super) why: &'static str,
}

impl Saying {
    /// The claim with our result; `None` where this report has no runs for it.
    pub(super) fn with(self, ours: Option<(String, Verdict)>) -> Claim {
        let (ours, verdict) = ours.unwrap_or_else(|| ("–".to_owned(), Verdict::NotRun));
        let explains = matches!(verdict, Verdict::Shape | Verdict::Differs) && !self.why.is_empty();
        Claim {
            section: self.section,
            text: self.text,
            paper: self.paper,
            ours,
            verdict,
            why: explains.then_some(self.why),
        }
    }
}

/// Axes that several figures share.
pub(super) const MEMBERS: Axis = Axis {
    label: "members",
    log: false,
};
pub(super) const THROUGHPUT: Axis = Axis {
    label: "throughput, GB/s delivered at a member",
    log: false,
};
pub(super) const LATENCY: Axis = Axis {
    label: "mean latency, µs",
    log: true,
};

pub(super) fn throughput(found: &Measured) -> f64 {
    found.gb_per_s
}

pub(super) fn latency(found: &Measured) -> f64 {
    found.latency_mean_us
}
