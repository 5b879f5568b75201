//! Runs the experiments of the figures in virtual time, each once, and keeps a line of JSON for
//! each.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{Broken, Experiment, Measured};
use indicatif::ProgressBar;
use serde::Serialize;

use crate::plan::{Found, Line, PanelPlan, Plan};
use crate::report::{Panel, Part, Series, Source, System};
use spindle_dds_tools::harness::progress;

const MESSAGE_COLUMNS: usize = 24;

/// A line of the raw numbers.
#[derive(Debug, Serialize)]
struct Run<'a> {
    kind: &'static str,
    figure: u32,
    panel: &'a str,
    series: &'a str,
    system: System,
    source: Source,
    x: f64,
    experiment: &'a Experiment,
    measured: &'a Measured,
}

pub(crate) struct Lab {
    known: BTreeMap<String, Measured>,
    /// Failures of the current figure.
    failures: Vec<String>,
    pub(crate) lines: Vec<String>,
    progress: ProgressBar,
}

impl Lab {
    /// A lab for these figures.
    pub(crate) fn new(plans: &[Plan]) -> Self {
        let lines = plans.iter().flat_map(|plan| &plan.panels);
        let runs = lines
            .flat_map(|panel| &panel.lines)
            .map(|line| line.runs.len());
        let progress = progress::bar(runs.sum::<usize>() as u64, MESSAGE_COLUMNS);
        progress.enable_steady_tick(Duration::from_millis(200));
        Self {
            known: BTreeMap::new(),
            failures: Vec::new(),
            lines: Vec::new(),
            progress,
        }
    }

    pub(crate) fn part(&mut self, plan: &Plan) -> Result<Part, serde_json::Error> {
        let message = format!("figure {}, simulated", plan.number);
        self.progress.set_message(message);
        let mut found = Found::default();
        let mut panels = Vec::new();
        for (at, panel) in plan.panels.iter().enumerate() {
            panels.push(self.panel(plan.number, at, panel, &mut found)?);
        }
        let claims = (plan.claims)(&found);
        for claim in &claims {
            let line = serde_json::json!({
                "kind": "claim", "figure": plan.number, "source": Source::Simulated, "claim": claim,
            });
            self.lines.push(line.to_string());
        }
        let failures = std::mem::take(&mut self.failures);
        for failure in &failures {
            let line = serde_json::json!({
                "kind": "failure", "figure": plan.number, "failure": failure,
            });
            self.lines.push(line.to_string());
        }
        Ok(Part {
            source: Source::Simulated,
            notes: plan.notes.iter().map(|note| (*note).to_owned()).collect(),
            panels,
            tables: Vec::new(),
            claims,
            failures,
        })
    }

    fn panel(
        &mut self,
        figure: u32,
        at: usize,
        plan: &PanelPlan,
        found: &mut Found,
    ) -> Result<Panel, serde_json::Error> {
        let mut series = Vec::new();
        for line in &plan.lines {
            let runs = self.line(figure, &plan.title, line)?;
            series.push(Series {
                name: line.name.clone(),
                system: line.system,
                source: Source::Simulated,
                points: line.points(&runs),
            });
            found.add(at, &line.name, runs);
        }
        series.extend((plan.given)());
        Ok(Panel {
            title: plan.title.clone(),
            x: plan.x,
            y: plan.y,
            series,
        })
    }

    fn line(
        &mut self,
        figure: u32,
        panel: &str,
        line: &Line,
    ) -> Result<Vec<(f64, Measured)>, serde_json::Error> {
        let mut runs = Vec::new();
        for (x, experiment) in &line.runs {
            self.progress.inc(1);
            let measured = match self.run(experiment)? {
                Ok(measured) => measured,
                Err(broken) => {
                    let failure = format!("{panel}, {}, at {x}: {broken}", line.name);
                    self.failures.push(failure);
                    continue;
                }
            };
            self.lines.push(serde_json::to_string(&Run {
                kind: "run",
                figure,
                panel,
                series: &line.name,
                system: line.system,
                source: Source::Simulated,
                x: *x,
                experiment,
                measured: &measured,
            })?);
            runs.push((*x, measured));
        }
        Ok(runs)
    }

    fn run(
        &mut self,
        experiment: &Experiment,
    ) -> Result<Result<Measured, Broken>, serde_json::Error> {
        let key = serde_json::to_string(experiment)?;
        if let Some(known) = self.known.get(&key) {
            return Ok(Ok(known.clone()));
        }
        let measured = crate::model::run(experiment);
        if let Ok(measured) = &measured {
            self.known.insert(key, measured.clone());
        }
        Ok(measured)
    }

    pub(crate) fn finish(&self) {
        self.progress.finish_and_clear();
    }
}
