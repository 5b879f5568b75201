//! `spindle top`: the participants of a domain on this host, live.
//!
//! - What they tell: `look`, by a [`Monitor`], with what the kernel says of their processes
//!   (`process`).
//! - What it means: `scene`, of two looks, one after the other; `holds`, who holds whom up.
//!   No look at the machine: all comes in.
//! - What is shown: `screen`, a frame of text; or the scene as JSON.
//!
//! [`Monitor`]: spindle_dds::monitor::Monitor

mod holds;
mod look;
mod options;
mod process;
mod scene;
mod screen;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

use look::{Look, Looker};
pub(crate) use options::TopOptions;
use scene::Scene;

/// Why nothing is shown.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("there is no terminal to draw on ({0}); --once and --json need none")]
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

/// A scene, or a line of JSON, after each interval; only one if `once`.
fn print(options: &TopOptions) -> Result<(), Failure> {
    let mut looker = Looker::new(options);
    let mut before = looker.look()?;
    loop {
        std::thread::sleep(options.interval());
        let now = looker.look()?;
        let scene = Scene::of(&before, &now);
        let text = match options.json {
            true => serde_json::to_string(&scene)? + "\n",
            false => page(&scene),
        };
        let written = io::stdout().write_all(text.as_bytes());
        match written.and_then(|()| io::stdout().flush()) {
            Ok(()) if options.once => return Ok(()),
            Ok(()) => before = now,
            // Whoever read has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(Failure::Output(error)),
        }
    }
}

/// As wide as it has to be, as long as it is.
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
    // First: what cannot be looked at is said on a terminal that is as it was.
    let mut looker = Looker::new(options);
    let first = looker.look()?;
    let mut terminal = ratatui::try_init().map_err(Failure::Terminal)?;
    let shown = show(options, &mut looker, first, &mut terminal);
    ratatui::restore();
    shown
}

fn show(
    options: &TopOptions,
    looker: &mut Looker,
    first: Look,
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
            let now = looker.look()?;
            scene = Scene::of(&before, &now);
            before = now;
            next = Instant::now() + options.interval();
        }
    }
}

/// Waits for a key or another size of the terminal, at most until `next`. Whether the user
/// has had enough.
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
