//! What the runs have shown.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::known::{self, Known};
use super::options::Options;
use super::plan::{Point, name_of};
use super::script::{Ended, Outcome};
use crate::Failure;

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    fabric: String,
    total: Row,
    calls: BTreeMap<&'static str, Row>,
    /// Those that are not known.
    new: Vec<Failed>,
    /// Those that are.
    known: Vec<Failed>,
    /// Those that were none when they were run again.
    once: Vec<Failed>,
    /// Lines of known failures of which none was found, though all runs were made.
    mended: Vec<String>,
}

/// Of one kind of call, or of all.
#[derive(Debug, Default, Serialize)]
struct Row {
    /// Where a call of a role and phase fails.
    positions: usize,
    errnos: BTreeSet<&'static str>,
    /// What makes the call fail so.
    why: &'static str,
    /// Positions and errnos.
    runs: usize,
    went_on: usize,
    told: usize,
    not_reached: usize,
    failed: usize,
    failed_once: usize,
}

/// Runs that have failed alike.
#[derive(Debug, Serialize)]
struct Failed {
    /// Fabric, role, phase, call, errno, symptom: as in `known.txt`.
    line: String,
    runs: usize,
    /// Of the first one.
    call: String,
    text: String,
    repeat: String,
}

impl Report {
    pub(super) fn of(
        options: &Options,
        points: &[Point],
        ended: &[Ended],
    ) -> Result<Self, Failure> {
        let mut known = known::all(options.known.as_deref())?;
        let mut report = Self {
            fabric: name_of(options.fabric),
            total: Row::default(),
            calls: BTreeMap::new(),
            new: Vec::new(),
            known: Vec::new(),
            once: Vec::new(),
            mended: Vec::new(),
        };
        let mut positions = BTreeSet::new();
        for (point, ended) in points.iter().zip(ended) {
            let target = &point.target;
            let of_call = report.calls.entry(target.call.name).or_default();
            let site = (target.phase, target.call.name, target.place);
            let position = (point.role, site, target.position);
            let is_new = positions.insert(position);
            of_call.why = target.call.why;
            of_call.add(point, &ended.outcome, is_new);
            report.total.add(point, &ended.outcome, is_new);
            report.add_failure(point, ended, &mut known);
        }
        if options.is_complete() {
            let fabric = &report.fabric;
            let mended = known
                .iter()
                .filter(|it| it.found == 0 && it.is_over(fabric));
            report.mended = mended.map(Known::line).collect();
        }
        Ok(report)
    }

    fn add_failure(&mut self, point: &Point, ended: &Ended, known: &mut [Known]) {
        let (finding, is_steady) = match &ended.outcome {
            Outcome::Failed(finding) => (finding, true),
            Outcome::FailedOnce(finding) => (finding, false),
            _ => return,
        };
        let fields = known::fields(point, finding);
        let mut failures = match is_steady {
            true => &mut self.new,
            false => &mut self.once,
        };
        for known in known.iter_mut().filter(|it| it.is(&fields)) {
            known.found += 1;
            failures = &mut self.known;
        }
        let line = fields.join(" ");
        match failures.iter_mut().find(|it| it.line == line) {
            Some(failed) => failed.runs += 1,
            None => failures.push(Failed {
                line,
                runs: 1,
                call: ended.failed_call.clone().unwrap_or_default(),
                text: finding.to_string(),
                repeat: point.to_string(),
            }),
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        println!(
            "{:<18} {:>9} {:>6} {:>6} {:>8} {:>6} {:>8} {:>8} {:>8}  errnos",
            "call", "positions", "errnos", "runs", "went on", "told", "not made", "failed", "once"
        );
        for (name, row) in &self.calls {
            let errnos: Vec<&str> = row.errnos.iter().copied().collect();
            println!("{}  {}: {}", row.columns(name), errnos.join(" "), row.why);
        }
        println!("{}", self.total.columns("all"));
        for (what, failures) in [
            ("known", &self.known),
            ("once", &self.once),
            ("NEW", &self.new),
        ] {
            for failed in failures {
                println!("\n{what}, {} runs: {}", failed.runs, failed.line);
                println!("    call: {}\n    {}", failed.call, failed.text);
                println!("    {}", failed.repeat);
            }
        }
        for line in &self.mended {
            println!("\nno such failure any more, remove it from known.txt: {line}");
        }
        Ok(())
    }

    /// Fails on a failure that is not known, on a known one that is none any more, and on more
    /// than a few that are not found again.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let (new, mended) = (self.new.len(), self.mended.len());
        let once = self.total.failed_once;
        if once > 1 + self.total.runs / RUNS_PER_FAILURE {
            return Err(Failure::Run(format!("{once} runs have failed once")));
        }
        match (new, mended) {
            (0, 0) => Ok(()),
            _ => Err(Failure::Run(format!(
                "{new} kinds of failures are new, {mended} known ones are none any more"
            ))),
        }
    }
}

/// Of so many runs, one may fail once, as the machine stands still.
const RUNS_PER_FAILURE: usize = 500;

impl Row {
    fn add(&mut self, point: &Point, outcome: &Outcome, is_new_position: bool) {
        self.positions += usize::from(is_new_position);
        self.errnos.insert(point.target.errno.name);
        self.runs += 1;
        match outcome {
            Outcome::NotReached => self.not_reached += 1,
            Outcome::WentOn => self.went_on += 1,
            Outcome::Told(_) => self.told += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::FailedOnce(_) => self.failed_once += 1,
        }
    }

    fn columns(&self, name: &str) -> String {
        format!(
            "{name:<18} {:>9} {:>6} {:>6} {:>8} {:>6} {:>8} {:>8} {:>8}",
            self.positions,
            self.errnos.len(),
            self.runs,
            self.went_on,
            self.told,
            self.not_reached,
            self.failed,
            self.failed_once
        )
    }
}
