//! The workers of a measurement.

use std::time::Duration;

use spindle_dds_children::{Worker, run_workers, this_program};

use super::Failure;
use super::job::{Job, Report, Role};
use super::place;
use super::run_directory::RunDirectory;

/// Runs one worker for each role. Returns their reports in the same order.
pub(super) fn run(job: &Job, roles: &[Role], time_limit: Duration) -> Result<Vec<Report>, Failure> {
    let directory = RunDirectory::new()?;
    let worker = |(number, role): (usize, &Role)| -> Result<_, Failure> {
        let host = number % job.places.len().max(1);
        let job = Job {
            role: *role,
            directory: place::directory(directory.path(), host)?,
            place: job.places.get(host).cloned(),
            ..job.clone()
        };
        let job = serde_json::to_string(&job)?;
        Ok(Worker {
            role: *role,
            command: this_program(vec!["perf".into(), "worker".into(), job.into()])?,
        })
    };
    let workers: Result<_, Failure> = roles.iter().enumerate().map(worker).collect();
    Ok(run_workers(workers?, time_limit)?)
}
