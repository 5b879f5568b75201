//! `processes history`: readers that join late get all that was written before, once, in order.
//!
//! ```text
//!   writers    write so many MiB, then at a pace
//!   keepers    with --kill donor: read and keep the topic, are killed, and are replaced
//!   joiners    come, get the history, and go: in order, or killed while they get it, or later
//! ```
//!
//! Each reader judges each sample as it takes it: the numbers of each writer rise by one from its
//! first sample on, over history, what was kept aside meanwhile, and the live samples. At the end the
//! writers say how much they have written, and each reader that is left has to have that. With `--kill
//! donor` a joiner that is getting history loses the participant that it may be getting it from, and
//! has to get it from another one.

mod fate;
mod member;
mod messages;
mod numbers;
mod options;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use spindle_dds_children::{
    ChildEvent, Children, describe_failure, private_directory, this_program,
};
use tempfile::TempDir;

use self::fate::{End, Fate};
pub(crate) use self::member::work;
pub(crate) use self::messages::Role;
use self::messages::{Line, Part, Request, Seen};
pub(crate) use self::options::Options;
use self::report::Outcome;
use crate::Failure;
use crate::soak::Draw;
use crate::workers::{self, Job};

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut run = Run::new(options)?;
    match run.run() {
        Ok(()) => {}
        // What was wrong has ended the run.
        Err(_) if !run.outcome.complaints.is_empty() => {}
        Err(Failure::Run(text)) => run.complain(text),
        Err(failure) => return Err(failure),
    }
    let outcome = run.into_outcome();
    outcome.print(options.json)?;
    outcome.judge()
}

/// A run under way.
struct Run<'a> {
    options: &'a Options,
    /// Dropped before the directory, which they use.
    children: Children,
    /// By number of the child.
    members: Vec<Member>,
    job: Job,
    keepers: u32,
    draw: Draw,
    /// The joiner during whose transfer a donor was killed.
    witness: Option<usize>,
    /// Samples of each writer that has stopped.
    written: BTreeMap<u32, u64>,
    started: Instant,
    history_ns: Vec<u64>,
    outcome: Outcome,
    _directory: TempDir,
}

/// A process.
struct Member {
    part: Part,
    state: State,
    fate: Fate,
    is_ready: bool,
    is_complete: bool,
    seen: Seen,
    /// Samples that it had when it had all history.
    at_history: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// It was told to leave.
    Leaving,
    /// It was killed.
    Killed,
    /// It has said that something is wrong.
    Failed,
    Ended,
}

impl Member {
    fn new(part: Part, fate: Fate) -> Self {
        Self {
            part,
            state: State::Running,
            fate,
            is_ready: false,
            is_complete: false,
            seen: Seen::default(),
            at_history: 0,
        }
    }

    fn is_running(&self) -> bool {
        self.state == State::Running
    }

    fn is_joiner(&self) -> bool {
        matches!(self.part, Part::Joiner(_))
    }

    fn is_writer(&self) -> bool {
        matches!(self.part, Part::Writer(_))
    }
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Result<Self, Failure> {
        let (durability, keepers) = (options.durability()?, options.keepers()?);
        let role = Role {
            part: Part::Keeper(0),
            durability,
        };
        let role = workers::Role::History(role);
        let size = options.size as usize;
        let directory = private_directory("spindle-history-")?;
        let job = Job {
            limit_ms: options.limit_ms,
            samples: options.history_samples(),
            directory: directory.path().to_owned(),
            hosts: options.fabric.hosts(directory.path())?,
            ..Job::new(role, 0, options.seconds, options.rate, size)?
        };
        let outcome = Outcome {
            durability: Some(durability),
            seed: options.seed,
            history_samples: job.samples,
            ..Outcome::default()
        };
        Ok(Self {
            options,
            children: Children::default(),
            members: Vec::new(),
            job,
            keepers,
            draw: Draw(options.seed),
            witness: None,
            written: BTreeMap::new(),
            started: Instant::now(),
            history_ns: Vec::new(),
            outcome,
            _directory: directory,
        })
    }

    fn run(&mut self) -> Result<(), Failure> {
        for keeper in 0..self.keepers {
            self.start(Part::Keeper(keeper), Fate::Stays)?;
        }
        let are_ready = |run: &Self| run.members.iter().all(|it| it.is_ready);
        self.follow_until("all keepers have joined", are_ready)?;
        for writer in 0..self.options.writers {
            self.start(Part::Writer(writer), Fate::Stays)?;
        }
        self.follow_until("all writers have written a history", are_ready)?;
        self.started = Instant::now();
        let seconds = Duration::try_from_secs_f64(self.options.seconds);
        let seconds = seconds.map_err(|error| Failure::Run(error.to_string()))?;
        while self.started.elapsed() < seconds || !self.has_seen_enough() {
            if self.started.elapsed() > seconds + TIME_LIMIT {
                let text = "too few joiners got their history in time";
                return Err(Failure::Run(text.to_owned()));
            }
            while self.count(|it| it.is_joiner() && it.is_running()) < self.options.joiners {
                self.start_joiner()?;
            }
            self.follow(Instant::now() + LOOK_EVERY)?;
        }
        self.outcome.seconds = self.started.elapsed().as_secs_f64();
        self.end()
    }

    /// Whether the run has shown what it is for.
    fn has_seen_enough(&self) -> bool {
        let outcome = &self.outcome;
        let kills = self.options.kill.is_none() || outcome.completed_after_kill > 0;
        let is_midway = self.witness.is_some();
        outcome.killed_midway > 0 && outcome.completed > 0 && kills && !is_midway
    }

    /// The writers stop; each reader that is left gets all; then all leave.
    fn end(&mut self) -> Result<(), Failure> {
        let writers = self.numbers(Member::is_writer);
        for child in &writers {
            self.ask(*child, &Request::Stop)?;
        }
        let all = writers.len();
        self.follow_until("the writers have stopped", |run| run.written.len() == all)?;
        let until = Request::Until(self.written.clone());
        let readers = self.numbers(|it| it.is_running() && !it.is_writer());
        for child in &readers {
            self.members[*child].fate = Fate::Stays;
            self.ask(*child, &until)?;
        }
        let are_complete = |run: &Self| readers.iter().all(|it| run.members[*it].is_complete);
        self.follow_until("the readers that are left have all samples", are_complete)?;
        for child in self.numbers(Member::is_running) {
            self.leave(child);
        }
        let have_ended = |run: &Self| {
            run.members
                .iter()
                .all(|it| matches!(it.state, State::Ended))
        };
        self.follow_until("all processes have ended", have_ended)
    }

    fn count(&self, what: impl Fn(&Member) -> bool) -> u32 {
        self.members.iter().filter(|it| what(it)).count() as u32
    }

    fn numbers(&self, what: impl Fn(&Member) -> bool) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        let members = members.filter(|(_, it)| what(it));
        members.map(|(number, _)| number).collect()
    }

    fn start_joiner(&mut self) -> Result<(), Failure> {
        let number = self.outcome.joiners as u32;
        let samples = self.job.samples * u64::from(self.options.writers);
        let fate = Fate::draw(number, samples, &mut self.draw);
        self.outcome.joiners += 1;
        self.start(Part::Joiner(number), fate)
    }

    fn start(&mut self, part: Part, fate: Fate) -> Result<(), Failure> {
        let workers::Role::History(role) = self.job.role else {
            return Err(Failure::Run("a job of another command".to_owned()));
        };
        let host = self.members.len() % self.job.hosts.len().max(1);
        let job = Job {
            role: workers::Role::History(Role { part, ..role }),
            host: self.job.hosts.get(host).cloned(),
            ..self.job.clone()
        };
        let arguments = vec!["worker".into(), serde_json::to_string(&job)?.into()];
        self.children.start_with_input(this_program(arguments)?)?;
        self.members.push(Member::new(part, fate));
        Ok(())
    }

    fn ask(&mut self, child: usize, request: &Request) -> Result<(), Failure> {
        let line = serde_json::to_string(request)?;
        // One that has ended is noticed by its end.
        let _ = self.children.write_line(child, &line);
        Ok(())
    }

    fn leave(&mut self, child: usize) {
        self.members[child].state = State::Leaving;
        self.children.close_input(child);
    }

    fn kill(&mut self, child: usize) -> Result<(), Failure> {
        self.members[child].state = State::Killed;
        Ok(self.children.signal(child, Signal::KILL)?)
    }

    /// Follows the processes until this holds, or something is wrong.
    fn follow_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        let deadline = Instant::now() + TIME_LIMIT;
        while !holds(self) {
            if Instant::now() >= deadline {
                let left = self.numbers(|it| it.state != State::Ended);
                let left = left.iter().map(|it| {
                    let Member { part, seen, .. } = &self.members[*it];
                    format!("{part}: {seen:?}")
                });
                let left = left.collect::<Vec<_>>().join(", ");
                let text = format!("gave up waiting until {what} ({left})");
                return Err(Failure::Run(text));
            }
            self.follow(deadline.min(Instant::now() + LOOK_EVERY))?;
        }
        Ok(())
    }

    /// Handles what the processes say until then; fails if something is wrong.
    fn follow(&mut self, until: Instant) -> Result<(), Failure> {
        while let Some((child, event)) = self.children.next_event(until) {
            match event {
                ChildEvent::Line(line) => self.handle_line(child, &line)?,
                ChildEvent::Closed => self.handle_end(child)?,
            }
            if !self.outcome.complaints.is_empty() {
                return Err(Failure::Run("the run was ended".to_owned()));
            }
        }
        Ok(())
    }

    fn complain(&mut self, what: String) {
        self.outcome.complaints.push(what);
    }

    fn handle_line(&mut self, child: usize, line: &str) -> Result<(), Failure> {
        let member = &mut self.members[child];
        let part = member.part;
        match serde_json::from_str(line) {
            Ok(Line::Ready) => member.is_ready = true,
            Ok(Line::Seen(seen)) => self.handle_seen(child, seen)?,
            Ok(Line::Complete(seen)) => {
                member.is_complete = true;
                self.handle_seen(child, seen)?;
            }
            Ok(Line::Written {
                samples,
                longest_ns,
            }) => {
                if let Part::Writer(number) = part {
                    self.written.insert(number, samples);
                }
                let longest_ms = longest_ns as f64 / 1e6;
                self.outcome.longest_write_ms = self.outcome.longest_write_ms.max(longest_ms);
            }
            Ok(Line::Wrong { lost, twice, text }) => {
                member.state = State::Failed;
                self.outcome.lost += lost;
                self.outcome.twice += twice;
                self.complain(format!("{part}: {text}"));
            }
            Ok(Line::Failed(_)) if member.state == State::Failed => {}
            Ok(Line::Failed(error)) => {
                member.state = State::Failed;
                self.complain(format!("{part}: {error}"));
            }
            Err(error) => self.complain(format!("{part} said {line:?}: {error}")),
        }
        Ok(())
    }

    fn handle_seen(&mut self, child: usize, seen: Seen) -> Result<(), Failure> {
        let member = &mut self.members[child];
        let before = std::mem::replace(&mut member.seen, seen);
        if member.state == State::Killed {
            // It was said before the signal came.
            return Ok(());
        }
        if seen.sample_lost > 0 {
            let (part, lost) = (member.part, seen.sample_lost);
            self.complain(format!("{part}: {lost} samples are SAMPLE_LOST"));
            return Ok(());
        }
        if seen.has_history && !before.has_history {
            member.at_history = seen.samples;
            self.outcome.completed += 1;
            if member.is_joiner() {
                self.history_ns.push(seen.history_ns);
            }
            if self.witness == Some(child) {
                self.witness = None;
                self.outcome.completed_after_kill += 1;
            }
        }
        self.kill_donor(child)?;
        let member = &self.members[child];
        match member.fate.due(&seen, member.at_history) {
            Some(end) if member.is_running() => self.end_joiner(child, end),
            _ => Ok(()),
        }
    }

    fn end_joiner(&mut self, child: usize, end: End) -> Result<(), Failure> {
        match end {
            End::Leave => {
                self.outcome.left += 1;
                self.leave(child);
                Ok(())
            }
            End::Kill => {
                match self.members[child].seen.has_history {
                    true => self.outcome.killed_later += 1,
                    false => self.outcome.killed_midway += 1,
                }
                self.kill(child)
            }
        }
    }

    /// Kills a keeper if this joiner is in the middle of its history, and lets another one start; not
    /// while the readers that are left are awaited.
    fn kill_donor(&mut self, child: usize) -> Result<(), Failure> {
        let all = self.job.samples * u64::from(self.options.writers);
        let member = &self.members[child];
        let is_midway = !member.seen.has_history
            && (all / 8..all / 4 * 3).contains(&member.seen.samples)
            && member.is_joiner()
            && member.is_running();
        let is_ending = !self.written.is_empty();
        if self.options.kill.is_none() || self.witness.is_some() || !is_midway || is_ending {
            return Ok(());
        }
        let donors = self.numbers(|it| {
            matches!(it.part, Part::Keeper(_)) && it.is_running() && it.seen.has_history
        });
        let Some(donor) = donors.first() else {
            return Ok(());
        };
        self.kill(*donor)?;
        self.outcome.donors_killed += 1;
        self.witness = Some(child);
        self.members[child].fate = Fate::Leaves;
        let keepers = self.count(|it| matches!(it.part, Part::Keeper(_)));
        self.start(Part::Keeper(keepers), Fate::Stays)
    }

    fn handle_end(&mut self, child: usize) -> Result<(), Failure> {
        let status = self.children.reap(child)?;
        let member = &mut self.members[child];
        let (part, before) = (
            member.part,
            std::mem::replace(&mut member.state, State::Ended),
        );
        match (before, describe_failure(status)) {
            (State::Killed | State::Failed, _) | (State::Leaving, None) => {}
            (_, Some(how)) => self.complain(format!("{part} {how}")),
            (_, None) => self.complain(format!("{part} has ended by itself")),
        }
        Ok(())
    }

    fn into_outcome(self) -> Outcome {
        let mut outcome = self.outcome;
        outcome.published = self.written.into_values().collect();
        outcome.taken = self.members.iter().map(|it| it.seen.samples).sum();
        outcome.set_history_ns(self.history_ns);
        outcome.held = outcome.complaints.is_empty();
        outcome
    }
}

/// Far more than anything takes.
const TIME_LIMIT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);
