//! `spindle top`: the participants of a domain on this host, live.
//!
//! - `snapshot`: the figures of the participants, by a [`Monitor`], and of their processes, from
//!   the kernel (`process`).
//! - `scene`: the rates between two snapshots; `blocked`: which participants wait, and for which
//!   others; `late`: which members are late; `mismatches`: which endpoints do not match;
//!   `transfers`: which history is being transferred; `logs`: the logs of topics. All are computed from the snapshots alone.
//! - `tables`, `problems`: what there is to show of a scene; `names`: names in few columns.
//! - `viewer`: what of it is on the screen, and the keys that change that; `screen`: that as a frame;
//!   `live`: the terminal. `page`: all of it as text. The alternative is the scene as JSON.
//!
//! [`Monitor`]: spindle_dds::monitor::Monitor

mod blocked;
mod late;
mod live;
mod logs;
mod mismatches;
pub(crate) mod names;
mod options;
mod page;
mod problems;
mod process;
mod scene;
mod screen;
mod snapshot;
mod tables;
#[cfg(test)]
mod tests;
mod transfers;
mod viewer;

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

pub(crate) use options::TopOptions;
use scene::Scene;
use snapshot::Sampler;

/// Reasons for the command to fail.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Dds(#[from] spindle_dds::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("cannot write: {0}")]
    Output(io::Error),
    #[error("the terminal cannot be used ({0}); --once and --json need none")]
    Terminal(io::Error),
    #[error("no thread for the snapshots: {0}")]
    Thread(io::Error),
    #[error("the thread that takes the snapshots has ended")]
    Snapshots,
}

pub(crate) fn run(options: &TopOptions) -> ExitCode {
    let done = match options.once || options.json || !io::stdout().is_terminal() {
        true => print(options),
        false => live::live(options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("spindle top: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a scene, or a line of JSON, after each interval; only one if `once`. Between pages there is
/// an empty line.
fn print(options: &TopOptions) -> Result<(), Failure> {
    let mut sampler = Sampler::new(options);
    let mut before = sampler.sample()?;
    let mut is_first = true;
    loop {
        std::thread::sleep(options.interval());
        let now = sampler.sample()?;
        let scene = Scene::of(&before, &now);
        let text = match (options.json, is_first) {
            (true, _) => serde_json::to_string(&scene)? + "\n",
            (false, true) => page::page(&scene),
            (false, false) => "\n".to_owned() + &page::page(&scene),
        };
        is_first = false;
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
