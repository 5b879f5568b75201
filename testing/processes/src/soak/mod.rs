//! `processes soak`: many participants, many topics, and a random fault every few seconds.
//!
//! ```text
//!   participant 0 .. 11    each writes and reads all topics, at a pace
//!   main process           every few seconds draws a fault and a participant
//!                          follows what each says of itself, twice a second
//! ```
//!
//! A participant without a fault never loses its group, and hangs never; what is written RELIABLE comes
//! to each reader once, in order, and without a gap, but for the readers of a participant that was
//! stopped, which count what they missed as SAMPLE_LOST. The writers of such a participant lose
//! nothing. At the end each process holds what it held when it had just come: descriptors, threads,
//! memory.

mod fault;
mod member;
mod messages;
mod options;
mod outcome;
mod plot;
mod process;
mod surroundings;
mod tally;

use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use spindle_dds_children::{ChildEvent, Children, describe_failure, this_program};

pub(crate) use self::fault::Draw;
use self::fault::Fault;
pub(crate) use self::member::work;
use self::messages::{Job, Line, Request};
pub(crate) use self::options::Options;
use self::outcome::Outcome;
use self::process::{Process, Stage};
use self::surroundings::{Directory, Hog};
use crate::{Failure, clock};

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let drawn = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = options
        .seed
        .unwrap_or_else(|| drawn.map_or(1, |it| it.as_secs()));
    eprintln!("soak: seed {seed}");
    let mut soak = Soak::start(options, seed)?;
    soak.run()?;
    let outcome = Outcome::of(&soak, seed);
    if let Some(plot) = &options.plot {
        std::fs::write(plot, plot::draw(&soak))?;
    }
    outcome.print(options.json)?;
    outcome.judge()
}

/// A run under way. All times are CLOCK_MONOTONIC.
struct Soak<'a> {
    options: &'a Options,
    draw: Draw,
    /// Dropped before the directory, which they use.
    children: Children,
    directory: Directory,
    processes: Vec<Process>,
    /// Children that join and leave, and those that were killed.
    visitors: Vec<Visitor>,
    /// How many children were started.
    started: u32,
    started_at_ns: u64,
    /// Since when the directory is full, or the processors are busy.
    full_since_ns: Option<u64>,
    hog: Option<(Hog, u64)>,
    /// What was injected when, at which participant.
    faults: Vec<(u64, Fault, Option<usize>)>,
    /// Samples that were written and taken by processes that have ended.
    ended: (u64, u64),
    refusals: u64,
    /// From SIGCONT until the participant was back.
    back_after_ns: Vec<u64>,
    complaints: Vec<String>,
}

/// A child that does not stay.
struct Visitor {
    child: usize,
    leaves_at_ns: u64,
    was_killed: bool,
}

impl<'a> Soak<'a> {
    fn start(options: &'a Options, seed: u64) -> Result<Self, Failure> {
        let mut soak = Self {
            options,
            draw: Draw(seed),
            directory: Directory::make()?,
            children: Children::default(),
            processes: Vec::new(),
            visitors: Vec::new(),
            started: 0,
            started_at_ns: clock::monotonic_ns(),
            full_since_ns: None,
            hog: None,
            faults: Vec::new(),
            ended: (0, 0),
            refusals: 0,
            back_after_ns: Vec::new(),
            complaints: Vec::new(),
        };
        if !soak.directory.can_be_filled() {
            eprintln!("soak: no file system can be mounted: the directory is never full");
        }
        for _ in 0..options.processes {
            let child = soak.start_process()?;
            let process = Process::new(child, clock::monotonic_ns());
            soak.processes.push(process);
        }
        Ok(soak)
    }

    /// Starts one more process. Its number is that of its writers, too.
    fn start_process(&mut self) -> Result<usize, Failure> {
        let job = Job {
            parent: std::process::id(),
            writer: self.started,
            directory: self.directory.path().to_owned(),
            topics: self.options.topics,
            period_ns: (1e9 / self.options.rate.max(0.001)) as u64,
            limit_ms: self.options.limit_ms,
        };
        let arguments = vec!["soak-member".into(), serde_json::to_string(&job)?.into()];
        self.children.start_with_input(this_program(arguments)?)?;
        self.started += 1;
        Ok(job.writer as usize)
    }

    fn run(&mut self) -> Result<(), Failure> {
        let every = Duration::from_secs_f64(self.options.fault_every.max(0.1));
        let until = |soak: &Self| soak.processes.iter().all(|it| it.stage == Stage::Healthy);
        self.follow_until(Instant::now() + FORMED_WITHIN, until)?;
        let rest = Duration::from_secs_f64(self.options.rest.max(1.0));
        self.follow_until(Instant::now() + rest, |_| false)?;
        let over = Instant::now() + Duration::from_secs_f64(self.options.minutes * 60.0);
        while Instant::now() < over && self.complaints.len() < COMPLAINTS_MAX {
            self.inject()?;
            self.follow_until(Instant::now() + every, |_| false)?;
        }
        // All come to rest.
        let group = self.options.processes;
        let rests = |soak: &Self| {
            let is_whole = |it: &Process| it.stage == Stage::Healthy && it.state.members == group;
            soak.processes.iter().all(is_whole) && soak.full_since_ns.is_none()
        };
        self.follow_until(Instant::now() + FORMED_WITHIN, rests)?;
        if !rests(self) {
            let stages: Vec<_> = self
                .processes
                .iter()
                .map(|it| (it.stage, it.state))
                .collect();
            self.complain(&format!("the group is not whole at the end: {stages:?}"));
        }
        for _ in 0..LOOKS {
            self.follow_until(Instant::now() + rest / LOOKS, |_| false)?;
            self.processes.iter_mut().for_each(Process::note_last);
        }
        let uncounted = self.processes.iter().enumerate();
        let uncounted: Vec<_> = uncounted
            .filter_map(|(number, it)| Some(format!("{number}: {}", it.uncounted()?)))
            .collect();
        uncounted.iter().for_each(|what| self.complain(what));
        Ok(())
    }

    fn complain(&mut self, what: &str) {
        let second = self.note(what);
        self.complaints.push(format!("after {second:.1} s: {what}"));
    }

    /// Prints it, with the second.
    fn note(&self, what: &str) -> f64 {
        let second = self.seconds(clock::monotonic_ns());
        eprintln!("soak: after {second:.1} s: {what}");
        second
    }

    /// Since the beginning.
    fn seconds(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.started_at_ns) as f64 / 1e9
    }

    /// Follows the participants until the deadline, or until this holds.
    fn follow_until(
        &mut self,
        deadline: Instant,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<(), Failure> {
        while Instant::now() < deadline && !holds(self) {
            let look = deadline.min(Instant::now() + LOOK_EVERY);
            match self.children.next_event(look) {
                Some((child, ChildEvent::Line(line))) => self.handle_line(child, &line),
                Some((child, ChildEvent::Closed)) => self.handle_end(child)?,
                None => {}
            }
            self.go_on()?;
        }
        Ok(())
    }

    fn process_of(&self, child: usize) -> Option<usize> {
        self.processes.iter().position(|it| it.child == child)
    }

    fn handle_line(&mut self, child: usize, line: &str) {
        let (number, now_ns) = (self.process_of(child), clock::monotonic_ns());
        let name = number.map_or_else(|| "a visitor".to_owned(), |it| format!("participant {it}"));
        match (serde_json::from_str(line), number) {
            (Ok(Line::State(state)), Some(number)) => {
                let process = &mut self.processes[number];
                let before = process.stage;
                let wrong = process.handle_state(state, self.options.processes, now_ns);
                if let (Stage::Resumed { since_ns }, Stage::Healthy) = (before, process.stage) {
                    self.back_after_ns.push(now_ns - since_ns);
                }
                if let Some(wrong) = wrong {
                    self.complain(&format!("{name} {wrong}"));
                }
            }
            (Ok(Line::Done), Some(number)) => {
                let process = &mut self.processes[number];
                if let Stage::Busy { .. } = process.stage {
                    process.stage = Stage::Healthy;
                }
            }
            (Ok(Line::Out(why)), _) => {
                self.note(&format!("{name} was out: {why}"));
            }
            (Ok(Line::Refused(why)), _) => {
                self.refusals += 1;
                self.note(&format!("{name} was refused: {why}"));
            }
            (Ok(Line::Failed(why)), _) => self.complain(&format!("{name} failed: {why}")),
            (Ok(Line::State(_) | Line::Done | Line::Left(_)), _) => {}
            (Err(error), _) => self.complain(&format!("{name} said {line:?}: {error}")),
        }
    }

    fn handle_end(&mut self, child: usize) -> Result<(), Failure> {
        let status = self.children.reap(child)?;
        let failure = describe_failure(status);
        if let Some(at) = self.visitors.iter().position(|it| it.child == child) {
            let visitor = self.visitors.swap_remove(at);
            match failure {
                Some(how) if !visitor.was_killed => self.complain(&format!("a visitor {how}")),
                _ => {}
            }
            return Ok(());
        }
        let how = failure.unwrap_or_else(|| "has ended by itself".to_owned());
        if let Some(number) = self.process_of(child) {
            self.complain(&format!("participant {number} {how}"));
            self.replace(number)?;
        }
        Ok(())
    }

    /// Starts a process in the place of one that has ended.
    fn replace(&mut self, number: usize) -> Result<(), Failure> {
        let child = self.start_process()?;
        let process = &mut self.processes[number];
        self.ended.0 += process.state.written;
        self.ended.1 += process.state.taken;
        process.replace(child, clock::monotonic_ns());
        Ok(())
    }

    /// Ends what lasts for a while, and looks for what lasts too long.
    fn go_on(&mut self) -> Result<(), Failure> {
        let now_ns = clock::monotonic_ns();
        let lasts = |since_ns: u64| now_ns < since_ns + LASTS_NS;
        if self.full_since_ns.is_some_and(|since_ns| !lasts(since_ns)) {
            self.directory.empty()?;
            self.full_since_ns = None;
        }
        self.hog = self.hog.take().filter(|(_, since_ns)| lasts(*since_ns));
        for visitor in &self.visitors {
            if now_ns >= visitor.leaves_at_ns {
                self.children.close_input(visitor.child);
            }
        }
        for number in 0..self.processes.len() {
            let process = &mut self.processes[number];
            if let Stage::Stopped { until_ns } = process.stage
                && now_ns >= until_ns
            {
                process.stage = Stage::Resumed { since_ns: now_ns };
                self.children.signal(process.child, Signal::CONT)?;
            }
            let process = &self.processes[number];
            if let Some(what) = process.overdue(now_ns) {
                let child = process.child;
                self.complain(&format!("participant {number} {what}"));
                self.kill(child)?;
                self.replace(number)?;
            }
        }
        Ok(())
    }

    fn kill(&mut self, child: usize) -> Result<(), Failure> {
        self.visitors.push(Visitor {
            child,
            leaves_at_ns: u64::MAX,
            was_killed: true,
        });
        Ok(self.children.signal(child, Signal::KILL)?)
    }

    /// Draws a fault, and lets it happen.
    fn inject(&mut self) -> Result<(), Failure> {
        let fault = Fault::ALL[self.draw.below(Fault::ALL.len())];
        let healthy = self.processes.iter().enumerate();
        let healthy: Vec<usize> = healthy
            .filter(|(_, it)| it.stage == Stage::Healthy)
            .map(|(number, _)| number)
            .collect();
        let drawn = self.draw.below(healthy.len());
        let now_ns = clock::monotonic_ns();
        // Those that are left have a majority.
        let can_miss_one = healthy.len() > self.processes.len() / 2 + 1;
        let victim = healthy.get(drawn).copied();
        match (fault, victim) {
            (Fault::Stop, Some(victim)) if can_miss_one => self.stop(victim, now_ns)?,
            (Fault::Kill, Some(victim)) if can_miss_one => {
                self.kill(self.processes[victim].child)?;
                self.replace(victim)?;
            }
            (Fault::Endpoints, Some(victim)) => self.ask(victim, Request::ComeAndGo, now_ns)?,
            (Fault::Descriptors, Some(victim)) => {
                self.ask(victim, Request::WithoutDescriptors, now_ns)?;
            }
            (Fault::FullDirectory, _) if self.directory.can_be_filled() => {
                if self.full_since_ns.is_none() {
                    self.directory.fill()?;
                    self.full_since_ns = Some(now_ns);
                }
                self.visit(now_ns)?;
            }
            (Fault::Hog, _) => self.hog = Some((Hog::start(), now_ns)),
            (Fault::JoinAndLeave, _) => self.visit(now_ns)?,
            // There are too few to do without one.
            _ => return Ok(()),
        }
        let is_of_one = matches!(
            fault,
            Fault::Stop | Fault::Kill | Fault::Endpoints | Fault::Descriptors
        );
        let victim = victim.filter(|_| is_of_one);
        let of = victim.map_or_else(String::new, |it| format!(", participant {it}"));
        self.note(&format!("fault: {}{of}", fault.name()));
        self.faults.push((now_ns, fault, victim));
        Ok(())
    }

    fn stop(&mut self, victim: usize, now_ns: u64) -> Result<(), Failure> {
        let process = &mut self.processes[victim];
        let until_ns = now_ns + (self.options.stopped.max(0.0) * 1e9) as u64;
        process.stage = Stage::Stopped { until_ns };
        process.stops += 1;
        Ok(self.children.signal(process.child, Signal::STOP)?)
    }

    fn ask(&mut self, victim: usize, request: Request, now_ns: u64) -> Result<(), Failure> {
        let process = &mut self.processes[victim];
        process.stage = Stage::Busy { since_ns: now_ns };
        let line = serde_json::to_string(&request)?;
        Ok(self.children.write_line(process.child, &line)?)
    }

    /// One more participant joins, and leaves after a while.
    fn visit(&mut self, now_ns: u64) -> Result<(), Failure> {
        let child = self.start_process()?;
        self.visitors.push(Visitor {
            child,
            leaves_at_ns: now_ns + VISIT_NS,
            was_killed: false,
        });
        Ok(())
    }
}

const FORMED_WITHIN: Duration = Duration::from_secs(180);
/// At what the processes hold at the end.
const LOOKS: u32 = 10;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the directory is full, and the processors are busy.
const LASTS_NS: u64 = 3_000_000_000;
/// From the start of a visitor until it is told to leave.
const VISIT_NS: u64 = 6_000_000_000;
/// With more a run tells nothing new.
const COMPLAINTS_MAX: usize = 20;
