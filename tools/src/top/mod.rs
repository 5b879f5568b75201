//! `spindle top`: the participants of a domain on this host, live.
//!
//! - `snapshot`: the figures of the participants, by a [`Monitor`], and of their processes, from
//!   the kernel (`process`).
//! - `scene`: the rates between two snapshots; `blocked`: which participants wait, and for which
//!   others; `late`: which members are late. All are computed from the snapshots alone.
//! - `screen`: a scene as a frame of text. The alternative is the scene as JSON.
//!
//! [`Monitor`]: spindle_dds::monitor::Monitor

mod blocked;
mod late;
mod options;
mod process;
mod scene;
mod screen;
mod snapshot;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

pub(crate) use options::TopOptions;
use scene::Scene;
use snapshot::{Sampler, Snapshot};

/// Reasons for the command to fail.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("no terminal ({0}); --once and --json need none")]
    Terminal(io::Error),
}

pub(crate) fn run(options: &TopOptions) -> ExitCode {
    let done = match options.once || options.json {
        true => print(options),
        false => live(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle top: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a scene, or a line of JSON, after each interval; only one if `once`.
fn print(options: &TopOptions) -> Result<(), Failure> {
    let mut sampler = Sampler::new(options);
    let mut before = sampler.sample()?;
    loop {
        std::thread::sleep(options.interval());
        let now = sampler.sample()?;
        let scene = Scene::of(&before, &now);
        let text = match options.json {
            true => serde_json::to_string(&scene)? + "\n",
            false => page(&scene),
        };
        let written = io::stdout().write_all(text.as_bytes());
        match written.and_then(|()| io::stdout().flush()) {
            Ok(()) if options.once => return Ok(()),
            Ok(()) => before = now,
            // The reader of the pipe has ended.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Output(error)),
        }
    }
}

/// A scene as text without a terminal.
fn page(scene: &Scene) -> String {
    let width = screen::width(scene);
    let area = Rect::new(0, 0, width, screen::height(scene));
    let mut buffer = Buffer::empty(area);
    screen::draw(scene, area, &mut buffer);
    let rows = buffer.content.chunks(usize::from(width));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned() + "\n"
    };
    rows.map(line).collect()
}

fn live(options: &TopOptions) -> Result<(), Failure> {
    // Before the terminal is taken over, so that an error is readable.
    let mut sampler = Sampler::new(options);
    let first = sampler.sample()?;
    let mut terminal = ratatui::try_init().map_err(Failure::Terminal)?;
    let shown = show(options, &mut sampler, first, &mut terminal);
    ratatui::restore();
    shown
}

fn show(
    options: &TopOptions,
    sampler: &mut Sampler,
    first: Snapshot,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let mut before = first;
    let mut scene = Scene::of(&before, &before);
    let mut next = Instant::now() + options.interval();
    loop {
        terminal
            .draw(|frame| screen::draw(&scene, frame.area(), frame.buffer_mut()))
            .map_err(Failure::Terminal)?;
        if is_over(next).map_err(Failure::Terminal)? {
            return Ok(());
        }
        if Instant::now() >= next {
            let now = sampler.sample()?;
            scene = Scene::of(&before, &now);
            before = now;
            next = Instant::now() + options.interval();
        }
    }
}

/// Waits for a key or a new size of the terminal, at most until `next`. True if the user quits.
fn is_over(next: Instant) -> io::Result<bool> {
    let left = next.saturating_duration_since(Instant::now());
    if !event::poll(left.max(Duration::from_millis(1)))? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else {
        return Ok(false);
    };
    let interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quits = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
    Ok(key.kind == KeyEventKind::Press && (quits || interrupt))
}
