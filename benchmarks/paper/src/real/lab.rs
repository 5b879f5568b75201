//! Runs the plans of the figures: each run once per round, the runs of a figure in turns, so that
//! other load affects all of them. Each row of a table is run between two runs of the first row,
//! with which it is compared, and is run again if the speed of the machine changed between them.
//! Keeps a line of JSON for each run.

use std::io;
use std::ops::Range;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use super::outcome::{Outcome, Rounds};
use super::plan::{Asked, Plan, TablePlan};
use super::run::Run;
use crate::plan::{Found, Line, PanelPlan};
use crate::report::{Machine, Panel, Part, Series, Source, Subject, System, Table};
use crate::toll;
use spindle_dds_tools::harness::cache_line::are_alike;
use spindle_dds_tools::harness::load;
use spindle_dds_tools::harness::progress;
use spindle_dds_tools::harness::spread::Spread;

const MESSAGE_COLUMNS: usize = 24;
/// The delay of the paper's delayed senders.
const DELAY: Duration = Duration::from_micros(100);

/// A line of the raw numbers.
#[derive(Debug, Serialize)]
struct RunLine<'a> {
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

/// A run, and its results so far.
struct Known {
    run: Run,
    /// See [`Asked`].
    first: Option<Run>,
    rounds: Vec<Outcome>,
    failure: Option<String>,
}

impl Known {
    fn is(&self, asked: Asked<'_>) -> bool {
        self.run == *asked.run && self.first.as_ref() == asked.first
    }
}

/// The rows of a table, as indices of the known runs.
struct Rows {
    first: usize,
    /// Whether outcomes of the first row are kept: no earlier table has the same first row.
    keeps_first: bool,
    others: Range<usize>,
    /// How many repeats are left for all rows.
    repeats: usize,
}

pub(crate) struct Lab {
    rounds: usize,
    known: Vec<Known>,
    load_before: String,
    /// See [`Machine::rows`].
    rows: [usize; 2],
    pub(crate) lines: Vec<String>,
    progress: ProgressBar,
}

impl Lab {
    /// A lab for these figures.
    pub(crate) fn new(plans: &[Plan], rounds: usize) -> Self {
        let mut different: Vec<Asked<'_>> = Vec::new();
        for asked in plans.iter().flat_map(Plan::asked) {
            if !different.contains(&asked) {
                different.push(asked);
            }
        }
        let progress = progress::bar((different.len() * rounds) as u64, MESSAGE_COLUMNS);
        progress.enable_steady_tick(Duration::from_millis(200));
        Self {
            rounds,
            known: Vec::new(),
            load_before: load::average(),
            rows: [0, 0],
            lines: Vec::new(),
            progress,
        }
    }

    pub(crate) fn part(&mut self, plan: &Plan) -> Result<Part, serde_json::Error> {
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

    /// Runs all rounds of the runs that no other figure has had. A run that fails is not repeated.
    fn run_all(&mut self, plan: &Plan) {
        let points = self.begin(plan.of_panels());
        let mut tables: Vec<Rows> = Vec::new();
        for table in &plan.tables {
            tables.extend(self.rows(table));
        }
        for _ in 0..self.rounds {
            for point in points.clone() {
                if let Some(outcome) = self.one(point, Run::once) {
                    self.keep(point, outcome);
                }
                self.progress.inc(1);
            }
            for rows in &mut tables {
                self.round_of(rows, Run::once);
            }
        }
    }

    fn rows(&mut self, table: &TablePlan) -> Option<Rows> {
        let mut asked = table.asked();
        let first = asked.next()?;
        let begun = self.begin([first]);
        let others = self.begin(asked);
        Some(Rows {
            keeps_first: !begun.is_empty(),
            first: self.known.iter().position(|known| known.is(first))?,
            repeats: match table.repeats {
                true => REPEATS * others.len() * self.rounds,
                false => 0,
            },
            others,
        })
    }

    /// Adds the runs that are not known yet. Returns their indices.
    fn begin<'p>(&mut self, all: impl IntoIterator<Item = Asked<'p>>) -> Range<usize> {
        let begin = self.known.len();
        for asked in all {
            if self.of(asked).is_none() {
                self.known.push(Known {
                    run: asked.run.clone(),
                    first: asked.first.cloned(),
                    rounds: Vec::new(),
                    failure: None,
                });
            }
        }
        begin..self.known.len()
    }

    /// A round of a table: runs each row between two runs of the first row.
    fn round_of(&mut self, rows: &mut Rows, once: impl Fn(&Run) -> Result<Outcome, String>) {
        let Some(mut before) = self.one(rows.first, &once) else {
            return;
        };
        if rows.keeps_first {
            self.keep(rows.first, before.clone());
        }
        for row in rows.others.clone() {
            while let Some(outcome) = self.one(row, &once) {
                let Some(after) = self.one(rows.first, &once) else {
                    return;
                };
                let is_steady = is_steady([&before, &outcome, &after]);
                let first_row = Some((before.rate(), after.rate()));
                before = after;
                if is_steady || rows.repeats == 0 {
                    self.rows[0] += 1;
                    self.rows[1] += usize::from(!is_steady);
                    self.keep(
                        row,
                        Outcome {
                            first_row,
                            ..outcome
                        },
                    );
                    break;
                }
                rows.repeats -= 1;
            }
            self.progress.inc(1);
        }
        self.progress.inc(1);
    }

    /// Runs it once. `None` if it fails, or has failed before.
    fn one(
        &mut self,
        at: usize,
        once: impl Fn(&Run) -> Result<Outcome, String>,
    ) -> Option<Outcome> {
        let known = &mut self.known[at];
        if known.failure.is_some() {
            return None;
        }
        let outcome = once(&known.run);
        outcome
            .map_err(|failure| known.failure = Some(failure))
            .ok()
    }

    fn keep(&mut self, at: usize, outcome: Outcome) {
        self.known[at].rounds.push(outcome);
    }

    fn of(&self, asked: Asked<'_>) -> Option<&Known> {
        self.known.iter().find(|known| known.is(asked))
    }

    /// Its rounds; `None` if one of them has failed.
    fn rounds(&self, asked: Asked<'_>) -> Option<Rounds> {
        let known = self.of(asked).filter(|known| known.failure.is_none())?;
        Rounds::of(&known.rounds)
    }

    fn failures(&self, plan: &Plan) -> Vec<String> {
        let mut told = Vec::new();
        for known in plan.asked().filter_map(|asked| self.of(asked)) {
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
            let Some(rounds) = self.rounds(Asked::alone(run)) else {
                continue;
            };
            self.lines.push(serde_json::to_string(&RunLine {
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
        let mut rows = Vec::new();
        for ((name, run), asked) in table.rows.iter().zip(table.asked()) {
            let mut row = vec![name.clone()];
            match self.rounds(asked) {
                Some(rounds) => {
                    self.lines.push(serde_json::to_string(&RunLine {
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
                    row.extend((table.cells)(&rounds));
                    found.add(plan.panels.len() + at, name, vec![(0.0, rounds)]);
                }
                None => row.push("failed".to_owned()),
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

    /// Ends the runs, and describes the machine.
    pub(crate) fn finish(&self) -> io::Result<Machine> {
        self.progress.finish_and_clear();
        let outcomes = self.known.iter().flat_map(|known| &known.rounds);
        Ok(Machine {
            description: load::machine(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            rounds: self.rounds,
            load_average: [self.load_before.clone(), load::average()],
            rows: self.rows,
            foreign: Spread::of(outcomes.map(|outcome| outcome.foreign).collect()),
            kept_beside_a_sleeper: toll::kept_beside_a_sleeper(DELAY)?,
        })
    }
}

/// Whether the machine's speed did not change between a row and the runs of the first row before
/// and after it, as far as these show.
fn is_steady([before, row, after]: [&Outcome; 3]) -> bool {
    let lines = [before, row, after].into_iter();
    let (slow, fast) = (
        before.rate().min(after.rate()),
        before.rate().max(after.rate()),
    );
    fast <= slow * ALIKE && are_alike(lines.filter_map(|outcome| outcome.line_ns))
}

/// Mean number of repeats of a row in each round.
const REPEATS: usize = 4;

/// The largest ratio of the rates of the first row before and after another row.
const ALIKE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::systems::Stage;

    fn plan(members: &[usize]) -> TablePlan {
        let run = |members: &usize| Run::new(*members, Stage::Bounded, 1);
        let rows = members.iter().map(|it| (String::new(), run(it)));
        TablePlan {
            title: "",
            head: Vec::new(),
            rows: rows.collect(),
            cells: |_| Vec::new(),
            repeats: true,
        }
    }

    /// A table with two rows, of which the second may be repeated once.
    fn table() -> (Lab, Rows) {
        let mut lab = Lab::new(&[], 1);
        let rows = lab.rows(&plan(&[2, 3])).expect("a first row");
        assert_eq!(rows.repeats, REPEATS);
        (lab, Rows { repeats: 1, ..rows })
    }

    fn outcome(messages_per_s: f64, line_ns: f64) -> Outcome {
        Outcome {
            messages_per_s,
            line_ns: Some((line_ns, line_ns)),
            ..Outcome::test()
        }
    }

    #[test]
    fn a_row_is_run_again_where_the_first_changes_around_it() {
        let (mut lab, mut rows) = table();
        let rates = [100.0, 90.0, 50.0, 45.0, 50.0, 50.0, 40.0, 100.0];
        let asked = Cell::new(0);
        let once = |_: &Run| Ok(outcome(rates[asked.replace(asked.get() + 1)], 31.0));
        lab.round_of(&mut rows, once);
        assert_eq!((asked.get(), lab.rows), (5, [1, 0]));
        // No repeat is left.
        lab.round_of(&mut rows, once);
        assert_eq!((asked.get(), lab.rows), (8, [2, 1]));
        let kept = lab.known.iter().map(|known| {
            let rates = known.rounds.iter().map(Outcome::rate);
            rates.collect::<Vec<_>>()
        });
        let kept: Vec<_> = kept.collect();
        assert_eq!(kept, [[100.0, 50.0], [45.0, 40.0]]);
        let first_rows = lab.known[1].rounds.iter().map(|it| it.first_row);
        let first_rows: Vec<_> = first_rows.collect();
        assert_eq!(first_rows, [Some((50.0, 50.0)), Some((50.0, 100.0))]);
    }

    #[test]
    fn a_row_is_run_for_each_first_row_that_it_is_compared_with() {
        let mut lab = Lab::new(&[], 1);
        let rows = |lab: &mut Lab, members: &[usize]| {
            let rows = lab.rows(&plan(members)).expect("a first row");
            (rows.first, rows.others)
        };
        assert_eq!(rows(&mut lab, &[2, 3, 4]), (0, 1..3));
        assert_eq!(rows(&mut lab, &[3, 4]), (3, 4..5));
        // The same table again, for another figure.
        assert_eq!(rows(&mut lab, &[2, 3, 4]), (0, 5..5));
        // A point of a curve is not a row.
        let point = Run::new(3, Stage::Bounded, 1);
        assert_eq!(lab.begin([Asked::alone(&point)]), 5..6);
    }

    #[test]
    fn a_row_is_steady_if_the_first_row_and_cache_lines_are_alike() {
        let check = |rates: [f64; 3], lines: [f64; 3], steady| {
            let runs = [0, 1, 2].map(|at| outcome(rates[at], lines[at]));
            assert_eq!(is_steady(runs.each_ref()), steady, "{rates:?} {lines:?}");
        };
        check([100.0, 1.0, 109.0], [31.0, 32.0, 31.0], true);
        check([109.0, 1.0, 100.0], [31.0, 32.0, 31.0], true);
        check([100.0, 100.0, 111.0], [31.0, 32.0, 31.0], false);
        check([111.0, 100.0, 100.0], [31.0, 32.0, 31.0], false);
        check([100.0, 50.0, 100.0], [31.0, 165.0, 31.0], false);
    }

    #[test]
    fn a_failed_system_is_not_run_again() {
        let check = |fails_at: usize, asked_in_all, rounds: [usize; 2]| {
            let (mut lab, mut rows) = table();
            let fails = lab.known[fails_at].run.clone();
            let asked = Cell::new(0);
            let once = |run: &Run| {
                asked.set(asked.get() + 1);
                match *run == fails {
                    true => Err("hangs".to_owned()),
                    false => Ok(outcome(1.0, 31.0)),
                }
            };
            lab.round_of(&mut rows, once);
            lab.round_of(&mut rows, once);
            assert_eq!(asked.get(), asked_in_all);
            let failed = &lab.known[fails_at];
            let failed = Asked {
                run: &failed.run,
                first: failed.first.as_ref(),
            };
            assert!(lab.rounds(failed).is_none());
            assert_eq!([0, 1].map(|at| lab.known[at].rounds.len()), rounds);
        };
        check(1, 3, [2, 0]);
        // Without the first row, the table has nothing to compare with.
        check(0, 1, [0, 0]);
    }
}
