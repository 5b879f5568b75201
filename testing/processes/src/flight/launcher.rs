//! Starts the processes of a run, follows them, and judges what they report.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::process::Signal;
use spindle_dds_children::{
    ChildEvent, Children, describe_failure, group_by_error, private_directory, this_program,
};
use tempfile::TempDir;

use super::fault::{Fault, FaultOptions};
use super::fault_sequence::{Action, FaultRecord, FaultSequence};
use super::journal;
use super::options::{Options, Rate, Role};
use super::recording::{self, Frame};
use super::report::{
    DisplayProgress, DisplayReport, FeedReport, Line, Outcome, Summary, print_table,
};
use super::verdict::{Evidence, Presence, Verdict, Verdicts};
use crate::hosts::Host;
use crate::{Failure, clock};

/// Runs as often as asked. True if every run kept what its profile promises.
pub(super) fn run(options: &Options) -> Result<bool, Failure> {
    let frames = recording::read(&options.recording, options.frames)?;
    match options.fault.fault() {
        None => run_without_fault(options, &frames),
        Some(fault) => {
            let checked = fault.check(options.feeds, options.displays);
            checked.map_err(Failure::Run)?;
            run_with_fault(fault, options, &frames)
        }
    }
}

fn run_without_fault(options: &Options, frames: &[Frame]) -> Result<bool, Failure> {
    let mut outcomes = Vec::new();
    for _ in 0..options.repeat {
        let EndedRun { fed, shown, .. } = Run::start(options, frames, None)?.finish()?;
        let fed: Vec<FeedReport> = fed.into_values().collect();
        let shown: Vec<DisplayReport> = shown.into_values().collect();
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
    Ok(outcomes.iter().all(Outcome::is_kept))
}

fn run_with_fault(fault: Fault, options: &Options, frames: &[Frame]) -> Result<bool, Failure> {
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

/// A run under way. Processes are numbered in the order of starting.
struct Run<'a> {
    options: &'a Options,
    roles: Vec<Role>,
    children: Children,
    /// Where its participants meet, and no others; removed at the end of the run.
    directory: TempDir,
    /// The hosts among which the processes are dealt out, if there are several.
    hosts: Vec<Host>,
    sequence: Option<FaultSequence>,
    /// For each process, the line with its report.
    reports: Vec<Option<Line>>,
    failures: Vec<(Role, String)>,
    /// For each process, the frames that it has processed.
    frames: Vec<u64>,
    /// Which processes have ended.
    ended: Vec<bool>,
    /// How many have not.
    open: usize,
    deadline: Instant,
    progress: ProgressBar,
}

/// A run that has ended.
struct EndedRun {
    fed: BTreeMap<u16, FeedReport>,
    shown: BTreeMap<u16, DisplayReport>,
    record: FaultRecord,
    directory: TempDir,
    displays: u16,
}

impl<'a> Run<'a> {
    fn start(
        options: &'a Options,
        frames: &[Frame],
        fault: Option<Fault>,
    ) -> Result<Self, Failure> {
        let directory = private_directory("flight-")?;
        let hosts = Host::all(&options.hosts, &options.devices, directory.path())?;
        let displays = (0..options.displays).map(Role::Display);
        let roles: Vec<Role> = displays.chain((0..options.feeds).map(Role::Feed)).collect();
        let mut run = Self {
            options,
            sequence: fault.map(|fault| {
                let FaultOptions { at, stopped_ms, .. } = options.fault;
                FaultSequence::new(fault, at, stopped_ms, &roles)
            }),
            directory,
            hosts,
            reports: Vec::new(),
            frames: Vec::new(),
            ended: Vec::new(),
            roles: Vec::new(),
            children: Children::default(),
            failures: Vec::new(),
            open: 0,
            deadline: Instant::now() + time_limit(options.rate, frames),
            progress: progress_bar(frames.len() as u64),
        };
        roles
            .into_iter()
            .try_for_each(|role| run.start_process(role))?;
        Ok(run)
    }

    /// Starts one more process.
    fn start_process(&mut self, role: Role) -> io::Result<()> {
        let host = self.roles.len() % self.hosts.len().max(1);
        let host = self.hosts.get(host);
        let arguments = self.options.arguments(role, self.directory.path(), host);
        self.children.start_with_input(this_program(arguments)?)?;
        self.roles.push(role);
        self.reports.push(None);
        self.frames.push(0);
        self.ended.push(false);
        self.open += 1;
        Ok(())
    }

    /// Waits for all processes.
    fn finish(mut self) -> Result<EndedRun, Failure> {
        while self.open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, ChildEvent::Line(line))) => self.handle_line(number, &line),
                Some((number, ChildEvent::Closed)) => {
                    self.open -= 1;
                    self.handle_end(number)?;
                }
                None => {
                    self.handle_time_limit();
                    break;
                }
            }
            while let Some(action) = self.next_action() {
                self.carry_out(action)?;
            }
        }
        self.progress.finish_and_clear();
        if !self.failures.is_empty() {
            let errors = group_by_error(&self.failures, self.roles.len());
            return Err(Failure::Run(errors));
        }
        let mut ended = EndedRun {
            fed: BTreeMap::new(),
            shown: BTreeMap::new(),
            record: self.sequence.map(|it| it.record).unwrap_or_default(),
            directory: self.directory,
            displays: self.options.displays,
        };
        for (role, report) in self.roles.into_iter().zip(self.reports) {
            match (role, report) {
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

    fn next_action(&mut self) -> Option<Action> {
        self.sequence.as_mut()?.poll_action()
    }

    fn carry_out(&mut self, action: Action) -> Result<(), Failure> {
        let number = |role| self.roles.iter().position(|it| *it == role);
        let signal = |role, signal| match number(role) {
            Some(number) => self.children.signal(number, signal),
            None => Ok(()),
        };
        match action {
            Action::Kill(role) => signal(role, Signal::KILL)?,
            Action::Stop(role) => signal(role, Signal::STOP)?,
            Action::Continue(role) => signal(role, Signal::CONT)?,
            Action::Start(role) => self.start_process(role)?,
            Action::EndFeeds => {
                for (number, role) in self.roles.iter().enumerate() {
                    if matches!(role, Role::Feed(_)) {
                        self.children.close_input(number);
                    }
                }
            }
        }
        Ok(())
    }

    fn handle_line(&mut self, number: usize, line: &str) {
        let role = self.roles[number];
        match serde_json::from_str(line) {
            Ok(Line::Progress(feed)) => {
                self.frames[number] = feed.frames;
                self.progress.set_position(self.frames.iter().sum());
                let progress = DisplayProgress {
                    samples: feed.samples,
                    returns: feed.returns,
                    has_history: true,
                    ..DisplayProgress::default()
                };
                self.handle_progress(role, progress);
            }
            Ok(Line::Seen(progress)) => self.handle_progress(role, progress),
            Ok(Line::Failed { error }) => self.fail(number, error),
            Ok(report) => self.reports[number] = Some(report),
            Err(error) => self.fail(number, format!("printed what is no report: {error}")),
        }
    }

    fn handle_progress(&mut self, role: Role, progress: DisplayProgress) {
        if let Some(sequence) = &mut self.sequence {
            sequence.handle_progress(role, progress);
        }
    }

    fn handle_end(&mut self, number: usize) -> Result<(), Failure> {
        let status = self.children.reap(number)?;
        let role = self.roles[number];
        let failure = describe_failure(status);
        self.ended[number] = true;
        if self.have_feeds_ended() {
            // The displays wait for that.
            (0..self.roles.len()).for_each(|number| self.children.close_input(number));
        }
        let sequence = self.sequence.as_ref();
        if sequence.is_some_and(|sequence| sequence.expects_end(role)) {
            return Ok(());
        }
        match failure {
            _ if self.has_failed(role) => {}
            Some(failure) => self.fail(number, failure),
            None if self.reports[number].is_none() => {
                self.fail(number, "ended without a report".to_owned());
            }
            None => {}
        }
        Ok(())
    }

    fn have_feeds_ended(&self) -> bool {
        let mut processes = self.roles.iter().zip(&self.ended);
        processes.all(|(role, ended)| *ended || matches!(role, Role::Display(_)))
    }

    fn handle_time_limit(&mut self) {
        if let (Some(sequence), true) = (&self.sequence, self.failures.is_empty()) {
            let text = format!(
                "gave up after {} s: {}",
                TIME_LIMIT.as_secs(),
                sequence.describe_stage()
            );
            return self.failures.push((self.roles[0], text));
        }
        for number in 0..self.roles.len() {
            if self.reports[number].is_none() && !self.has_failed(self.roles[number]) {
                self.fail(number, "did not end in time and was killed".to_owned());
            }
        }
    }

    fn has_failed(&self, role: Role) -> bool {
        self.failures.iter().any(|(failed, _)| *failed == role)
    }

    /// Notes a failure. The other processes have a while left to notice it too.
    fn fail(&mut self, number: usize, error: String) {
        self.failures.push((self.roles[number], error));
        self.deadline = self.deadline.min(Instant::now() + GRACE);
        if let Some(action) = self.sequence.as_mut().and_then(FaultSequence::end) {
            // A process that this does not reach is killed at the deadline.
            let _ = self.carry_out(action);
        }
    }
}

impl EndedRun {
    /// What the verdict on a run with a fault rests on.
    fn evidence(self, fault: Fault) -> Result<Evidence, Failure> {
        if self.fed.values().any(|feed| !feed.reliable) {
            let text = "a run with a fault needs a RELIABLE profile: others promise nothing";
            return Err(Failure::Run(text.to_owned()));
        }
        let displays = self.displays + u16::from(fault == Fault::Join);
        let presence = |display: u16| match fault {
            Fault::Kill(role) if role == Role::Display(display) => Presence::Gone,
            Fault::Stop(role) if role == Role::Display(display) => Presence::Returned,
            _ if display == self.displays => Presence::Late,
            _ => Presence::Stayed,
        };
        let mut journals = Vec::new();
        for display in 0..displays {
            let journal = journal::read(&journal::path(self.directory.path(), display))?;
            journals.push((presence(display), journal));
        }
        let part = |part| {
            let of_part = self.shown.iter().filter(|(it, _)| presence(**it) == part);
            of_part
                .map(|(_, report)| report.clone())
                .collect::<Vec<_>>()
        };
        Ok(Evidence {
            journals,
            kept: self.fed.values().next().map(|feed| feed.kept),
            returned: part(Presence::Returned).pop(),
            late: part(Presence::Late).pop(),
            shown: part(Presence::Stayed),
            fed: self.fed,
            killed_feed: match fault {
                Fault::Kill(Role::Feed(feed)) => Some(feed),
                _ => None,
            },
            stopped_feed: match fault {
                Fault::Stop(Role::Feed(feed)) => Some(feed),
                _ => None,
            },
            record: self.record,
            ahead_ns: clock::realtime_ahead_ns(),
        })
    }
}

/// Far more than a run takes, to end one that hangs.
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
/// For the others to notice a failure.
const GRACE: Duration = Duration::from_secs(15);
