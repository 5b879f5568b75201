//! Starts the workers of a command together.

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use spindle_dds_children::{Worker, private_directory, run_workers, this_program};

use super::job::{Job, Role};
use crate::Failure;
use crate::hosts::Host;

/// Runs one worker for each role, and returns what they found in the same order. `set_hosts`
/// tells the hosts, which have their directories below the one that it is given.
pub(crate) fn run<F: DeserializeOwned>(
    mut job: Job,
    roles: &[Role],
    time_limit: Duration,
    set_hosts: impl FnOnce(&Path) -> Result<Vec<Host>, Failure>,
) -> Result<Vec<F>, Failure> {
    let directory = private_directory("spindle-processes-")?;
    job.hosts = set_hosts(directory.path())?;
    job.directory = directory.path().to_owned();
    let worker = |(number, role): (usize, &Role)| -> Result<_, Failure> {
        let host = number % job.hosts.len().max(1);
        let job = Job {
            role: *role,
            host: job.hosts.get(host).cloned(),
            ..job.clone()
        };
        let job = serde_json::to_string(&job)?;
        Ok(Worker {
            role: *role,
            command: this_program(vec!["worker".into(), job.into()])?,
        })
    };
    let workers: Result<_, Failure> = roles.iter().enumerate().map(worker).collect();
    Ok(run_workers(workers?, time_limit)?)
}
