//! Runs lives from seeds: groups whose members join, change, leave and crash.
//! `spindle-dds-sim --seed 7`, `spindle-dds-sim --seeds 0..20000`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;
use spindle_dds_sim::{
    LifePlan, LifeReport, LogPlan, LogReport, Scenario, Violation, live, live_logs, live_traced,
    shrink,
};

/// Runs the engine under the deterministic simulator.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// One seed: prints its plan and its report.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A range of seeds, `from..to` without `to`: prints the violations and a summary.
    #[arg(long, value_parser = range)]
    seeds: Option<std::ops::Range<u64>>,
    /// Draws hostile lives: this many words are forged in the rows of every other member.
    #[arg(long)]
    hostile: Option<usize>,
    /// With one seed: prints the events in columns: turn, member (numbered in the order of
    /// their start), its view, the event.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// With one seed of a life that fails: looks for a smaller life that fails too.
    #[arg(long, requires = "seed")]
    shrink: bool,
    /// The kind of life: any, busy, crashes, refusals, lacking, short, many-subgroups, gray, crowd,
    /// returning, storage, logged, quiet.
    #[arg(long, value_parser = scenario, conflicts_with = "hostile")]
    scenario: Option<Scenario>,
    /// Lives of the keepers of logs alone, without the engine.
    #[arg(long, conflicts_with_all = ["scenario", "hostile", "shrink"])]
    logs: bool,
    /// With logs, a negative control: samples are acknowledged by the words of a later generation, too.
    #[arg(long, requires = "logs")]
    acknowledge_in_any_generation: bool,
    /// With logs, a negative control: samples of an earlier view are acknowledged when a majority of the
    /// loggers is ready, and not all are.
    #[arg(long, requires = "logs")]
    acknowledge_by_majority: bool,
    /// Judges only the property with this id. A life that violates another property first
    /// counts as sound.
    #[arg(long)]
    only: Option<String>,
    /// Stops at the first violation.
    #[arg(long)]
    first: bool,
}

fn scenario(name: &str) -> Result<Scenario, String> {
    Scenario::named(name).ok_or_else(|| {
        let names = Scenario::ALL.map(|(name, _)| name);
        format!("the scenarios are {}", names.join(", "))
    })
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
    let seeds = arguments.seeds.clone().unwrap_or(0..1000);
    if arguments.logs {
        return logs(seeds, &arguments);
    }
    match arguments.seed {
        Some(seed) => {
            let plan = arguments.plan(seed);
            let plan = match arguments.shrink {
                true => shrink(&plan).map_or(plan, |(smaller, _)| smaller),
                false => plan,
            };
            match arguments.trace {
                true => one(&plan, traced),
                false => one(&plan, live),
            }
        }
        None => lives(seeds, &arguments),
    }
}

fn one(plan: &LifePlan, run: impl Fn(&LifePlan) -> Result<LifeReport, Violation>) -> ExitCode {
    println!("{plan:#?}");
    match run(plan) {
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

fn traced(plan: &LifePlan) -> Result<LifeReport, Violation> {
    let (result, trace) = live_traced(plan);
    println!("    turn  member  view  what");
    trace.iter().for_each(|line| println!("{line}"));
    result
}

impl Arguments {
    fn plan(&self, seed: u64) -> LifePlan {
        let plan = match self.hostile {
            Some(words) => LifePlan::hostile(seed, words),
            None => self.scenario.unwrap_or(Scenario::Any).draw(seed),
        };
        let only = self.only.clone();
        LifePlan { only, ..plan }
    }

    fn ignores(&self, violation: &Violation) -> bool {
        let only = self.only.as_deref();
        only.is_some_and(|only| only != violation.property)
    }
}

fn lives(seeds: std::ops::Range<u64>, arguments: &Arguments) -> ExitCode {
    let (mut forged, mut expelled) = (0, BTreeMap::new());
    let (mut returned, mut sent_again) = (0, 0);
    let mut historical = 0;
    let mut logged = (0, 0);
    let [mut acknowledged, mut unsent, mut unknown] = [0; 3];
    let mut crashes = [0; 6];
    let (mut violations, mut views, mut gone, mut refused, mut delivered) = (0_u64, 0, 0, 0, 0);
    for seed in seeds.clone() {
        match live(&arguments.plan(seed)) {
            Ok(report) => {
                forged += report.forged;
                for (cause, times) in report.expelled {
                    *expelled.entry(cause).or_insert(0) += times;
                }
                views += report.views;
                for (sum, count) in crashes.iter_mut().zip(report.crashes) {
                    *sum += count;
                }
                gone += report.gone;
                historical += report.historical;
                logged.0 += report.logged.0;
                logged.1 += report.logged.1;
                returned += report.returned.0;
                sent_again += report.returned.1;
                refused += report.refused;
                delivered += report.delivered;
                acknowledged += report.outcomes[0];
                unsent += report.outcomes[1];
                unknown += report.outcomes[2];
            }
            Err(violation) if arguments.ignores(&violation) => {}
            Err(violation) => {
                println!("{violation}");
                violations += 1;
                if arguments.first {
                    break;
                }
            }
        }
    }
    let count = seeds.end.saturating_sub(seeds.start);
    println!(
        "{count} lives, {violations} violations, {views} views, {gone} members gone, {refused} \
         requests refused, {delivered} deliveries"
    );
    println!(
        "crashes while views change, by phase (prepare, wedge, report, echo, install, begin): \
         {crashes:?}"
    );
    println!(
        "of what applications sent: {acknowledged} acknowledged, {unsent} refused, {unknown} unknown"
    );
    if returned > 0 {
        println!("{returned} members came back and sent {sent_again} messages again");
    }
    if historical > 0 {
        println!("{historical} records of history shown");
    }
    if logged.0 > 0 {
        let (openings, acknowledged) = logged;
        println!("{openings} epochs with open logs, {acknowledged} samples acknowledged by logs");
    }
    if arguments.hostile.is_some() {
        println!("{forged} words forged; hostile members expelled, by cause:");
        for (cause, times) in expelled {
            println!("{times:7}  {cause}");
        }
    }
    code(violations)
}

fn logs(seeds: std::ops::Range<u64>, arguments: &Arguments) -> ExitCode {
    let seeds = arguments.seed.map_or(seeds, |seed| seed..seed + 1);
    let (mut sum, mut violations) = (LogReport::default(), 0);
    for seed in seeds.clone() {
        let plan = LogPlan {
            acknowledges_in_any_generation: arguments.acknowledge_in_any_generation,
            acknowledges_by_majority_of_proposed: arguments.acknowledge_by_majority,
            ..LogPlan::draw(seed)
        };
        let (result, trace) = live_logs(&plan, arguments.trace);
        trace.iter().for_each(|line| println!("{line}"));
        match result {
            Ok(report) => {
                sum.openings += report.openings;
                sum.written += report.written;
                sum.acknowledged += report.acknowledged;
                sum.shown += report.shown;
                sum.flipped.0 += report.flipped.0;
                sum.flipped.1 += report.flipped.1;
            }
            Err(violation) if arguments.ignores(&violation) => {}
            Err(violation) => {
                println!("{violation}");
                violations += 1;
                if arguments.first {
                    break;
                }
            }
        }
    }
    let count = seeds.end.saturating_sub(seeds.start);
    let LogReport {
        openings,
        written,
        acknowledged,
        shown,
        flipped,
    } = sum;
    println!(
        "{count} lives of logs, {violations} violations, {openings} views that take samples, {written} \
         samples, {acknowledged} acknowledged, {shown} shown, {} bits changed and {} logs mended",
        flipped.0, flipped.1
    );
    code(violations)
}

fn code(violations: u64) -> ExitCode {
    if violations == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
