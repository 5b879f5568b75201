//! The experiments of the Spindle paper, run again in virtual time and with real processes.
//!
//! ```text
//!   network      a fabric in virtual time: the costs of work requests and the times of writes
//!   model        the real engines over it, with the paper's costs
//!   simulated    the figures in virtual time: their runs, and the verdict on each claim
//!   real         the same with real processes, by `spindle perf throughput`
//!   experiments  runs the experiments that the options select
//!   report       figures, series, tables, claims: the result
//!   page         the report as one page, with plots
//!   toll         the cost of a thread that only sleeps for others on this machine
//! ```

#![forbid(unsafe_code)]

mod experiments;
mod model;
mod network;
mod options;
mod page;
mod plan;
mod plot;
mod real;
mod report;
mod simulated;
mod systems;
#[cfg(test)]
mod tests;
mod toll;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

use clap::Parser;

use options::Options;
use report::{Figure, Verdict};

/// Why there is no report, or why it is incomplete.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("a thread that sleeps: {0}")]
    Sleeper(#[from] io::Error),
    #[error("--figure upcalls has no simulated runs")]
    NothingToRun,
    #[error("{0} of the runs failed: see the report")]
    Runs(usize),
}

fn main() -> ExitCode {
    // This program also starts the real processes: it contains the code of the `spindle` command.
    if env::args()
        .nth(1)
        .is_some_and(|first| first == real::COMMAND)
    {
        return spindle_dds_tools::run();
    }
    match write(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("paper: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn write(options: &Options) -> Result<(), Failure> {
    let file = |path: PathBuf| move |error| Failure::File { path, error };
    fs::create_dir_all(&options.out).map_err(file(options.out.clone()))?;
    let (report, lines) = experiments::run(options)?;
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

/// Prints a line for each source, and the tables.
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
            count(Verdict::NotRun),
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
