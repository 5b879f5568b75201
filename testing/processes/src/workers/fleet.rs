//! Starts the workers of a command together, and collects their answers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::job::{Answer, Job, Role};
use crate::Failure;
use crate::children::{Children, Event, describe_failure};
use crate::hosts::Host;

/// Runs one worker for each role, and returns what they found in the same order. `set_hosts`
/// tells the hosts, which have their directories below the one that it is given.
pub(crate) fn run<F: DeserializeOwned>(
    mut job: Job,
    roles: &[Role],
    time_limit: Duration,
    set_hosts: impl FnOnce(&Path) -> Result<Vec<Host>, Failure>,
) -> Result<Vec<F>, Failure> {
    let directory = tempfile::Builder::new()
        .prefix("spindle-processes-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    job.hosts = set_hosts(directory.path())?;
    job.directory = directory.path().to_owned();
    let mut fleet = Fleet {
        roles,
        children: Children::new(),
        answers: roles.iter().map(|_| None).collect(),
        deadline: Instant::now() + time_limit,
    };
    for (number, role) in roles.iter().enumerate() {
        let host = number % job.hosts.len().max(1);
        let job = Job {
            role: *role,
            host: job.hosts.get(host).cloned(),
            ..job.clone()
        };
        let job = serde_json::to_string(&job)?;
        fleet.children.start(vec!["worker".into(), job.into()])?;
    }
    fleet.follow()?;
    fleet.findings()
}

struct Fleet<'a, F> {
    roles: &'a [Role],
    children: Children,
    answers: Vec<Option<Answer<F>>>,
    deadline: Instant,
}

impl<F: DeserializeOwned> Fleet<'_, F> {
    /// Until all have ended, or the deadline.
    fn follow(&mut self) -> Result<(), Failure> {
        let mut open = self.roles.len();
        while open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, Event::Line(line))) => {
                    let answer =
                        serde_json::from_str(&line).unwrap_or_else(|error| Answer::Failed {
                            error: format!("printed what is no answer: {error}"),
                        });
                    self.handle_answer(number, answer);
                }
                Some((number, Event::Closed)) => {
                    open -= 1;
                    let status = self.children.reap(number)?;
                    if self.answers[number].is_none() {
                        let error = describe_failure(status);
                        let error = error.unwrap_or_else(|| "ended without an answer".to_owned());
                        self.handle_answer(number, Answer::Failed { error });
                    }
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// After a failure the others have a while left to notice it too.
    fn handle_answer(&mut self, number: usize, answer: Answer<F>) {
        if matches!(answer, Answer::Failed { .. }) {
            self.deadline = self.deadline.min(Instant::now() + GRACE);
        }
        self.answers[number] = Some(answer);
    }

    fn findings(self) -> Result<Vec<F>, Failure> {
        let (mut findings, mut failures) = (Vec::new(), Vec::new());
        for (role, answer) in self.roles.iter().zip(self.answers) {
            match answer {
                Some(Answer::Done(found)) => findings.push(found),
                Some(Answer::Failed { error }) => failures.push((*role, error)),
                None => failures.push((*role, "did not end in time and was killed".to_owned())),
            }
        }
        match failures.is_empty() {
            true => Ok(findings),
            false => Err(Failure::of_processes(&failures, self.roles.len())),
        }
    }
}

const GRACE: Duration = Duration::from_secs(15);
