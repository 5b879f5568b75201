//! A worker process.

use std::process::ExitCode;

use spindle_dds_children::netns::enter_by_path;
use spindle_dds_children::{Answer, die_with_parent};

use super::job::{Job, Report, Role};
use super::{Failure, idle, member, outsider, reader, writer};

pub(super) fn run(job: &str) -> ExitCode {
    Answer::of(work(job)).print()
}

fn work(job: &str) -> Result<Report, Failure> {
    let job: Job = serde_json::from_str(job)?;
    if !die_with_parent(job.parent) {
        return Err(Failure::Workers("not started by `spindle perf`".to_owned()));
    }
    if let Some(namespace) = job.place.as_ref().and_then(|it| it.namespace.as_ref()) {
        // The threads of the participant follow.
        enter_by_path(namespace)?;
    }
    match job.role {
        Role::Writer(index) => writer::run(&job, index),
        Role::Reader(index) => reader::run(&job, index),
        Role::Member(index) => member::run(&job, index),
        Role::Outsider => outsider::run(&job),
        Role::Idler(index) => idle::work(&job, index),
    }
}
