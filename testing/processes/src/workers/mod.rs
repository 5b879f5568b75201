//! The participants of `churn`, `isolation` and others, each in a process of its own.
//!
//! The main process tells each worker its [`Job`] on the command line, and gets back one line
//! of JSON, an [`Answer`].

mod fleet;
mod job;
pub(crate) mod participant;

use std::process::ExitCode;

use spindle_dds_children::{Answer, die_with_parent};

pub(crate) use self::fleet::run;
pub(crate) use self::job::{Job, Role, Wait};
use crate::{churn, closing, crowd, history, isolation, leaks, logged};

/// Is a worker: does its job, and prints the answer.
pub(crate) fn work(job: &str) -> ExitCode {
    let job: Job = match serde_json::from_str(job) {
        Ok(job) => job,
        Err(error) => return Answer::of(Err::<(), _>(error)).print(),
    };
    if !die_with_parent(job.parent) {
        let text = "a worker is started by `processes` only";
        return Answer::of(Err::<(), _>(text)).print();
    }
    if let Some(host) = &job.host
        && let Err(error) = host.enter()
    {
        return Answer::of(Err::<(), _>(error)).print();
    }
    match job.role {
        Role::Isolation(role) => Answer::of(isolation::work(&job, role)).print(),
        Role::Churn(role) => Answer::of(churn::work(&job, role)).print(),
        Role::Leaks(role) => Answer::of(leaks::work(&job, role)).print(),
        Role::Closing(role) => Answer::of(closing::work(&job, role)).print(),
        Role::Crowd(role) => Answer::of(crowd::work(&job, role)).print(),
        // It says more than one thing.
        Role::History(role) => history::work(&job, role),
        Role::Logged(role) => logged::work(&job, role),
    }
}
