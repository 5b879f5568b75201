//! Starts the processes of a run, follows them, and brings their results together.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::Failure;
use crate::children::{Children, Event, complaint};
use crate::drill::{Course, Drill, Order};
use crate::fault::Fault;
use crate::hosts::{self, Place};
use crate::journal;
use crate::options::{Options, Rate, Role};
use crate::recording::{self, Frame};
use crate::report::{Fed, Line, Outcome, Seen, Shown, Summary, print_table};
use crate::verdict::{Evidence, Part, Verdict, Verdicts};

/// Runs as often as asked. True if every run kept what its profile promises.
pub(crate) fn run(options: &Options) -> Result<bool, Failure> {
    let frames = recording::read(&options.recording, options.frames)?;
    match options.fault.fault() {
        None => run_in_peace(options, &frames),
        Some(fault) => {
            let checked = fault.check(options.feeds, options.displays);
            checked.map_err(Failure::Run)?;
            run_with(fault, options, &frames)
        }
    }
}

fn run_in_peace(options: &Options, frames: &[Frame]) -> Result<bool, Failure> {
    let mut outcomes = Vec::new();
    for _ in 0..options.repeat {
        let Ended { fed, shown, .. } = Run::start(options, frames, None)?.finish()?;
        let fed: Vec<Fed> = fed.into_values().collect();
        let shown: Vec<Shown> = shown.into_values().collect();
        let outcome = Outcome::of(&fed, &shown);
        if options.repeat == 1 {
            print_table(&mut io::stdout().lock(), &shown)?;
        }
        writeln!(io::stdout(), "{}", serde_json::to_string(&outcome)?)?;
        outcomes.push(outcome);
    }
    if options.repeat > 1 {
        let summary = Summary::of(&outcomes);
        writeln!(io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(outcomes.iter().all(Outcome::kept))
}

fn run_with(fault: Fault, options: &Options, frames: &[Frame]) -> Result<bool, Failure> {
    let mut verdicts = Vec::new();
    for _ in 0..options.repeat {
        let ended = Run::start(options, frames, Some(fault))?.finish()?;
        let verdict = Verdict::of(fault.to_string(), &ended.evidence(fault)?);
        writeln!(io::stdout(), "{}", serde_json::to_string(&verdict)?)?;
        verdicts.push(verdict);
    }
    if options.repeat > 1 {
        let summary = Verdicts::of(&verdicts);
        writeln!(io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(verdicts.iter().all(|verdict| verdict.held))
}

/// One run under way.
struct Run<'a> {
    options: &'a Options,
    roles: Vec<Role>,
    children: Children,
    /// Where its participants meet, and nobody else; gone with the run.
    directory: TempDir,
    /// On which the processes are dealt out, if there are several hosts.
    places: Vec<Place>,
    drill: Option<Drill>,
    results: Vec<Option<Line>>,
    failures: Vec<(Role, String)>,
    frames: Vec<u64>,
    /// Processes that have not ended.
    open: usize,
    deadline: Instant,
    progress: ProgressBar,
}

/// One that has ended.
struct Ended {
    fed: BTreeMap<u16, Fed>,
    shown: BTreeMap<u16, Shown>,
    course: Course,
    directory: TempDir,
    displays: u16,
}

impl<'a> Run<'a> {
    fn start(
        options: &'a Options,
        frames: &[Frame],
        fault: Option<Fault>,
    ) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("flight-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let places = hosts::places(&options.hosts, &options.devices, directory.path())?;
        let displays = (0..options.displays).map(Role::Display);
        let roles: Vec<Role> = displays.chain((0..options.feeds).map(Role::Feed)).collect();
        let mut run = Self {
            options,
            drill: fault.map(|fault| Drill::new(fault, options.fault.at, &roles)),
            directory,
            places,
            results: Vec::new(),
            frames: Vec::new(),
            roles: Vec::new(),
            children: Children::new(),
            failures: Vec::new(),
            open: 0,
            deadline: Instant::now() + time_limit(options.rate, frames),
            progress: progress_bar(frames.len() as u64),
        };
        roles.into_iter().try_for_each(|role| run.begin(role))?;
        Ok(run)
    }

    /// Starts one more process.
    fn begin(&mut self, role: Role) -> io::Result<()> {
        let place = self.roles.len() % self.places.len().max(1);
        let place = self.places.get(place);
        let arguments = self.options.arguments(role, self.directory.path(), place);
        self.children.start(arguments)?;
        self.roles.push(role);
        self.results.push(None);
        self.frames.push(0);
        self.open += 1;
        Ok(())
    }

    /// Waits for all processes.
    fn finish(mut self) -> Result<Ended, Failure> {
        while self.open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, Event::Line(line))) => self.handle_line(number, &line),
                Some((number, Event::Closed)) => {
                    self.open -= 1;
                    self.handle_end(number)?;
                }
                None => {
                    self.handle_silence();
                    break;
                }
            }
            while let Some(order) = self.drill.as_mut().and_then(Drill::poll_order) {
                self.carry_out(order)?;
            }
        }
        self.progress.finish_and_clear();
        if !self.failures.is_empty() {
            return Err(Failure::Run(told(&self.failures, self.roles.len())));
        }
        let mut ended = Ended {
            fed: BTreeMap::new(),
            shown: BTreeMap::new(),
            course: self.drill.map(|drill| drill.course).unwrap_or_default(),
            directory: self.directory,
            displays: self.options.displays,
        };
        for (role, result) in self.roles.into_iter().zip(self.results) {
            match (role, result) {
                (Role::Feed(index), Some(Line::Fed(feed))) => {
                    ended.fed.insert(index, feed);
                }
                (Role::Display(index), Some(Line::Shown(display))) => {
                    ended.shown.insert(index, display);
                }
                _ => {}
            }
        }
        Ok(ended)
    }

    fn carry_out(&mut self, order: Order) -> Result<(), Failure> {
        let number = |role| self.roles.iter().position(|it| *it == role);
        let signal = |role, signal| match number(role) {
            Some(number) => self.children.signal(number, signal),
            None => Ok(()),
        };
        match order {
            Order::Kill(role) => signal(role, Signal::KILL)?,
            Order::Stop(role) => signal(role, Signal::STOP)?,
            Order::Continue(role) => signal(role, Signal::CONT)?,
            Order::Start(role) => self.begin(role)?,
            Order::End => {
                for (number, role) in self.roles.iter().enumerate() {
                    if matches!(role, Role::Feed(_)) {
                        self.children.end_input(number);
                    }
                }
            }
        }
        Ok(())
    }

    fn handle_line(&mut self, number: usize, line: &str) {
        let role = self.roles[number];
        match serde_json::from_str(line) {
            Ok(Line::Progress { frames, samples }) => {
                self.frames[number] = frames;
                self.progress.set_position(self.frames.iter().sum());
                self.handle_seen(
                    role,
                    Seen {
                        samples,
                        ..Seen::default()
                    },
                );
            }
            Ok(Line::Seen(seen)) => self.handle_seen(role, seen),
            Ok(Line::Failed { error }) => match &mut self.drill {
                Some(drill) if drill.expects_end(role) => drill.course.said = Some(error),
                _ => self.fail(number, error),
            },
            Ok(result) => self.results[number] = Some(result),
            Err(error) => self.fail(number, format!("said what makes no sense: {error}")),
        }
    }

    fn handle_seen(&mut self, role: Role, seen: Seen) {
        if let Some(drill) = &mut self.drill {
            drill.handle_seen(role, seen);
        }
    }

    fn handle_end(&mut self, number: usize) -> Result<(), Failure> {
        let status = self.children.reap(number)?;
        let role = self.roles[number];
        let told = self.failures.iter().any(|(failed, _)| *failed == role);
        let complaint = complaint(status);
        if let Some(drill) = &mut self.drill {
            drill.handle_end(role);
            if drill.expects_end(role) {
                if complaint.is_none() {
                    self.fail(number, "did not notice that it was out".to_owned());
                }
                return Ok(());
            }
        }
        match complaint {
            _ if told => {}
            Some(complaint) => self.fail(number, complaint),
            None if self.results[number].is_none() => {
                self.fail(number, "ended without a result".to_owned());
            }
            None => {}
        }
        Ok(())
    }

    fn handle_silence(&mut self) {
        if let (Some(drill), true) = (&self.drill, self.failures.is_empty()) {
            let text = format!(
                "gave up after {} s: {}",
                TIME_LIMIT.as_secs(),
                drill.missing()
            );
            return self.failures.push((self.roles[0], text));
        }
        for number in 0..self.roles.len() {
            let role = self.roles[number];
            let told = self.failures.iter().any(|(failed, _)| *failed == role);
            if self.results[number].is_none() && !told {
                self.fail(number, "did not end in time and was killed".to_owned());
            }
        }
    }

    /// Notes a failure; the other processes have a while left to notice it too.
    fn fail(&mut self, number: usize, error: String) {
        self.failures.push((self.roles[number], error));
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        if let Some(order) = self.drill.as_mut().and_then(Drill::give_up) {
            // What it cannot do is told by the deadline.
            let _ = self.carry_out(order);
        }
    }
}

impl Ended {
    /// All that is known of a run with a fault.
    fn evidence(mut self, fault: Fault) -> Result<Evidence, Failure> {
        if self.fed.values().any(|feed| !feed.reliable) {
            let text = "with a fault only a RELIABLE profile promises anything";
            return Err(Failure::Run(text.to_owned()));
        }
        let displays = self.displays + u16::from(fault == Fault::Join);
        let part = |display: u16| match fault {
            Fault::Kill(role) | Fault::Stop(role) if role == Role::Display(display) => Part::Gone,
            _ if display == self.displays => Part::Late,
            _ => Part::Stayed,
        };
        let mut journals = Vec::new();
        for display in 0..displays {
            let journal = journal::read(&journal::path(self.directory.path(), display))?;
            journals.push((part(display), journal));
        }
        self.shown
            .retain(|display, _| part(*display) == Part::Stayed);
        Ok(Evidence {
            journals,
            shown: self.shown.into_values().collect(),
            fed: self.fed,
            killed_feed: match fault {
                Fault::Kill(Role::Feed(feed)) => Some(feed),
                _ => None,
            },
            course: self.course,
        })
    }
}

/// One line an error, with the processes that report it unless all do.
fn told(failures: &[(Role, String)], all: usize) -> String {
    let mut errors: Vec<(&str, Vec<String>)> = Vec::new();
    for (role, error) in failures {
        match errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, roles)) => roles.push(role.to_string()),
            None => errors.push((error, vec![role.to_string()])),
        }
    }
    let lines = errors
        .iter()
        .map(|(error, roles)| match roles.len() == all {
            true => (*error).to_owned(),
            false => format!("{}: {error}", roles.join(", ")),
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Far more than a run takes: it only ends one that hangs.
fn time_limit(rate: Rate, frames: &[Frame]) -> Duration {
    let recorded_ns = match (frames.first(), frames.last()) {
        (Some(first), Some(last)) => (last.received_at_ns - first.received_at_ns).max(0),
        _ => 0,
    };
    match rate {
        Rate::Max => TIME_LIMIT,
        Rate::Times(times) => {
            TIME_LIMIT + Duration::from_secs_f64((recorded_ns as f64 * 2e-9 / times).min(1e9))
        }
    }
}

fn progress_bar(frames: u64) -> ProgressBar {
    let style = "{msg} {wide_bar} {pos}/{len} frames, {per_sec}, {eta} left";
    let target = match io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(frames), target).with_message("feeding");
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

const TIME_LIMIT: Duration = Duration::from_secs(180);
const GRACE: Duration = Duration::from_secs(15);
