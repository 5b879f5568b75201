//! `processes logged`: all participants of a PERSISTENT topic are killed at once, again and again.
//!
//! ```text
//!   a round   all start on the logs of the round before; write, and say what is acknowledged;
//!             are killed (SIGKILL) at a random moment after the first acknowledgement, now and then of
//!             their lives, which may be before the logs are open
//!   then      each sample that was ever acknowledged is in two logs at least, and logs of one
//!             generation begin with the same records
//!   then      half of the logs take no samples, and say so; with one more they do (on one host)
//!   at last   they run until each log has all that was acknowledged
//! ```
//!
//! With `spindle.log.ack=quorum` a sample is acknowledged when a majority of the logs has it on disk.
//! Before the first kill all logs have confirmed a roster with all of them: before that, one log alone
//! is a majority.

pub(crate) mod logs;
mod member;
mod options;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;
use spindle_dds_children::netns::{LinkDiscipline, Network, NetworkError};
use spindle_dds_children::{
    ChildEvent, Children, describe_failure, private_directory, this_program,
};
use tempfile::TempDir;

use self::logs::Log;
use self::member::Line;
pub(crate) use self::member::{Role, work};
pub(crate) use self::options::Options;
use crate::Failure;
use crate::hosts::Host;
use crate::soak::Draw;
use crate::workers::{self, Job};

/// What a run has shown.
#[derive(Debug, Default, Serialize)]
struct Outcome {
    seed: u64,
    /// Hosts; 0: the participants share memory.
    hosts: usize,
    /// Rounds in which something was acknowledged before the kill.
    rounds: u32,
    /// Those in which nothing was.
    rounds_without: u32,
    /// Samples that were acknowledged.
    acknowledged: u64,
    /// The least of a round in which something was.
    acknowledged_least: u64,
    /// Longest milliseconds from the start of a round to its first acknowledgement.
    first_ms_max: u64,
    /// Records of the longest log.
    records: usize,
    /// So many of the logs took no samples, and with one more they did; 0 between hosts.
    shut_with: u32,
    complaints: Vec<String>,
}

fn network(hosts: u32) -> Result<Network, NetworkError> {
    let link = LinkDiscipline::default();
    let mut network = Network::new(std::slice::from_ref(&link))?;
    for _ in 0..hosts {
        network.add_host(&link)?;
    }
    Ok(network)
}

/// A run under way.
struct Run<'a> {
    options: &'a Options,
    job: Job,
    draw: Draw,
    /// By writer: so many of its samples were acknowledged.
    acknowledged: BTreeMap<String, u64>,
    outcome: Outcome,
    /// Why writes failed.
    said: Vec<String>,
    directory: TempDir,
    /// The hosts, if they are namespaces.
    _network: Option<Network>,
}

/// How long the first and the last round may take, and each until its first acknowledgement.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// One of so many rounds is not waited for until something is acknowledged.
const EARLY_EVERY: usize = 8;
/// From one look at the logs to the next.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut run = Run::new(options)?;
    match run.run() {
        Err(Failure::Run(text)) => run.outcome.complaints.push(text),
        done => done?,
    }
    run.finish()
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Result<Self, Failure> {
        let role = workers::Role::Logged(Role { number: 0 });
        let directory = private_directory("spindle-logged-")?;
        let size = options.size as usize;
        let network = options.netns.map(network).transpose()?;
        let hosts = match &network {
            None => options.fabric.hosts(directory.path())?,
            Some(network) => Host::in_namespaces(network, directory.path())?,
        };
        let count = hosts.len();
        let job = Job {
            directory: directory.path().to_owned(),
            hosts,
            limit_ms: options.limit_ms,
            ..Job::new(role, options.participants as usize, 0.0, options.rate, size)?
        };
        Ok(Self {
            options,
            job,
            draw: Draw(options.seed),
            acknowledged: BTreeMap::new(),
            said: Vec::new(),
            outcome: Outcome {
                seed: options.seed,
                hosts: count,
                ..Outcome::default()
            },
            directory,
            _network: network,
        })
    }

    fn run(&mut self) -> Result<(), Failure> {
        let all = self.options.participants as usize;
        self.until("all logs have a roster of all", |_, logs| {
            logs.len() == all && logs.iter().all(|log| log.roster.len() == all)
        })?;
        while self.outcome.rounds < self.options.rounds {
            self.round()?;
        }
        // Between hosts, one that comes back looks for the members that it knew, and founds no group meanwhile.
        if self.job.hosts.is_empty() {
            self.open_by_majority()?;
        }
        let acknowledged = self.outcome.acknowledged;
        self.until("all logs have all that was acknowledged", |run, logs| {
            let has_all = |log: &Log| run.lacking(log).is_none();
            run.outcome.acknowledged > acknowledged && logs.len() == all && logs.iter().all(has_all)
        })
    }

    /// Starts half of the participants: their writers are told that the logs are shut. With one more these
    /// are open.
    fn open_by_majority(&mut self) -> Result<(), Failure> {
        let all = self.options.participants;
        let half = all / 2;
        let mut children = Children::default();
        self.start_some(&mut children, 0..half)?;
        let acknowledged = self.outcome.acknowledged;
        let why = format!("{half} of {all} logs of its roster are there");
        let deadline = Instant::now() + TIME_LIMIT;
        self.said.clear();
        while !self.said.iter().any(|text| text.contains(&why)) {
            self.follow(&mut children, Instant::now() + LOOK_EVERY, |_| false)?;
            if Instant::now() >= deadline {
                let said = self.said.join("; ");
                return Err(Failure::Run(format!("no write said {why}, but: {said}")));
            }
        }
        if self.outcome.acknowledged > acknowledged {
            return Err(Failure::Run(format!("acknowledged with {why}")));
        }
        self.start_some(&mut children, half..half + 1)?;
        while self.outcome.acknowledged == acknowledged {
            self.follow(&mut children, Instant::now() + LOOK_EVERY, |_| false)?;
            if Instant::now() >= deadline {
                let text = format!("{} of {all} logs do not open", half + 1);
                return Err(Failure::Run(text));
            }
        }
        self.kill(children, half + 1)?;
        self.check()?;
        self.outcome.shut_with = half;
        Ok(())
    }

    fn round(&mut self) -> Result<(), Failure> {
        let before = self.outcome.acknowledged;
        let mut children = self.start()?;
        if self.draw.below(EARLY_EVERY) > 0 {
            let begun = Instant::now();
            let has_any = |run: &Self| run.outcome.acknowledged > before;
            if !self.follow(&mut children, begun + TIME_LIMIT, has_any)? {
                let text = format!("nothing was acknowledged in {} s", TIME_LIMIT.as_secs());
                return Err(Failure::Run(text));
            }
            let first_ms = begun.elapsed().as_millis() as u64;
            self.outcome.first_ms_max = self.outcome.first_ms_max.max(first_ms);
        }
        let rest = Duration::from_millis(self.draw.below(self.options.round_ms as usize) as u64);
        self.follow(&mut children, Instant::now() + rest, |_| false)?;
        self.kill(children, self.options.participants)?;
        self.check()?;
        let outcome = &mut self.outcome;
        match outcome.acknowledged - before {
            0 => outcome.rounds_without += 1,
            acknowledged => {
                let is_first = outcome.rounds == 0;
                let least = if is_first {
                    u64::MAX
                } else {
                    outcome.acknowledged_least
                };
                outcome.acknowledged_least = least.min(acknowledged);
                outcome.rounds += 1;
            }
        }
        Ok(())
    }

    /// Runs all until this holds, as the logs show, and kills them.
    fn until(&mut self, what: &str, holds: impl Fn(&Self, &[Log]) -> bool) -> Result<(), Failure> {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            let mut children = self.start()?;
            // Logs that are written meanwhile are not looked at: each look ends the processes.
            self.follow(&mut children, Instant::now() + LOOK_EVERY * 10, |_| false)?;
            self.kill(children, self.options.participants)?;
            let logs = self.check()?;
            if holds(self, &logs) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Failure::Run(format!("gave up waiting until {what}")));
            }
        }
    }

    fn start(&self) -> Result<Children, Failure> {
        let mut children = Children::default();
        self.start_some(&mut children, 0..self.options.participants)?;
        Ok(children)
    }

    fn start_some(&self, children: &mut Children, numbers: Range<u32>) -> Result<(), Failure> {
        let hosts = &self.job.hosts;
        for number in numbers {
            let host = number as usize % hosts.len().max(1);
            let job = Job {
                role: workers::Role::Logged(Role { number }),
                host: hosts.get(host).cloned(),
                ..self.job.clone()
            };
            let arguments = vec!["worker".into(), serde_json::to_string(&job)?.into()];
            children.start(this_program(arguments)?)?;
        }
        Ok(())
    }

    /// Notes what the processes say until then, or until this holds. Returns whether it does.
    fn follow(
        &mut self,
        children: &mut Children,
        until: Instant,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, Failure> {
        while let Some((child, event)) = children.next_event(until) {
            match event {
                ChildEvent::Line(line) => self.handle_line(child, &line)?,
                ChildEvent::Closed => {
                    let status = children.reap(child)?;
                    let text =
                        describe_failure(status).unwrap_or_else(|| "it has ended".to_owned());
                    return Err(Failure::Run(format!("participant {child}: {text}")));
                }
            }
            if holds(self) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn handle_line(&mut self, child: usize, line: &str) -> Result<(), Failure> {
        match serde_json::from_str(line)? {
            Line::Acknowledged { writer, samples } => {
                let known = self.acknowledged.entry(writer).or_default();
                self.outcome.acknowledged += samples - *known;
                *known = samples;
                Ok(())
            }
            Line::Shut(why) => {
                self.said.push(why);
                self.said.dedup();
                Ok(())
            }
            Line::Failed(text) => Err(Failure::Run(format!("participant {child}: {text}"))),
        }
    }

    /// Kills all processes at once. What they have said before counts.
    fn kill(&mut self, mut children: Children, all: u32) -> Result<(), Failure> {
        let all = all as usize;
        for child in 0..all {
            children.signal(child, Signal::KILL)?;
        }
        let deadline = Instant::now() + TIME_LIMIT;
        let mut left = all;
        while left > 0 {
            match children.next_event(deadline) {
                Some((child, ChildEvent::Line(line))) => self.handle_line(child, &line)?,
                Some((child, ChildEvent::Closed)) => {
                    children.reap(child)?;
                    left -= 1;
                }
                None => return Err(Failure::Run("a killed process does not end".to_owned())),
            }
        }
        Ok(())
    }

    /// Reads all logs, and judges them.
    fn check(&mut self) -> Result<Vec<Log>, Failure> {
        let mut logs = Vec::new();
        for number in 0..self.options.participants {
            logs.extend(Log::read(&self.log_directory(number), number)?);
        }
        self.outcome.records = logs.iter().map(Log::len).max().unwrap_or(0);
        for one in &logs {
            if let Some(other) = logs.iter().find(|other| !one.agrees_with(other)) {
                let (one, other) = (one.number, other.number);
                let text = format!("logs {one} and {other} have different records");
                return Err(Failure::Run(text));
            }
        }
        // Before all have met, one log may be a majority.
        let all = self.options.participants as usize;
        let has_begun = logs.len() == all && logs.iter().all(|log| log.roster.len() > 1);
        let needed = if has_begun { 2 } else { 1 };
        for (writer, samples) in &self.acknowledged {
            let having = logs.iter().filter(|log| log.samples_of(writer) >= *samples);
            let count = having.count();
            if count < needed {
                return Err(Failure::Run(format!(
                    "sample {samples} of writer {writer} was acknowledged, and {count} logs have it"
                )));
            }
        }
        Ok(logs)
    }

    /// The first writer of which a log lacks a sample that was acknowledged.
    fn lacking(&self, log: &Log) -> Option<&str> {
        let mut writers = self.acknowledged.iter();
        let lacking = writers.find(|(writer, samples)| log.samples_of(writer) < **samples);
        lacking.map(|(writer, _)| &**writer)
    }

    fn log_directory(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("log-{number}"))
    }

    fn finish(self) -> Result<(), Failure> {
        let outcome = &self.outcome;
        if self.options.json {
            println!("{}", serde_json::to_string(outcome)?);
        } else {
            println!(
                "{} hosts, {} rounds (and {} without an acknowledgement): {} samples acknowledged, {} or more \
                 in a round, the first after {} ms at most; {} records in the longest log, seed {}",
                outcome.hosts.max(1),
                outcome.rounds,
                outcome.rounds_without,
                outcome.acknowledged,
                outcome.acknowledged_least,
                outcome.first_ms_max,
                outcome.records,
                outcome.seed,
            );
        }
        match &outcome.complaints[..] {
            [] => Ok(()),
            complaints => Err(Failure::Run(complaints.join("; "))),
        }
    }
}
