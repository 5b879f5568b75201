//! `spindle bench --simulated`: the paper's experiments, run again, and a report of them.
//!
//! ```text
//!   figures   what is run for each figure, and what the paper says of it
//!   lab       runs it, each run once
//!   report    figures, series, claims: what is known afterwards
//!   page      the report as one page, with plots
//! ```

mod figures;
mod lab;
mod page;
mod plan;
mod plot;
mod report;
mod systems;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use spindle_dds_sim::paper::{Broken, constants};

use lab::Lab;
use report::{Report, Verdict};
use systems::Scale;

/// What to run, and where the report goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --simulated")]
pub(crate) struct PaperOptions {
    /// Only this figure of the paper; may be given more than once.
    #[arg(long, conflicts_with = "peers", value_name = "N", value_parser = figure_number)]
    figure: Vec<u32>,
    /// Few points and few messages: seconds instead of minutes.
    #[arg(long, conflicts_with = "peers")]
    quick: bool,
    /// Where report.html and runs.jsonl go; made if it is not there.
    #[arg(
        long,
        conflicts_with = "peers",
        value_name = "DIR",
        default_value = "bench-report"
    )]
    out: PathBuf,
}

fn figure_number(text: &str) -> Result<u32, String> {
    let number = text.parse().map_err(|error| format!("{error}"))?;
    if figures::NUMBERS.contains(&number) {
        Ok(number)
    } else {
        let first = figures::NUMBERS[0];
        let last = figures::NUMBERS[figures::NUMBERS.len() - 1];
        Err(format!(
            "the paper's experiments are figures {first} to {last}"
        ))
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Run(#[from] Broken),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
}

pub(crate) fn run(options: &PaperOptions) -> ExitCode {
    match write(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn write(options: &PaperOptions) -> Result<(), Failure> {
    let file = |path: PathBuf| move |error| Failure::File { path, error };
    fs::create_dir_all(&options.out).map_err(file(options.out.clone()))?;
    let (report, lines) = make(options)?;
    for (name, text) in [
        ("report.html", page::page(&report)),
        ("runs.jsonl", lines.join("\n") + "\n"),
    ] {
        let path = options.out.join(name);
        fs::write(&path, text).map_err(file(path.clone()))?;
        println!("{}", path.display());
    }
    for figure in &report.figures {
        let count = |verdict| {
            let claims = figure.claims.iter();
            claims.filter(|claim| claim.verdict == verdict).count()
        };
        println!(
            "figure {:>2}: {} hold, {} in shape, {} differ, {} not run: {}",
            figure.number,
            count(Verdict::Holds),
            count(Verdict::Shape),
            count(Verdict::Differs),
            count(Verdict::Untold),
            figure.title
        );
    }
    Ok(())
}

/// The report, and the raw numbers as lines of JSON.
fn make(options: &PaperOptions) -> Result<(Report, Vec<String>), Failure> {
    let scale = Scale {
        quick: options.quick,
    };
    let wanted = |number: &u32| options.figure.is_empty() || options.figure.contains(number);
    let numbers = figures::NUMBERS.into_iter().filter(wanted);
    let plans: Vec<_> = numbers.map(|number| figures::plan(number, scale)).collect();
    let mut lab = Lab::new(&plans);
    for constant in constants::ALL {
        let line = serde_json::json!({"kind": "constant", "constant": constant});
        lab.lines.push(line.to_string());
    }
    let figures = plans.iter().map(|plan| lab.figure(plan)).collect();
    lab.finish();
    let report = Report {
        command: command(options),
        quick: options.quick,
        constants: constants::ALL.to_vec(),
        figures: Result::from_iter::<Vec<Result<_, Failure>>>(figures)?,
    };
    Ok((report, lab.lines))
}

/// As it would be typed.
fn command(options: &PaperOptions) -> String {
    let figures = options
        .figure
        .iter()
        .map(|number| format!(" --figure {number}"));
    let quick = if options.quick { " --quick" } else { "" };
    format!(
        "spindle bench --simulated{quick}{} --out {}",
        figures.collect::<String>(),
        options.out.display()
    )
}
