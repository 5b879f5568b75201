//! The processes of a run: started together, given orders together, and ended together. One that
//! fails ends the run with its reason.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use spindle_dds_children::{
    ChildEvent, Children, describe_failure, group_by_error, private_directory, this_program,
};
use tempfile::TempDir;

use super::protocol::{Job, Order, Told};
use super::resources::Resources;
use super::run::Plan;
use crate::perf::{Failure, idle};

/// The processes of a run under way, numbered from 0.
pub(super) struct Processes<'a> {
    plan: Plan,
    children: Children,
    /// Where its participants meet, and no others; removed at the end of the run.
    _directory: TempDir,
    /// How many have not ended.
    open: usize,
    deadline: Instant,
    progress: &'a ProgressBar,
}

impl<'a> Processes<'a> {
    pub(super) fn start(plan: Plan, progress: &'a ProgressBar) -> Result<Self, Failure> {
        let directory = private_directory("spindle-perf-")?;
        let mut children = Children::default();
        let open = plan.size.participants + u32::from(plan.late);
        for index in 0..open {
            let job = Job {
                parent: std::process::id(),
                contender: plan.contender,
                directory: directory.path().to_owned(),
                participants: plan.size.participants,
                topics: plan.size.topics,
                index,
                has_paced_topic: plan.late && index < plan.size.participants,
            };
            let job = serde_json::to_string(&job)?;
            let arguments = vec!["perf".into(), "scale-worker".into(), job.into()];
            children.start_with_input(this_program(arguments)?)?;
        }
        Ok(Self {
            plan,
            children,
            _directory: directory,
            open: open as usize,
            deadline: Instant::now() + plan.time_limit,
            progress,
        })
    }

    /// The participants that all begin together.
    pub(super) fn len(&self) -> usize {
        self.plan.size.participants as usize
    }

    fn len_with_late(&self) -> usize {
        self.len() + usize::from(self.plan.late)
    }

    /// Gives an order to the processes that begin together, and waits for the answer of each.
    /// `read` returns `None` for a line that answers something else.
    pub(super) fn ask<T>(
        &mut self,
        order: Order,
        doing: &str,
        read: impl Fn(Told) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        self.ask_first(self.len(), |_| Some(order), doing, read)
    }

    /// The same for all processes: `order` gives the order of each, by its number, if there is one.
    pub(super) fn ask_all<T>(
        &mut self,
        order: impl Fn(usize) -> Option<Order>,
        doing: &str,
        read: impl Fn(Told) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        self.ask_first(self.len_with_late(), order, doing, read)
    }

    fn ask_first<T>(
        &mut self,
        count: usize,
        order: impl Fn(usize) -> Option<Order>,
        doing: &str,
        read: impl Fn(Told) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        let Plan {
            contender, size, ..
        } = self.plan;
        self.progress
            .set_message(format!("{size} {contender}: {doing}"));
        for number in 0..count {
            if let Some(order) = order(number) {
                let line = serde_json::to_string(&order)?;
                // A process that does not read has ended, and an event tells why.
                let _ = self.children.write_line(number, &line);
            }
        }
        let mut answers: Vec<Option<T>> = (0..count).map(|_| None).collect();
        let mut missing = answers.len();
        while missing > 0 {
            let Some((number, event)) = self.children.next_event(self.deadline) else {
                return Err(self.describe_time_limit(doing, missing));
            };
            let is_answered = answers.get(number).is_some_and(Option::is_some);
            let may_end = is_answered && matches!(order(number), Some(Order::Close));
            let failure = match event {
                ChildEvent::Closed if may_end => match self.reap(number)? {
                    None => continue,
                    Some(failure) => failure,
                },
                ChildEvent::Closed => self.describe_early_end(number)?,
                ChildEvent::Line(line) => match serde_json::from_str(&line).map(&read) {
                    Ok(Some(answer)) if number < count && !is_answered => {
                        answers[number] = Some(answer);
                        missing -= 1;
                        self.progress.inc(1);
                        continue;
                    }
                    _ => describe_line(&line),
                },
            };
            let failures = self.failures(BTreeMap::from([(number, failure)]))?;
            return Err(self.describe(&failures));
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// What each process holds.
    pub(super) fn resources(&mut self) -> Result<Vec<Resources>, Failure> {
        let read = |number| match self.children.id(number) {
            Some(id) => Resources::read(id),
            None => Err(io::Error::other("a process has ended")),
        };
        let read: io::Result<Vec<_>> = (0..self.len()).map(read).collect();
        match read {
            Ok(all) => Ok(all),
            // Most likely a process has ended: its own reason comes first.
            Err(error) => {
                let failures = self.failures(BTreeMap::new())?;
                match failures.is_empty() {
                    true => Err(error.into()),
                    false => Err(self.describe(&failures)),
                }
            }
        }
    }

    /// The same, once what was begun before has been given back.
    pub(super) fn settled_resources(&mut self) -> Result<Vec<Resources>, Failure> {
        std::thread::sleep(idle::SETTLE);
        self.resources()
    }

    /// Waits until all processes have ended.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        while self.open > 0 {
            let Some((number, event)) = self.children.next_event(self.deadline) else {
                return Err(self.describe_time_limit("ending", self.open));
            };
            let failure = match event {
                ChildEvent::Line(line) => Some(describe_line(&line)),
                ChildEvent::Closed => self.reap(number)?,
            };
            if let Some(failure) = failure {
                return Err(self.describe(&BTreeMap::from([(number, failure)])));
            }
        }
        Ok(())
    }

    /// The failures that are known, and those of other processes that fail soon after.
    fn failures(&mut self, known: BTreeMap<usize, String>) -> io::Result<BTreeMap<usize, String>> {
        let mut failures = known;
        let deadline = Instant::now() + GRACE;
        while let Some((number, event)) = self.children.next_event(deadline) {
            match event {
                ChildEvent::Closed => {
                    let end = self.describe_early_end(number)?;
                    failures.entry(number).or_insert(end);
                }
                ChildEvent::Line(line) => {
                    if let Ok(Told::Failed { error }) = serde_json::from_str(&line) {
                        failures.insert(number, error);
                    }
                }
            }
        }
        Ok(failures)
    }

    /// How a process has failed that has closed its output.
    fn reap(&mut self, number: usize) -> io::Result<Option<String>> {
        self.open -= 1;
        Ok(describe_failure(self.children.reap(number)?))
    }

    fn describe_early_end(&mut self, number: usize) -> io::Result<String> {
        let failure = self.reap(number)?;
        Ok(failure.unwrap_or_else(|| "ended before it was told to".to_owned()))
    }

    fn describe(&self, failures: &BTreeMap<usize, String>) -> Failure {
        let named = failures
            .iter()
            .map(|(number, error)| (format!("participant {number}"), error.clone()));
        let named: Vec<_> = named.collect();
        let Plan {
            contender, size, ..
        } = self.plan;
        let errors = group_by_error(&named, self.len());
        Failure::Workers(format!("{size} {contender}: {errors}"))
    }

    fn describe_time_limit(&self, doing: &str, missing: usize) -> Failure {
        let Plan {
            contender, size, ..
        } = self.plan;
        let (limit, all) = (self.plan.time_limit.as_secs(), self.len());
        Failure::Workers(format!(
            "{size} {contender}: {doing}: {missing} of {all} processes have not done so within \
             {limit} s of the start (--timeout)"
        ))
    }
}

/// A line that is no answer.
fn describe_line(line: &str) -> String {
    match serde_json::from_str(line) {
        Ok(Told::Failed { error }) => error,
        _ => format!("printed what was not asked for: {line}"),
    }
}

/// For other processes to notice a failure.
const GRACE: Duration = Duration::from_secs(1);
