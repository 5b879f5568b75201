//! The workers of a measurement.

use std::time::Duration;

use spindle_dds_children::{Worker, run_workers, this_program};

use super::Failure;
use super::job::{Job, Report, Role};
use super::place::{self, Place};
use super::run_directory::RunDirectory;

/// Runs one worker for each role, and the outsider if there is one. Returns their reports in the same order.
pub(super) fn run(job: &Job, roles: &[Role], time_limit: Duration) -> Result<Vec<Report>, Failure> {
    let directory = RunDirectory::new()?;
    let outsider = job.outsider.as_ref();
    let participants = job.participants + u32::from(outsider.is_some());
    let worker = |role: Role, host: usize, place: Option<&Place>| -> Result<_, Failure> {
        let job = Job {
            role,
            directory: place::directory(directory.path(), host)?,
            place: place.cloned(),
            participants,
            ..job.clone()
        };
        let job = serde_json::to_string(&job)?;
        Ok(Worker {
            role,
            command: this_program(vec!["perf".into(), "worker".into(), job.into()])?,
        })
    };
    let hosts = job.places.len();
    let measured = roles.iter().enumerate().map(|(number, role)| {
        let host = number % hosts.max(1);
        worker(*role, host, job.places.get(host))
    });
    let outsider = outsider.map(|place| worker(Role::Outsider, hosts, Some(place)));
    let workers: Result<_, Failure> = measured.chain(outsider).collect();
    let mut reports = run_workers(workers?, time_limit)?;
    reports.truncate(roles.len());
    Ok(reports)
}
