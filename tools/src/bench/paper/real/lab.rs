//! Runs what figures need, each run once a round, those of a figure in turns: what else the
//! machine does hits all of them. The rows of a table, which are compared with its first, are run
//! again where processors came closer or moved apart between them. Keeps a line of JSON for each.

use std::io;
use std::ops::Range;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::outcome::{Outcome, Rounds};
use super::plan::{Plan, TablePlan};
use super::run::Run;
use crate::bench::distance::are_alike;
use crate::bench::paper::plan::{Found, Line, PanelPlan};
use crate::bench::paper::report::{Machine, Panel, Part, Series, Source, Subject, System, Table};
use crate::bench::spread::Spread;
use crate::bench::{load, toll};

/// Of the senders that the paper delays.
const DELAY: Duration = Duration::from_micros(100);

/// A line of the raw numbers.
#[derive(Debug, Serialize)]
struct Told<'a> {
    kind: &'static str,
    figure: Subject,
    panel: &'a str,
    series: &'a str,
    system: System,
    source: Source,
    x: f64,
    command: String,
    rounds: &'a Rounds,
}

/// A run, and what has come of it so far.
struct Known {
    run: Run,
    rounds: Vec<Outcome>,
    failure: Option<String>,
}

/// Runs that are made one after the other in each round.
struct Turn {
    /// Of those that are known.
    runs: Range<usize>,
    /// How often a round of them may still be run again.
    repeats: usize,
}

pub(in crate::bench::paper) struct Lab {
    rounds: usize,
    known: Vec<Known>,
    load_before: String,
    pub(in crate::bench::paper) lines: Vec<String>,
    progress: ProgressBar,
}

impl Lab {
    /// For all these figures.
    pub(in crate::bench::paper) fn new(plans: &[Plan], rounds: usize) -> Self {
        let mut different: Vec<&Run> = Vec::new();
        for run in plans.iter().flat_map(Plan::runs) {
            if !different.contains(&run) {
                different.push(run);
            }
        }
        let progress = ProgressBar::new((different.len() * rounds) as u64);
        let style = "{elapsed:>4} {wide_bar} {pos}/{len} {eta:>4} {msg:<24}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            progress.set_style(style);
        }
        progress.enable_steady_tick(Duration::from_millis(200));
        Self {
            rounds,
            known: Vec::new(),
            load_before: load::average(),
            lines: Vec::new(),
            progress,
        }
    }

    pub(in crate::bench::paper) fn part(&mut self, plan: &Plan) -> Result<Part, serde_json::Error> {
        let message = format!("{}, real", plan.subject);
        self.progress.set_message(message);
        self.run_all(plan);
        let mut found = Found::default();
        let mut panels = Vec::new();
        for (at, panel) in plan.panels.iter().enumerate() {
            panels.push(self.panel(plan.subject, at, panel, &mut found)?);
        }
        let mut tables = Vec::new();
        for (at, table) in plan.tables.iter().enumerate() {
            tables.push(self.table(plan, at, table, &mut found)?);
        }
        let claims = (plan.claims)(&found);
        for claim in &claims {
            let line = serde_json::json!({
                "kind": "claim", "figure": plan.subject, "source": Source::Real, "claim": claim,
            });
            self.lines.push(line.to_string());
        }
        let failures = self.failures(plan);
        for failure in &failures {
            let line = serde_json::json!({
                "kind": "failure", "figure": plan.subject, "failure": failure,
            });
            self.lines.push(line.to_string());
        }
        Ok(Part {
            source: Source::Real,
            notes: plan.notes.iter().map(|note| (*note).to_owned()).collect(),
            panels,
            tables,
            claims,
            failures,
        })
    }

    /// Round by round, what has not been run for another figure. Who fails is not run again.
    fn run_all(&mut self, plan: &Plan) {
        let mut turns: Vec<Turn> = Vec::new();
        for run in plan.of_panels() {
            turns.push(Turn {
                runs: self.begin([run]),
                repeats: 0,
            });
        }
        for table in &plan.tables {
            turns.push(Turn {
                runs: self.begin(table.rows.iter().map(|(_, run)| run)),
                repeats: self.rounds,
            });
        }
        for _ in 0..self.rounds {
            for turn in &mut turns {
                self.take(turn, Run::once);
            }
        }
    }

    /// Those of these runs that have not been run for another figure, or line, or row.
    fn begin<'r>(&mut self, runs: impl IntoIterator<Item = &'r Run>) -> Range<usize> {
        let begin = self.known.len();
        for run in runs {
            if self.of(run).is_none() {
                self.known.push(Known {
                    run: run.clone(),
                    rounds: Vec::new(),
                    failure: None,
                });
            }
        }
        begin..self.known.len()
    }

    /// A round of what may be compared with each other, as often as it takes.
    fn take(&mut self, turn: &mut Turn, once: impl Fn(&Run) -> Result<Outcome, String>) {
        loop {
            let mut outcomes = Vec::new();
            for known in &mut self.known[turn.runs.clone()] {
                self.progress.inc(1);
                if known.failure.is_some() {
                    continue;
                }
                match once(&known.run) {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(failure) => known.failure = Some(failure),
                }
            }
            let lines = outcomes.iter().filter_map(|outcome| outcome.line_ns);
            if turn.repeats == 0 || are_alike(lines) {
                let known = self.known[turn.runs.clone()].iter_mut();
                let sound = known.filter(|known| known.failure.is_none());
                sound
                    .zip(outcomes)
                    .for_each(|(known, outcome)| known.rounds.push(outcome));
                return;
            }
            turn.repeats -= 1;
            self.progress.inc_length(turn.runs.len() as u64);
        }
    }

    fn of(&self, run: &Run) -> Option<&Known> {
        self.known.iter().find(|known| known.run == *run)
    }

    /// Nothing, if one of its rounds has failed.
    fn rounds(&self, run: &Run) -> Option<Rounds> {
        let known = self.of(run).filter(|known| known.failure.is_none())?;
        Rounds::of(&known.rounds)
    }

    fn failures(&self, plan: &Plan) -> Vec<String> {
        let mut told = Vec::new();
        for known in plan.runs().filter_map(|run| self.of(run)) {
            let Some(failure) = &known.failure else {
                continue;
            };
            let failure = format!("{}: {failure}", known.run.command());
            if !told.contains(&failure) {
                told.push(failure);
            }
        }
        told
    }

    fn panel(
        &mut self,
        subject: Subject,
        at: usize,
        plan: &PanelPlan<Run>,
        found: &mut Found<Rounds>,
    ) -> Result<Panel, serde_json::Error> {
        let mut series = Vec::new();
        for line in &plan.lines {
            let runs = self.line(subject, &plan.title, line)?;
            series.push(Series {
                name: line.name.clone(),
                system: line.system,
                source: Source::Real,
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
        subject: Subject,
        panel: &str,
        line: &Line<Run>,
    ) -> Result<Vec<(f64, Rounds)>, serde_json::Error> {
        let mut runs = Vec::new();
        for (x, run) in &line.runs {
            let Some(rounds) = self.rounds(run) else {
                continue;
            };
            self.lines.push(serde_json::to_string(&Told {
                kind: "run",
                figure: subject,
                panel,
                series: &line.name,
                system: line.system,
                source: Source::Real,
                x: *x,
                command: run.command(),
                rounds: &rounds,
            })?);
            runs.push((*x, rounds));
        }
        Ok(runs)
    }

    fn table(
        &mut self,
        plan: &Plan,
        at: usize,
        table: &TablePlan,
        found: &mut Found<Rounds>,
    ) -> Result<Table, serde_json::Error> {
        let first = table.rows.first().and_then(|(_, run)| self.rounds(run));
        let mut rows = Vec::new();
        for (name, run) in &table.rows {
            let mut row = vec![name.clone()];
            match (self.rounds(run), &first) {
                (Some(rounds), Some(first)) => {
                    self.lines.push(serde_json::to_string(&Told {
                        kind: "run",
                        figure: plan.subject,
                        panel: table.title,
                        series: name,
                        system: System::Stage,
                        source: Source::Real,
                        x: 0.0,
                        command: run.command(),
                        rounds: &rounds,
                    })?);
                    row.extend((table.cells)(&rounds, first));
                    found.add(plan.panels.len() + at, name, vec![(0.0, rounds)]);
                }
                _ => row.push("failed".to_owned()),
            }
            row.resize(table.head.len(), String::new());
            rows.push(row);
        }
        Ok(Table {
            title: table.title.to_owned(),
            head: table.head.iter().map(|word| (*word).to_owned()).collect(),
            rows,
        })
    }

    /// Where it ran; the last that is asked.
    pub(in crate::bench::paper) fn finish(&self) -> io::Result<Machine> {
        self.progress.finish_and_clear();
        let outcomes = self.known.iter().flat_map(|known| &known.rounds);
        Ok(Machine {
            description: load::machine(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            rounds: self.rounds,
            load_average: [self.load_before.clone(), load::average()],
            foreign: Spread::of(outcomes.map(|outcome| outcome.foreign).collect()),
            kept_beside_a_sleeper: toll::kept_beside_a_sleeper(DELAY)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::bench::paper::systems::Stage;

    /// Two runs that take turns; a round of them may be run again once.
    fn turn() -> (Lab, Turn) {
        let mut lab = Lab::new(&[], 1);
        let runs = [2, 3].map(|members| Run::new(members, Stage::Bounded, 1));
        let turn = Turn {
            runs: lab.begin(&runs),
            repeats: 1,
        };
        (lab, turn)
    }

    #[test]
    fn rows_are_run_again_where_processors_moved_between_them() {
        let (mut lab, mut turn) = turn();
        // By how often it has been asked: near, far; near, near; near, far.
        let lines = [31.0, 165.0, 31.0, 32.0, 33.0, 165.0];
        let asked = Cell::new(0);
        let once = |_: &Run| {
            let line = lines[asked.replace(asked.get() + 1)];
            Ok(Outcome {
                line_ns: Some((line, line)),
                ..Outcome::test()
            })
        };
        lab.take(&mut turn, once);
        // None are left.
        lab.take(&mut turn, once);
        let kept = lab.known.iter().map(|known| {
            let rounds = known.rounds.iter().map(|it| it.line_ns);
            rounds
                .map(|around| around.map(|(before, _)| before))
                .collect()
        });
        let kept: Vec<Vec<_>> = kept.collect();
        assert_eq!(kept, [[Some(31.0), Some(33.0)], [Some(32.0), Some(165.0)]]);
        assert_eq!(asked.get(), lines.len());
    }

    #[test]
    fn who_fails_is_not_run_again() {
        let (mut lab, mut turn) = turn();
        let fails = lab.known[0].run.clone();
        let asked = Cell::new(0);
        let once = |run: &Run| {
            asked.set(asked.get() + 1);
            match *run == fails {
                true => Err("hangs".to_owned()),
                false => Ok(Outcome::test()),
            }
        };
        lab.take(&mut turn, once);
        lab.take(&mut turn, once);
        assert_eq!(asked.get(), 3);
        assert!(lab.rounds(&fails).is_none());
        assert_eq!(lab.known[1].rounds.len(), 2);
    }
}
