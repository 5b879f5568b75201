//! Starts workers together, and collects their answers.

use std::fmt::Display;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::{Answer, ChildEvent, Children, describe_failure, group_by_error};

/// A process to start, which prints one [`Answer`].
#[derive(Debug)]
pub struct Worker<R> {
    /// What failures call it.
    pub role: R,
    /// How it is started.
    pub command: Command,
}

/// Why there are no reports.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// A process could not be started or waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Workers failed: a line for each error.
    #[error("{0}")]
    Failed(String),
}

/// Runs all workers, and returns their reports in the same order. Those that have not ended
/// `time_limit` after the start, or a while after another one failed, are killed.
pub fn run_workers<R: Display, T: DeserializeOwned>(
    workers: Vec<Worker<R>>,
    time_limit: Duration,
) -> Result<Vec<T>, WorkersError> {
    let mut run = Run {
        children: Children::default(),
        answers: workers.iter().map(|_| None).collect(),
        deadline: Instant::now() + time_limit,
    };
    let mut roles = Vec::new();
    for worker in workers {
        run.children.start(worker.command)?;
        roles.push(worker.role);
    }
    run.collect_answers()?;
    run.reports(roles)
}

struct Run<T> {
    children: Children,
    answers: Vec<Option<Answer<T>>>,
    deadline: Instant,
}

impl<T: DeserializeOwned> Run<T> {
    /// Until all have ended, or the deadline.
    fn collect_answers(&mut self) -> io::Result<()> {
        let mut open = self.answers.len();
        while open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, ChildEvent::Line(line))) => match serde_json::from_str(&line) {
                    Ok(Answer::Failed { error }) => self.fail(number, error),
                    Ok(done) => self.answers[number] = Some(done),
                    Err(error) => self.fail(number, format!("printed a malformed answer: {error}")),
                },
                Some((number, ChildEvent::Closed)) => {
                    open -= 1;
                    let status = self.children.reap(number)?;
                    self.handle_end(number, describe_failure(status));
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// A worker that fails after its answer has failed: it may have crashed on leaving.
    fn handle_end(&mut self, number: usize, failure: Option<String>) {
        match (&self.answers[number], failure) {
            (Some(Answer::Failed { .. }), _) | (Some(Answer::Done(_)), None) => {}
            (_, Some(error)) => self.fail(number, error),
            (None, None) => self.fail(number, "ended without an answer".to_owned()),
        }
    }

    /// After a failure the others have a while left to notice it too.
    fn fail(&mut self, number: usize, error: String) {
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        self.answers[number] = Some(Answer::Failed { error });
    }

    fn reports<R: Display>(self, roles: Vec<R>) -> Result<Vec<T>, WorkersError> {
        let all = roles.len();
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        for (role, answer) in roles.into_iter().zip(self.answers) {
            match answer {
                Some(Answer::Done(report)) => reports.push(report),
                Some(Answer::Failed { error }) => failures.push((role, error)),
                None => failures.push((role, "did not end in time and was killed".to_owned())),
            }
        }
        match failures.is_empty() {
            true => Ok(reports),
            false => Err(WorkersError::Failed(group_by_error(&failures, all))),
        }
    }
}

const GRACE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scripts: &[&str], time_limit: Duration) -> Result<Vec<u32>, String> {
        let worker = |(number, script): (usize, &&str)| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let role = format!("worker {number}");
            Worker { role, command }
        };
        let workers = scripts.iter().enumerate().map(worker).collect();
        run_workers(workers, time_limit).map_err(|error| error.to_string())
    }

    fn check(scripts: &[&str], expected: Result<&[u32], &str>) {
        let found = run(scripts, Duration::from_secs(600));
        let expected = expected.map(<[u32]>::to_vec).map_err(str::to_owned);
        assert_eq!(found, expected);
    }

    #[test]
    fn reports_are_in_the_order_of_the_workers() {
        let directory = crate::private_directory("workers-").expect("a directory");
        let pipe = directory.path().join("pipe").display().to_string();
        let late = format!("mkfifo {pipe} 2>&-; cat {pipe}; echo '{{\"done\":1}}'");
        let early = format!("echo '{{\"done\":2}}'; mkfifo {pipe} 2>&-; : > {pipe}");
        check(&[&late, &early], Ok(&[1, 2]));
    }

    #[test]
    fn each_failure_is_reported_with_its_workers() {
        let failed = "echo '{\"failed\":{\"error\":\"oh\"}}'; exit 1";
        check(&[failed, failed], Err("oh"));
        check(&[failed, "echo '{\"done\":2}'"], Err("worker 0: oh"));
        let scripts = [failed, "true", failed, "kill -9 $$"];
        let text = "worker 0, worker 2: oh\n\
                    worker 1: ended without an answer\n\
                    worker 3: was killed by signal 9";
        check(&scripts, Err(text));
    }

    #[test]
    fn a_crash_after_the_answer_is_a_failure() {
        let text = "ended with exit status: 3";
        check(&["echo '{\"done\":1}'; exit 3"], Err(text));
    }

    #[test]
    fn a_malformed_answer_is_a_failure() {
        let error = run(&["echo oh"], Duration::from_secs(600)).expect_err("a failure");
        assert!(error.starts_with("printed a malformed answer: "), "{error}");
    }

    #[test]
    fn a_worker_that_hangs_is_killed() {
        let error = run(&["exec sleep 1000"], Duration::ZERO).expect_err("a failure");
        assert_eq!(error, "did not end in time and was killed");
    }
}
