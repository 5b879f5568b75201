//! One run: three participants, of which one has a system call that fails, and what became of
//! them.

mod logged;
mod outcome;

use std::path::Path;
use std::time::{Duration, Instant};

use spindle_dds_children::private_directory;

use self::logged::Logs;
pub(super) use self::outcome::{Ended, Finding, Outcome, Over, ROLES, Role, Symptom};

use super::injector::{Phase, Target};
use super::messages::{Job, Reply, Request, Situation};
use super::process::{NoReply, Process};
use crate::Failure;
use crate::hosts::Host;

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
    over: Over,
    target: Option<(Role, Target)>,
    /// How long calls fail.
    lasting: Duration,
    processes: Vec<Process>,
    /// Which participants are in the group, and have a writer.
    joined: [bool; ROLES_MAX],
    writing: [bool; ROLES_MAX],
    /// Why the one with the fault was refused or has stopped.
    told: Option<String>,
    deadline: Instant,
    /// Descriptors before C joined.
    descriptors: [Vec<String>; ROLES_MAX],
    logs: Logs,
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
            Over::Shm | Over::Logged => Vec::new(),
            Over::Tcp => {
                let addresses = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
                Host::all(&addresses, &[], below)?
            }
        };
        let logs = Logs::new(below);
        let start = |role: &Role| {
            let role = *role;
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
                log: (over == Over::Logged).then(|| logs.directory(role)),
                reported: match target {
                    None => ROLES.contains(&role),
                    Some(_) => target_of_role.is_some(),
                },
            };
            let target_of_role = target_of_role.map(|(_, target)| target);
            Process::start(&job, below, target_of_role, lasting)
        };
        let processes = over.roles().iter().map(start);
        Ok(Self {
            over,
            target,
            lasting,
            processes: processes.collect::<Result<_, _>>()?,
            joined: [false; ROLES_MAX],
            writing: [false; ROLES_MAX],
            told: None,
            deadline: Instant::now() + RUN_WITHIN + lasting,
            descriptors: Default::default(),
            logs,
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
        if self.over == Over::Logged {
            // It stays: then B may leave as the log of A fails, and the rest is a majority.
            step!(self.within(Phase::Return, Self::join));
            step!(self.exchange());
        }
        step!(self.within(Phase::End, |script| script.leave(Role::B)));
        step!(self.exchange());
        step!(self.within(Phase::End, |script| script.leave(Role::A)));
        for role in self.members() {
            step!(self.leave(role));
        }
        step!(self.end_processes());
        self.check_logs()
    }

    fn end_processes(&mut self) -> Step {
        for &role in self.over.roles() {
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

    /// A and B are a group at work, with D and E if there are logs.
    fn begin(&mut self) -> Step {
        let all = self.over.roles().iter();
        for role in all.copied().filter(|role| *role != Role::C) {
            let writer = matches!(role, Role::A | Role::B);
            step!(self.ask(role, Request::Join { writer }));
            self.joined[role as usize] = true;
            self.writing[role as usize] = writer;
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
        self.logs.leave(role);
        self.stop(role);
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
                        let may_come_later = reader.0 == Role::C && script.over != Over::Logged;
                        *next != writer.1.written || (*first != 0 && !may_come_later)
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

    /// Until all members have the same view, and are matched, and their logs know each other.
    fn await_view(&mut self) -> Step {
        step!(self.await_situation(Symptom::Hangs, |script, situations| {
            let members = situations.len();
            let writers = script.writing.iter().filter(|it| **it).count();
            situations.iter().all(|(role, it)| {
                it.others + 1 == members
                    && it.writers as usize == writers
                    && (!script.writing[*role as usize] || it.readers as usize == members)
            })
        }));
        self.await_roster()
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
                Reply::Done(situation) => {
                    self.logs.note(&situation);
                    return Ok(Ok(Some(situation)));
                }
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
        let named = failed && self.is_cause_in(&text);
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
            (false, false, true) if self.is_held_up_by_log(&text) => {
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
        let roles = self.over.roles().iter().copied();
        roles.filter(|role| self.joined[*role as usize]).collect()
    }

    /// Whether a text names what has failed: the errno, and where it is on a log its directory.
    fn is_cause_in(&self, text: &str) -> bool {
        self.target.is_some_and(|(role, target)| {
            let place = self.logs.directory(role);
            target.call.is_cause_in(target.errno, text)
                && (!target.place.is_on_log() || text.contains(&*place.to_string_lossy()))
        })
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

const ROLES_MAX: usize = 5;
const SAMPLES: u64 = 3;
const POLL_EVERY: Duration = Duration::from_millis(2);
/// What has not happened by then does not happen: longer than a join may take, and than it
/// takes until a member is suspected.
const RUN_WITHIN: Duration = Duration::from_secs(15);
/// Descriptors are closed by threads of the product, some time after a view has begun.
const SETTLE_WITHIN: Duration = Duration::from_secs(3);
