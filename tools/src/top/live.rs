//! The terminal: draws scenes until the user quits.
//!
//! A thread of its own takes the snapshots: participants that do not answer delay the next picture, and
//! no key. The terminal is given back when the user quits, at SIGTERM, SIGINT and SIGHUP, after an error,
//! and after a panic (by ratatui's hook).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Failure;
use super::options::TopOptions;
use super::scene::Scene;
use super::screen::draw;
use super::snapshot::{Sampler, Snapshot};
use super::viewer::{Reaction, Viewer};

/// Signals and scenes are looked for so often, and keys at once.
const LOOK_EVERY: Duration = Duration::from_millis(100);

type Sampled = Result<Scene, Failure>;

pub(super) fn live(options: &TopOptions) -> Result<(), Failure> {
    // Before the terminal is taken over, so that an error is readable.
    let mut sampler = Sampler::new(options);
    let first = sampler.sample()?;
    let ends = ending_signals().map_err(Failure::Terminal)?;
    let scene = Scene::of(&first, &first);
    let scenes = sample(sampler, first, options.interval())?;
    let shown = ratatui::try_init()
        .map_err(Failure::Terminal)
        .and_then(|mut terminal| show(scene, &scenes, &ends, &mut terminal));
    ratatui::restore();
    shown
}

/// Set when a signal asks this process to end. A second one ends it at once.
fn ending_signals() -> io::Result<Arc<AtomicBool>> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register_conditional_default(signal, ends.clone())?;
        signal_hook::flag::register(signal, ends.clone())?;
    }
    Ok(ends)
}

/// Starts the thread that takes a snapshot in each interval. It ends with the receiver.
fn sample(
    sampler: Sampler,
    first: Snapshot,
    interval: Duration,
) -> Result<Receiver<Sampled>, Failure> {
    let (sender, scenes) = mpsc::sync_channel(1);
    thread::Builder::new()
        .name("snapshots".to_owned())
        .spawn(move || take_snapshots(sampler, first, interval, &sender))
        .map_err(Failure::Thread)?;
    Ok(scenes)
}

fn take_snapshots(
    mut sampler: Sampler,
    mut before: Snapshot,
    interval: Duration,
    scenes: &SyncSender<Sampled>,
) {
    let mut next = Instant::now() + interval;
    loop {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let sampled = sampler.sample();
        next = Instant::now() + interval;
        let scene = sampled.map(|now| {
            let scene = Scene::of(&before, &now);
            before = now;
            scene
        });
        let is_last = scene.is_err();
        if scenes.send(scene).is_err() || is_last {
            return;
        }
    }
}

fn show(
    mut scene: Scene,
    scenes: &Receiver<Sampled>,
    ends: &AtomicBool,
    terminal: &mut DefaultTerminal,
) -> Result<(), Failure> {
    let mut viewer = Viewer::default();
    let mut is_drawn = false;
    while !ends.load(Ordering::Relaxed) {
        match scenes.try_recv() {
            Ok(next) => {
                let next = next?;
                if !viewer.is_held {
                    (scene, is_drawn) = (next, false);
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(Failure::Snapshots),
        }
        if !is_drawn {
            terminal
                .draw(|frame| draw(&scene, &mut viewer, frame.area(), frame.buffer_mut()))
                .map_err(Failure::Terminal)?;
            is_drawn = true;
        }
        match next_event().map_err(Failure::Terminal)? {
            None => {}
            Some(Event::Key(key)) => {
                if viewer.handle_key(key) == Reaction::Quit {
                    return Ok(());
                }
                is_drawn = false;
            }
            // A new size, most likely.
            Some(_) => is_drawn = false,
        }
    }
    Ok(())
}

/// A key, or a new size of the terminal, if one comes soon.
fn next_event() -> io::Result<Option<Event>> {
    match event::poll(LOOK_EVERY)? {
        true => event::read().map(Some),
        false => Ok(None),
    }
}
