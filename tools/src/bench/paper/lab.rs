//! Runs what figures need, each run once; keeps a line of JSON for each.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use spindle_dds_sim::paper::{Experiment, Measured};

use super::Failure;
use super::plan::{Found, PanelPlan, Plan, Work};
use super::report::{Figure, Panel, Series, Source, System};

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

pub(super) struct Lab {
    known: BTreeMap<String, Measured>,
    pub(super) lines: Vec<String>,
    progress: ProgressBar,
}

impl Lab {
    /// For all these figures.
    pub(super) fn new(plans: &[Plan]) -> Self {
        let lines = plans.iter().flat_map(|plan| &plan.panels);
        let runs = lines
            .flat_map(|panel| &panel.lines)
            .map(|line| line.runs.len());
        let progress = ProgressBar::new(runs.sum::<usize>() as u64);
        let style = ProgressStyle::with_template("{elapsed:>4} {wide_bar} {pos}/{len} {msg:<24}");
        if let Ok(style) = style {
            progress.set_style(style);
        }
        progress.enable_steady_tick(Duration::from_millis(200));
        Self {
            known: BTreeMap::new(),
            lines: Vec::new(),
            progress,
        }
    }

    pub(super) fn figure(&mut self, plan: &Plan) -> Result<Figure, Failure> {
        self.progress.set_message(format!("figure {}", plan.number));
        let mut found = Found::default();
        let mut panels = Vec::new();
        for (at, panel) in plan.panels.iter().enumerate() {
            panels.push(self.panel(plan.number, at, panel, &mut found)?);
        }
        let claims = (plan.claims)(&found);
        for claim in &claims {
            let line = serde_json::json!({"kind": "claim", "figure": plan.number, "claim": claim});
            self.lines.push(line.to_string());
        }
        Ok(Figure {
            number: plan.number,
            title: plan.title.to_owned(),
            notes: plan.notes.iter().map(|note| (*note).to_owned()).collect(),
            panels,
            claims,
        })
    }

    fn panel(
        &mut self,
        figure: u32,
        at: usize,
        plan: &PanelPlan,
        found: &mut Found,
    ) -> Result<Panel, Failure> {
        let mut series = Vec::new();
        for line in &plan.lines {
            let mut runs = Vec::new();
            for (x, work) in &line.runs {
                let Work::Simulated(experiment) = work;
                let measured = self.run(experiment)?;
                self.lines.push(serde_json::to_string(&Run {
                    kind: "run",
                    figure,
                    panel: &plan.title,
                    series: &line.name,
                    system: line.system,
                    source: work.source(),
                    x: *x,
                    experiment,
                    measured: &measured,
                })?);
                runs.push((*x, measured));
                self.progress.inc(1);
            }
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

    fn run(&mut self, experiment: &Experiment) -> Result<Measured, Failure> {
        let key = serde_json::to_string(experiment)?;
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let measured = spindle_dds_sim::paper::run(experiment)?;
        self.known.insert(key, measured.clone());
        Ok(measured)
    }

    pub(super) fn finish(&self) {
        self.progress.finish_and_clear();
    }
}
