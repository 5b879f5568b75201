//! One run: three participants, of which one has a system call that fails, and what became of
//! them.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_dds_children::private_directory;

use super::injector::{Counts, Phase, Target};
use super::messages::{Job, Reply, Request, Situation};
use super::process::{NoReply, Process};
use crate::Failure;
use crate::hosts::Host;

/// A participant of the run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[value(rename_all = "UPPER")]
pub(super) enum Role {
    /// Founds the group, and lets C in.
    A,
    /// Writes all the time, and reads.
    B,
    /// Joins, creates and deletes a writer, and leaves.
    C,
}

pub(super) const ROLES: [Role; 3] = [Role::A, Role::B, Role::C];

/// What carries the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    /// Shared memory of one host.
    Shm,
    /// Streams between two hosts, which are addresses of this one: A and C on one, B on the
    /// other.
    Tcp,
}

/// What went wrong with a participant.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    pub(super) symptom: Symptom,
    pub(super) role: Role,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Symptom {
    /// One without a fault has stopped, or was expelled.
    Stops,
    /// One without a fault was refused, and the reason is not the true one.
    Refused,
    /// The one with the fault was refused, or has stopped, and does not name the cause.
    Silent,
    /// It was refused with the cause, and the same again without a cause.
    Stuck,
    /// Something did not happen in time.
    Hangs,
    /// A sample was lost, came twice, or out of order.
    Lost,
    /// More descriptors are open than before.
    Leaks,
    /// A process has ended.
    Crashes,
}

/// What became of a run.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// The call was not made this time.
    NotReached,
    /// All went on.
    WentOn,
    /// It was refused or has stopped, and this says why. The others went on.
    Told(String),
    Failed(Finding),
    /// The same, and not when it was run again.
    FailedOnce(Finding),
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// Which call has failed.
    pub(super) failed_call: Option<String>,
    /// Of each process whose calls were counted.
    pub(super) counts: Vec<Counts>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached => f.write_str("the call was not made"),
            Self::WentOn => f.write_str("all went on"),
            Self::Told(text) => write!(f, "told: {text}"),
            Self::Failed(finding) => write!(f, "FAILED: {finding}"),
            Self::FailedOnce(finding) => write!(f, "failed once: {finding}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}: {}", self.role, self.symptom, self.text)
    }
}

/// Runs the script. With a target, which fails once and then for as long as it is `lasting`, the
/// calls of its role alone are reported; without one those of
/// all are counted.
pub(super) fn run(
    over: Over,
    target: Option<(Role, Target)>,
    lasting: Duration,
) -> Result<Ended, Failure> {
    let directory = private_directory("spindle-faults-")?;
    let mut script = Script::new(over, target, lasting, directory.path())?;
    let result = script.play()?;
    let injected = script.injected();
    let failed_call = injected.and_then(|injector| injector.failed());
    let outcome = match result {
        Err(finding) => Outcome::Failed(finding),
        Ok(()) if target.is_some() && failed_call.is_none() => Outcome::NotReached,
        Ok(()) => match script.told.take() {
            Some(text) => Outcome::Told(text),
            None => Outcome::WentOn,
        },
    };
    let injectors = script.processes.iter().filter_map(Process::injector);
    Ok(Ended {
        outcome,
        failed_call,
        counts: injectors.map(|injector| injector.counts()).collect(),
    })
}

struct Script {
    target: Option<(Role, Target)>,
    /// How long calls fail.
    lasting: Duration,
    processes: Vec<Process>,
    /// Which participants are in the group, and have a writer.
    joined: [bool; 3],
    writing: [bool; 3],
    /// Why the one with the fault was refused or has stopped.
    told: Option<String>,
    deadline: Instant,
    /// Descriptors before C joined.
    descriptors: [Vec<String>; 2],
}

/// The result of a step: something failed in the harness, or in the product.
type Step<T = ()> = Result<Result<T, Finding>, Failure>;

/// Unwraps the inner result of a step, or returns its finding.
macro_rules! step {
    ($step:expr) => {
        match $step? {
            Ok(value) => value,
            Err(finding) => return Ok(Err(finding)),
        }
    };
}

fn found<T>(symptom: Symptom, role: Role, text: String) -> Step<T> {
    Ok(Err(Finding {
        symptom,
        role,
        text,
    }))
}

impl Script {
    fn new(
        over: Over,
        target: Option<(Role, Target)>,
        lasting: Duration,
        below: &Path,
    ) -> Result<Self, Failure> {
        let hosts = match over {
            Over::Shm => Vec::new(),
            Over::Tcp => {
                let addresses = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
                Host::all(&addresses, &[], below)?
            }
        };
        let start = |role: Role| {
            let host = hosts.get(role as usize % 2).cloned();
            let directory = match &host {
                Some(host) => host.directory.clone(),
                None => below.to_owned(),
            };
            let target_of_role = target.filter(|(of, _)| *of == role);
            let job = Job {
                parent: std::process::id(),
                number: role as u32,
                directory,
                host,
                reported: target.is_none() || target_of_role.is_some(),
            };
            let target_of_role = target_of_role.map(|(_, target)| target);
            Process::start(&job, below, target_of_role, lasting)
        };
        Ok(Self {
            target,
            lasting,
            processes: ROLES.into_iter().map(start).collect::<Result<_, _>>()?,
            joined: [false; 3],
            writing: [false; 3],
            told: None,
            deadline: Instant::now() + RUN_WITHIN,
            descriptors: Default::default(),
        })
    }

    fn play(&mut self) -> Step {
        step!(self.begin());
        step!(self.within(Phase::Join, Self::join));
        step!(self.exchange());
        step!(self.within(Phase::Change, Self::change));
        step!(self.exchange());
        step!(self.within(Phase::Leave, |script| script.leave(Role::C)));
        step!(self.exchange());
        step!(self.check_descriptors());
        step!(self.within(Phase::End, |script| script.leave(Role::B)));
        step!(self.exchange());
        step!(self.within(Phase::End, |script| script.leave(Role::A)));
        for role in ROLES {
            match self.processes[role as usize].exit(self.deadline)? {
                None => {}
                Some(NoReply::Late) => {
                    return found(Symptom::Hangs, role, "the process does not end".to_owned());
                }
                Some(NoReply::Ended(how)) => return found(Symptom::Crashes, role, how),
            }
        }
        Ok(Ok(()))
    }

    /// A and B are a group at work.
    fn begin(&mut self) -> Step {
        for role in [Role::A, Role::B] {
            step!(self.ask(role, Request::Join { writer: true }));
            self.joined[role as usize] = true;
            self.writing[role as usize] = true;
        }
        step!(self.await_view());
        step!(self.exchange());
        for (process, before) in self.processes.iter().zip(&mut self.descriptors) {
            *before = process.descriptors()?;
        }
        step!(self.ask(Role::B, Request::Pace { on: true }));
        Ok(Ok(()))
    }

    fn join(&mut self) -> Step {
        if step!(self.ask(Role::C, Request::Join { writer: false })).is_some() {
            self.joined[Role::C as usize] = true;
        }
        self.await_view()
    }

    fn change(&mut self) -> Step {
        if !self.joined[Role::C as usize] {
            return Ok(Ok(()));
        }
        if step!(self.ask(Role::C, Request::CreateWriter)).is_some() {
            self.writing[Role::C as usize] = true;
        }
        step!(self.await_view());
        step!(self.exchange());
        if step!(self.ask(Role::C, Request::DeleteWriter)).is_some() {
            self.writing[Role::C as usize] = false;
        }
        self.await_view()
    }

    /// A participant leaves. It may fail to do so in order; it is out in any case.
    fn leave(&mut self, role: Role) -> Step {
        if !self.joined[role as usize] {
            return Ok(Ok(()));
        }
        if let Reply::Failed(text) = step!(self.request(role, Request::Close)) {
            step!(self.judge_error(role, Request::Close, text));
        }
        self.joined[role as usize] = false;
        self.writing[role as usize] = false;
        self.await_view()
    }

    /// All write a few samples, which all others get; B goes on with its own.
    fn exchange(&mut self) -> Step {
        for role in self.members() {
            step!(self.ask(role, Request::Pace { on: false }));
            step!(self.ask(role, Request::Write { samples: SAMPLES }));
        }
        step!(self.await_situation(Symptom::Lost, |script, situations| {
            let complete = |reader: &(Role, Situation)| {
                let writers = situations.iter().filter(|it| script.writing[it.0 as usize]);
                let missing = |writer: &(Role, Situation)| {
                    let got = reader.1.got.get(&(writer.0 as u32));
                    got.is_none_or(|(first, next)| {
                        // C may come later than the samples.
                        *next != writer.1.written || (*first != 0 && reader.0 != Role::C)
                    })
                };
                !writers.clone().any(missing)
            };
            situations.iter().all(complete)
        }));
        if self.joined[Role::B as usize] {
            step!(self.ask(Role::B, Request::Pace { on: true }));
        }
        Ok(Ok(()))
    }

    /// Until all members have the same view, and are matched.
    fn await_view(&mut self) -> Step {
        self.await_situation(Symptom::Hangs, |script, situations| {
            let members = situations.len();
            let writers = script.writing.iter().filter(|it| **it).count();
            situations.iter().all(|(role, it)| {
                it.others + 1 == members
                    && it.writers as usize == writers
                    && (!script.writing[*role as usize] || it.readers as usize == members)
            })
        })
    }

    /// Asks all members until all that they say together is so.
    fn await_situation(
        &mut self,
        otherwise: Symptom,
        is_so: impl Fn(&Self, &[(Role, Situation)]) -> bool,
    ) -> Step {
        loop {
            let mut situations = Vec::new();
            for role in self.members() {
                if let Some(situation) = step!(self.ask(role, Request::Tell)) {
                    situations.push((role, situation));
                }
            }
            // One may have stopped meanwhile.
            if situations.len() == self.members().len() && is_so(self, &situations) {
                return Ok(Ok(()));
            }
            let Some((role, _)) = situations.first() else {
                return Ok(Ok(()));
            };
            if Instant::now() > self.deadline {
                return found(otherwise, *role, describe(&situations));
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// A and B, as far as they are there, hold no more descriptors than before C joined.
    fn check_descriptors(&mut self) -> Step {
        let deadline = Instant::now() + SETTLE_WITHIN;
        for role in self.members() {
            let before = &self.descriptors[role as usize];
            loop {
                let mut now = self.processes[role as usize].descriptors()?;
                if now.len() <= before.len() {
                    break;
                }
                if Instant::now() > deadline {
                    let count = now.len();
                    now.retain(|link| !before.contains(link));
                    let text = format!("{count} descriptors, not {}: {now:?}", before.len());
                    return found(Symptom::Leaks, role, text);
                }
                std::thread::sleep(POLL_EVERY);
            }
        }
        Ok(Ok(()))
    }

    /// Asks a participant: its situation, or `None` if it is the one with the fault and has
    /// stopped. What was refused for the fault is asked for once more.
    fn ask(&mut self, role: Role, request: Request) -> Step<Option<Situation>> {
        let mut reason = String::new();
        for _ in 0..2 {
            match step!(self.request(role, request)) {
                Reply::Done(situation) => return Ok(Ok(Some(situation))),
                Reply::Failed(text) => {
                    step!(self.judge_error(role, request, text.clone()));
                    reason = text;
                    std::thread::sleep(self.lasting);
                }
            }
            if request != Request::Tell
                && let Reply::Failed(_) = step!(self.request(role, Request::Tell))
            {
                self.stop(role);
                return Ok(Ok(None));
            }
        }
        if request == Request::Tell {
            self.stop(role);
            return Ok(Ok(None));
        }
        found(Symptom::Stuck, role, format!("{request:?}: {reason}"))
    }

    fn stop(&mut self, role: Role) {
        self.joined[role as usize] = false;
        self.writing[role as usize] = false;
    }

    /// Whether this error is right.
    fn judge_error(&mut self, role: Role, request: Request, text: String) -> Step {
        let failed = self.injected().is_some_and(|it| it.failed().is_some());
        let with_fault = failed && self.target.is_some_and(|(of, _)| of == role);
        let is_cause = |(_, target): (Role, Target)| target.call.is_cause_in(target.errno, &text);
        let named = failed && self.target.is_some_and(is_cause);
        let may_be_refused = matches!(
            request,
            Request::Join { .. } | Request::CreateWriter | Request::DeleteWriter
        );
        let text_of_request = || format!("{request:?}: {text}");
        if text.starts_with("a sample came out of order") {
            return found(Symptom::Lost, role, text);
        }
        match (with_fault, may_be_refused, named) {
            (true, _, true) | (false, true, true) => {
                self.told.get_or_insert(text);
                Ok(Ok(()))
            }
            (true, _, false) => found(Symptom::Silent, role, text_of_request()),
            (false, true, false) => found(Symptom::Refused, role, text_of_request()),
            (false, false, _) => found(Symptom::Stops, role, text_of_request()),
        }
    }

    fn request(&mut self, role: Role, request: Request) -> Step<Reply> {
        match self.processes[role as usize].ask(request, self.deadline)? {
            Ok(reply) => Ok(Ok(reply)),
            Err(NoReply::Late) => found(Symptom::Hangs, role, format!("no reply to {request:?}")),
            Err(NoReply::Ended(how)) => found(Symptom::Crashes, role, how),
        }
    }

    fn within(&mut self, phase: Phase, steps: impl FnOnce(&mut Self) -> Step) -> Step {
        self.set_phase(Some(phase));
        let result = steps(self);
        self.set_phase(None);
        result
    }

    fn set_phase(&self, phase: Option<Phase>) {
        for injector in self.processes.iter().filter_map(Process::injector) {
            injector.set_phase(phase);
        }
    }

    fn members(&self) -> Vec<Role> {
        let roles = ROLES.into_iter();
        roles.filter(|role| self.joined[*role as usize]).collect()
    }

    /// The injector of the process with the fault.
    fn injected(&self) -> Option<&super::injector::Injector> {
        let (role, _) = self.target?;
        self.processes[role as usize].injector()
    }
}

fn describe(situations: &[(Role, Situation)]) -> String {
    let one = |(role, it): &(Role, Situation)| {
        format!(
            "{role:?} sees {} others, {} writers, {} readers, has written {}, got {:?}",
            it.others, it.writers, it.readers, it.written, it.got
        )
    };
    situations.iter().map(one).collect::<Vec<_>>().join("; ")
}

const SAMPLES: u64 = 3;
const POLL_EVERY: Duration = Duration::from_millis(2);
/// What has not happened by then does not happen: longer than a join may take, and than it
/// takes until a member is suspected.
const RUN_WITHIN: Duration = Duration::from_secs(15);
/// Descriptors are closed by threads of the product, some time after a view has begun.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);
