//! `processes faults`: each system call of the paths of join, change, leave and end fails once,
//! with each errno that it may fail with.
//!
//! A run has three participants, each in a process of its own:
//!
//! ```text
//!   A   founds the group, and lets C in
//!   B   writes RELIABLE samples at a pace, and reads
//!   C   joins, creates and deletes a writer, and leaves; then B leaves, then A
//! ```
//!
//! One of them has one call that fails: the n-th of its kind, of one thread on one subject, since
//! the phase began. Then the two
//! others go on to the end, and all that is written among them arrives once and in order; the one
//! with the fault goes on too, or is refused or stops with an error that names the errno. What
//! was refused for the fault is asked for once more, and succeeds. No process holds more
//! descriptors afterwards. A run without a fault counts the calls.
//!
//! With `--fabric logged` the topic is PERSISTENT, each participant has a log, and the calls on these
//! fail:
//!
//! ```text
//!   D, E  have logs too, and no fault: without the log of any other, the rest is a majority
//!   C     joins once more after it has left, with the log that it has
//! ```
//!
//! What is acknowledged is then in the logs of D and E, and in each of the others up to when its
//! participant left, unless that has said what its log failed of; and all of them have the same records.

mod calls;
mod injector;
mod known;
mod messages;
mod options;
mod participant;
mod place;
mod plan;
mod process;
mod report;
mod script;
mod seccomp;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use self::injector::{Counts, Site};
pub(crate) use self::options::Options;
pub(crate) use self::participant::work;
use self::plan::Point;
use self::report::Report;
use self::script::{Ended, Outcome, Over};
use crate::Failure;

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let counts = count_calls(options.fabric)?;
    let points = plan::points(options, &counts)?;
    let ended = run_all(options, &points)?;
    let report = Report::of(options, &points, &ended)?;
    report.print(options.json)?;
    report.verdict()
}

/// What each role calls in a run without a fault: what it calls in most of a few such runs, as
/// threads take turns.
fn count_calls(over: Over) -> Result<Vec<Counts>, Failure> {
    let mut runs: Vec<BTreeMap<Site, Vec<usize>>> = Vec::new();
    for _ in 0..COUNTING_RUNS {
        let ended = script::run(over, None, Duration::ZERO)?;
        if let Outcome::Failed(finding) = ended.outcome {
            return Err(Failure::Run(format!("without a fault: {finding}")));
        }
        runs.resize(ended.counts.len(), BTreeMap::new());
        for (runs, counts) in runs.iter_mut().zip(ended.counts) {
            for (site, count) in counts {
                runs.entry(site).or_default().push(count);
            }
        }
    }
    let median = |(site, mut counts): (Site, Vec<usize>)| {
        counts.resize(COUNTING_RUNS, 0);
        counts.sort_unstable();
        (site, counts[COUNTING_RUNS / 2])
    };
    let medians = runs
        .into_iter()
        .map(|it| it.into_iter().map(median).collect());
    Ok(medians.collect())
}

/// Runs all points, some at a time: what became of them, in their order.
fn run_all(options: &Options, points: &[Point]) -> Result<Vec<Ended>, Failure> {
    let next = Mutex::new(0);
    let take = || {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        *next - 1
    };
    let work = || {
        let mut ended = Vec::new();
        loop {
            let number = take();
            let Some(point) = points.get(number) else {
                return Ok::<_, Failure>(ended);
            };
            let result = run_one(options, point)?;
            report_progress(options, point, &result, number + 1, points.len());
            ended.push((number, result));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.jobs.max(1))
            .map(|_| scope.spawn(work))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let ended = thread.join();
            all.extend(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, Failure>(all)
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, ended)| ended).collect())
}

/// A run that fails is made again: a machine that stands still for seconds fails any of them.
fn run_one(options: &Options, point: &Point) -> Result<Ended, Failure> {
    let lasting = Duration::from_millis(options.for_ms);
    let run = || script::run(point.over, Some((point.role, point.target)), lasting);
    let mut ended = run()?;
    let Outcome::Failed(finding) = ended.outcome else {
        return Ok(ended);
    };
    for _ in 0..REPEATS {
        let again = run()?;
        if let Outcome::Failed(_) = again.outcome {
            return Ok(again);
        }
    }
    ended.outcome = Outcome::FailedOnce(finding);
    Ok(ended)
}

fn report_progress(options: &Options, point: &Point, ended: &Ended, number: usize, all: usize) {
    if options.verbose {
        let call = ended.failed_call.as_deref().unwrap_or_default();
        eprintln!(
            "[{number}/{all}] {point}\n    {call}\n    {:?}",
            ended.outcome
        );
    }
}

const COUNTING_RUNS: usize = 3;
const REPEATS: usize = 3;
