//! Starts the processes of a run, follows them, and brings their results together.

use std::fs::Permissions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tempfile::TempDir;

use crate::Failure;
use crate::children::{Children, Event, complaint};
use crate::options::{Options, Rate, Role};
use crate::recording::{self, Frame};
use crate::report::{Fed, Line, Outcome, Shown, Summary, print_table};

/// Runs as often as asked. True if every run kept what its profile promises.
pub(crate) fn run(options: &Options) -> Result<bool, Failure> {
    let frames = recording::read(&options.recording, options.frames)?;
    let mut outcomes = Vec::new();
    for _ in 0..options.repeat {
        let (fed, shown) = Run::start(options, &frames)?.finish()?;
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

/// One run under way.
struct Run {
    roles: Vec<Role>,
    children: Children,
    /// Where its participants meet, and nobody else; gone with the run.
    _directory: TempDir,
    results: Vec<Option<Line>>,
    failures: Vec<(Role, String)>,
    frames: Vec<u64>,
    deadline: Instant,
    progress: ProgressBar,
}

impl Run {
    fn start(options: &Options, frames: &[Frame]) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("flight-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let displays = (0..options.displays).map(Role::Display);
        let roles: Vec<Role> = displays.chain((0..options.feeds).map(Role::Feed)).collect();
        let mut children = Children::new();
        for role in &roles {
            children.start(options.arguments(*role, directory.path()))?;
        }
        Ok(Self {
            _directory: directory,
            results: roles.iter().map(|_| None).collect(),
            frames: vec![0; roles.len()],
            roles,
            children,
            failures: Vec::new(),
            deadline: Instant::now() + time_limit(options.rate, frames),
            progress: progress_bar(frames.len() as u64),
        })
    }

    /// Waits for all processes.
    fn finish(mut self) -> Result<(Vec<Fed>, Vec<Shown>), Failure> {
        let mut open = self.roles.len();
        while open > 0 {
            match self.children.next_event(self.deadline) {
                Some((number, Event::Line(line))) => self.handle_line(number, &line),
                Some((number, Event::Closed)) => {
                    open -= 1;
                    self.handle_end(number)?;
                }
                None => {
                    self.handle_silence();
                    break;
                }
            }
        }
        self.progress.finish_and_clear();
        if !self.failures.is_empty() {
            return Err(Failure::Run(told(&self.failures, self.roles.len())));
        }
        let mut fed = Vec::new();
        let mut shown = Vec::new();
        for result in self.results.into_iter().flatten() {
            match result {
                Line::Fed(feed) => fed.push(feed),
                Line::Shown(display) => shown.push(display),
                Line::Progress { .. } | Line::Failed { .. } => {}
            }
        }
        Ok((fed, shown))
    }

    fn handle_line(&mut self, number: usize, line: &str) {
        match serde_json::from_str(line) {
            Ok(Line::Progress { frames }) => {
                self.frames[number] = frames;
                self.progress.set_position(self.frames.iter().sum());
            }
            Ok(Line::Failed { error }) => self.fail(number, error),
            Ok(result) => self.results[number] = Some(result),
            Err(error) => self.fail(number, format!("said what makes no sense: {error}")),
        }
    }

    fn handle_end(&mut self, number: usize) -> Result<(), Failure> {
        let status = self.children.reap(number)?;
        let told = self
            .failures
            .iter()
            .any(|(role, _)| *role == self.roles[number]);
        match complaint(status) {
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
