//! The participants of `churn` and `isolation`, each in a process of its own.
//!
//! The main process tells each worker its [`Job`] on the command line, and gets back one line
//! of JSON, an [`Answer`].

mod fleet;
mod job;
pub(crate) mod participant;

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

pub(crate) use self::fleet::run;
use self::job::Answer;
pub(crate) use self::job::{Job, Role, Wait};
use crate::children::die_with_parent;
use crate::{Failure, churn, isolation, leaks};

/// Is a worker: does its job, and prints the answer.
pub(crate) fn work(job: &str) -> ExitCode {
    let job: Job = match serde_json::from_str(job) {
        Ok(job) => job,
        Err(error) => return answer::<()>(Err(error.into())),
    };
    if !die_with_parent(job.parent) {
        let text = "a worker is started by `processes` only";
        return answer::<()>(Err(Failure::Run(text.to_owned())));
    }
    match job.role {
        Role::Isolation(role) => answer(isolation::work(&job, role)),
        Role::Churn(role) => answer(churn::work(&job, role)),
        Role::Leaks(role) => answer(leaks::work(&job, role)),
    }
}

fn answer<F: Serialize>(findings: Result<F, Failure>) -> ExitCode {
    let (answer, code) = match findings {
        Ok(findings) => (Answer::Done(findings), ExitCode::SUCCESS),
        Err(failure) => {
            let error = failure.to_string();
            (Answer::Failed { error }, ExitCode::FAILURE)
        }
    };
    match serde_json::to_string(&answer) {
        Ok(line) => {
            // Without a reader of its output a worker is about to be killed: no failure of its own.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
        Err(error) => eprintln!("{error}"),
    }
    code
}
