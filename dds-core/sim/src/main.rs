//! Runs seeds: `spindle-dds-sim --seed 7`, `spindle-dds-sim --seeds 0..20000`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use spindle_dds_sim::{Plan, run};

/// Runs the engine under the deterministic simulator.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// One seed: prints its plan and its report.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A range of seeds, `from..to`, to excluded: prints the violations and a summary.
    #[arg(long, value_parser = range)]
    seeds: Option<std::ops::Range<u64>>,
}

fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("a range is written from..to")?;
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|error| format!("{text}: {error}"))
    };
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => one(seed),
        None => many(arguments.seeds.unwrap_or(0..1000)),
    }
}

fn one(seed: u64) -> ExitCode {
    let plan = Plan::draw(seed);
    println!("{plan:#?}");
    match run(&plan) {
        Ok(report) => {
            println!("{report:#?}");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            println!("{violation}");
            ExitCode::FAILURE
        }
    }
}

fn many(seeds: std::ops::Range<u64>) -> ExitCode {
    let (mut violations, mut delivered, mut nulls, mut changes) = (0_u64, 0_usize, 0_u64, 0_usize);
    for seed in seeds.clone() {
        match run(&Plan::draw(seed)) {
            Ok(report) => {
                delivered += report.delivered;
                nulls += report.nulls;
                changes += report.changes;
            }
            Err(violation) => {
                println!("{violation}");
                violations += 1;
            }
        }
    }
    let count = seeds.end.saturating_sub(seeds.start);
    println!(
        "{count} seeds, {violations} violations, {delivered} deliveries, {nulls} nulls, {changes} \
         changes of lanes"
    );
    if violations == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
