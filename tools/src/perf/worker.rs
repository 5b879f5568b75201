//! A worker process.

use std::io::Write;
use std::process::ExitCode;

use super::children::die_with;
use super::job::{Answer, Job, Report, Role};
use super::{Failure, idle, member, reader, writer};

pub(super) fn run(job: &str) -> ExitCode {
    let answer = match work(job) {
        Ok(report) => Answer::Done(Box::new(report)),
        Err(failure) => Answer::Failed {
            error: failure.to_string(),
        },
    };
    match serde_json::to_string(&answer) {
        Ok(line) => {
            // The parent may have ended: that is no failure of the worker.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        Err(error) => eprintln!("{error}"),
    }
    match answer {
        Answer::Done(_) => ExitCode::SUCCESS,
        Answer::Failed { .. } => ExitCode::FAILURE,
    }
}

fn work(job: &str) -> Result<Report, Failure> {
    let job: Job = serde_json::from_str(job)?;
    if !die_with(job.parent) {
        return Err(Failure::Workers("not started by `spindle perf`".to_owned()));
    }
    match job.role {
        Role::Writer(index) => writer::run(&job, index),
        Role::Reader(index) => reader::run(&job, index),
        Role::Member(index) => member::run(&job, index),
        Role::Idler(index) => idle::work(&job, index),
    }
}
