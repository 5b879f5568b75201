//! Runs the experiments that the options select.

use crate::Failure;
use crate::model::constants;
use crate::options::Options;
use crate::plan;
use crate::real;
use crate::report::{Figure, Machine, Part, Report, Subject};
use crate::simulated::{self, figures};
use crate::systems::Scale;

/// The report, and the raw numbers as lines of JSON.
pub(crate) fn run(options: &Options) -> Result<(Report, Vec<String>), Failure> {
    let quick = options.quick;
    let subjects = || options.subjects();
    let simulated = subjects().filter_map(|subject| match subject {
        Subject::Figure(number) => Some(figures::plan(number, Scale { quick })),
        Subject::Upcalls => None,
    });
    let simulated: Vec<_> = simulated.filter(|_| options.has_simulated()).collect();
    let really = subjects().map(|subject| real::plan(subject, real::Scale { quick }));
    let really: Vec<_> = really.filter(|_| options.real_rounds().is_some()).collect();
    if simulated.is_empty() && really.is_empty() {
        return Err(Failure::NothingToRun);
    }
    let mut lines = Vec::new();
    let mut figures: Vec<Figure> = subjects().map(figure).collect();
    let mut constants = Vec::new();
    if options.has_simulated() {
        constants = constants::ALL.to_vec();
        simulate(&simulated, &mut figures, &mut lines)?;
    }
    let machine = match options.real_rounds() {
        Some(rounds) => Some(run_really(&really, rounds, &mut figures, &mut lines)?),
        None => None,
    };
    figures.retain(|figure| !figure.parts.is_empty());
    let report = Report {
        command: options.command(),
        quick,
        machine,
        constants,
        figures,
    };
    Ok((report, lines))
}

fn simulate(
    plans: &[plan::Plan],
    figures: &mut [Figure],
    lines: &mut Vec<String>,
) -> Result<(), Failure> {
    for constant in constants::ALL {
        let line = serde_json::json!({"kind": "constant", "constant": constant});
        lines.push(line.to_string());
    }
    let mut lab = simulated::Lab::new(plans);
    for plan in plans {
        add(figures, Subject::Figure(plan.number), lab.part(plan)?);
    }
    lab.finish();
    lines.append(&mut lab.lines);
    Ok(())
}

fn run_really(
    plans: &[real::Plan],
    rounds: usize,
    figures: &mut [Figure],
    lines: &mut Vec<String>,
) -> Result<Machine, Failure> {
    let mut lab = real::Lab::new(plans, rounds);
    for plan in plans {
        add(figures, plan.subject, lab.part(plan)?);
    }
    let machine = lab.finish()?;
    lines.push(serde_json::json!({"kind": "machine", "machine": machine}).to_string());
    lines.append(&mut lab.lines);
    Ok(machine)
}

fn add(figures: &mut [Figure], subject: Subject, part: Part) {
    let mut of = figures
        .iter_mut()
        .filter(|figure| figure.subject == subject);
    if let Some(figure) = of.next() {
        figure.parts.push(part);
    }
}

/// An empty figure.
fn figure(subject: Subject) -> Figure {
    let title = match subject {
        Subject::Figure(number) => figures::plan(number, Scale { quick: true }).title,
        Subject::Upcalls => "delays caused by the receiver",
    };
    Figure {
        subject,
        title: title.to_owned(),
        parts: Vec::new(),
    }
}
