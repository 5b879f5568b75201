//! The workers of a measurement: starts them, and collects their reports.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::Failure;
use super::children::{Children, Event, complaint};
use super::job::{Answer, Job, Report, Role};
use super::place;

/// Runs one worker for each role. Returns their reports in the same order.
pub(super) fn run(job: &Job, roles: &[Role], time_limit: Duration) -> Result<Vec<Report>, Failure> {
    let directory = tempfile::Builder::new()
        .prefix("spindle-perf-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    let mut fleet = Fleet {
        roles,
        children: Children::new(),
        answers: roles.iter().map(|_| None).collect(),
        deadline: Instant::now() + time_limit,
    };
    for (number, role) in roles.iter().enumerate() {
        let host = number % job.places.len().max(1);
        let job = Job {
            role: *role,
            directory: place::directory(directory.path(), host)?,
            place: job.places.get(host).cloned(),
            ..job.clone()
        };
        let job = serde_json::to_string(&job)?;
        fleet
            .children
            .start(vec!["perf".into(), "worker".into(), job.into()])?;
    }
    fleet.follow()?;
    fleet.reports()
}

struct Fleet<'a> {
    roles: &'a [Role],
    children: Children,
    answers: Vec<Option<Answer>>,
    deadline: Instant,
}

impl Fleet<'_> {
    fn follow(&mut self) -> Result<(), Failure> {
        let mut open = self.roles.len();
        while open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, Event::Line(line))) => {
                    let answer =
                        serde_json::from_str(&line).unwrap_or_else(|error| Answer::Failed {
                            error: format!("printed a malformed answer: {error}"),
                        });
                    self.handle_answer(number, answer);
                }
                Some((number, Event::Closed)) => {
                    open -= 1;
                    let status = self.children.reap(number)?;
                    if self.answers[number].is_none() {
                        let error = complaint(status);
                        let error = error.unwrap_or_else(|| "ended without an answer".to_owned());
                        self.handle_answer(number, Answer::Failed { error });
                    }
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// After a failure the others get some time to notice it too.
    fn handle_answer(&mut self, number: usize, answer: Answer) {
        if matches!(answer, Answer::Failed { .. }) {
            self.deadline = self.deadline.min(Instant::now() + GRACE);
        }
        self.answers[number] = Some(answer);
    }

    fn reports(self) -> Result<Vec<Report>, Failure> {
        let mut reports = Vec::new();
        let mut errors: Vec<(String, Vec<String>)> = Vec::new();
        for (role, answer) in self.roles.iter().zip(self.answers) {
            let error = match answer {
                Some(Answer::Done(report)) => {
                    reports.push(*report);
                    continue;
                }
                Some(Answer::Failed { error }) => error,
                None => "did not end in time and was killed".to_owned(),
            };
            match errors.iter_mut().find(|(known, _)| *known == error) {
                Some((_, roles)) => roles.push(role.to_string()),
                None => errors.push((error, vec![role.to_string()])),
            }
        }
        if errors.is_empty() {
            return Ok(reports);
        }
        let lines = errors
            .iter()
            .map(|(error, roles)| match roles.len() == self.roles.len() {
                true => error.clone(),
                false => format!("{}: {error}", roles.join(", ")),
            });
        Err(Failure::Workers(lines.collect::<Vec<_>>().join("\n")))
    }
}

const GRACE: Duration = Duration::from_secs(15);
