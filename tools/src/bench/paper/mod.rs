//! `spindle bench`: the paper's experiments, run again, in virtual time and with real
//! processes, and a report of them.
//!
//! ```text
//!   figures   what is run in virtual time for each figure, and what the paper says of it
//!   lab       runs it, each run once
//!   real      the same with real processes
//!   report    figures, series, tables, claims: what is known afterwards
//!   page      the report as one page, with plots
//! ```

mod figures;
mod lab;
mod page;
mod plan;
mod plot;
mod real;
mod report;
mod systems;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use spindle_dds_sim::paper::constants;

use lab::Lab;
use report::{Figure, Machine, Part, Report, Subject, Verdict};
use systems::Scale;

/// What to run, and where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Of the paper's experiments")]
pub(crate) struct PaperOptions {
    /// Only this figure of the paper, or `upcalls`: its section III-D; may be given more than
    /// once.
    #[arg(long, conflicts_with = "peers", value_name = "N", value_parser = subject)]
    figure: Vec<Subject>,
    /// Few points and few messages: seconds instead of minutes.
    #[arg(long, conflicts_with = "peers")]
    pub(super) quick: bool,
    /// Where report.html and runs.jsonl go; made if it is not there.
    #[arg(
        long,
        conflicts_with = "peers",
        value_name = "DIR",
        default_value = "bench-report"
    )]
    out: PathBuf,
}

/// In which ways: in one at least.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// In virtual time.
    pub(super) simulated: bool,
    /// With real processes, so many times.
    pub(super) real: Option<usize>,
}

fn subject(text: &str) -> Result<Subject, String> {
    let mut known = real::SUBJECTS.into_iter();
    known.find(|subject| subject.id() == text).ok_or_else(|| {
        let first = figures::NUMBERS[0];
        let last = figures::NUMBERS[figures::NUMBERS.len() - 1];
        format!("the paper's experiments are figures {first} to {last}, and `upcalls`")
    })
}

/// Why there is no report, or none that is whole.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("a thread that sleeps: {0}")]
    Sleeper(#[from] std::io::Error),
    #[error("--figure upcalls has no simulated runs")]
    NothingToRun,
    #[error("{0} of the runs failed: see the report")]
    Runs(usize),
}

pub(crate) fn run(options: &PaperOptions, ways: Ways) -> ExitCode {
    match write(options, ways) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn write(options: &PaperOptions, ways: Ways) -> Result<(), Failure> {
    let file = |path: PathBuf| move |error| Failure::File { path, error };
    fs::create_dir_all(&options.out).map_err(file(options.out.clone()))?;
    let (report, lines) = make(options, ways)?;
    for (name, text) in [
        ("report.html", page::page(&report)),
        ("runs.jsonl", lines.join("\n") + "\n"),
    ] {
        let path = options.out.join(name);
        fs::write(&path, text).map_err(file(path.clone()))?;
        println!("{}", path.display());
    }
    report.figures.iter().for_each(print);
    let failures = report.figures.iter().flat_map(Figure::failures);
    match failures.count() {
        0 => Ok(()),
        failed => Err(Failure::Runs(failed)),
    }
}

/// A line for each source, and the tables.
fn print(figure: &Figure) {
    for part in &figure.parts {
        let count = |verdict| figure.count(part.source, verdict);
        println!(
            "{:<13} {:<9} {} hold, {} in shape, {} differ, {} not run: {}",
            figure.subject.to_string(),
            part.source.word(),
            count(Verdict::Holds),
            count(Verdict::Shape),
            count(Verdict::Differs),
            count(Verdict::Untold),
            figure.title
        );
        for table in &part.tables {
            println!("\n    {}", table.title);
            println!("    {}", table.head.join(" | "));
            for row in &table.rows {
                println!("    {}", row.join(" | "));
            }
            println!();
        }
        for failure in &part.failures {
            println!("    failed: {failure}");
        }
    }
}

/// The report, and the raw numbers as lines of JSON.
fn make(options: &PaperOptions, ways: Ways) -> Result<(Report, Vec<String>), Failure> {
    let quick = options.quick;
    let wanted = |it: &Subject| options.figure.is_empty() || options.figure.contains(it);
    let subjects = || real::SUBJECTS.into_iter().filter(wanted);
    let simulated = subjects().filter_map(|subject| match subject {
        Subject::Figure(number) => Some(figures::plan(number, Scale { quick })),
        Subject::Upcalls => None,
    });
    let simulated: Vec<_> = simulated.filter(|_| ways.simulated).collect();
    let really = subjects().map(|subject| real::plan(subject, real::Scale { quick }));
    let really: Vec<_> = really.filter(|_| ways.real.is_some()).collect();
    if simulated.is_empty() && really.is_empty() {
        return Err(Failure::NothingToRun);
    }
    let mut lines = Vec::new();
    let mut figures: Vec<Figure> = subjects().map(figure).collect();
    let mut constants = Vec::new();
    if ways.simulated {
        constants = constants::ALL.to_vec();
        simulate(&simulated, &mut figures, &mut lines)?;
    }
    let machine = match ways.real {
        Some(rounds) => Some(run_really(&really, rounds, &mut figures, &mut lines)?),
        None => None,
    };
    figures.retain(|figure| !figure.parts.is_empty());
    let report = Report {
        command: command(options, ways),
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
    let mut lab = Lab::new(plans);
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

/// Without anything yet.
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

/// As it would be typed.
fn command(options: &PaperOptions, ways: Ways) -> String {
    let way = match (ways.simulated, ways.real) {
        (true, None) => " --simulated".to_owned(),
        (true, Some(rounds)) => format!(" --rounds {rounds}"),
        (false, rounds) => format!(" --real --rounds {}", rounds.unwrap_or(0)),
    };
    let figures = options
        .figure
        .iter()
        .map(|subject| format!(" --figure {}", subject.id()));
    let quick = if options.quick { " --quick" } else { "" };
    format!(
        "spindle bench{way}{quick}{} --out {}",
        figures.collect::<String>(),
        options.out.display()
    )
}
