//! A trial: one run of one contender.

use std::io;

use serde::Serialize;

use super::cell::Cell;
use super::contender::{Contender, Figures, Setup};
use crate::harness::cache_line::{Around, line_ns};
use crate::harness::load::{Load, Moment};
use crate::harness::processes;

/// The figures of a trial, and the load of the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Trial {
    #[serde(flatten)]
    pub(super) figures: Figures,
    #[serde(flatten)]
    pub(super) load: Load,
    /// Nanoseconds of a cache line between processors just before the trial, and just after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_ns: Option<Around>,
}

/// Runs a contender. The inner error is the contender's.
pub(super) fn run(
    contender: &dyn Contender,
    cell: &Cell,
    setup: &Setup,
) -> io::Result<Result<Trial, String>> {
    let line_before = line_ns();
    let before = Moment::now()?;
    let said = contender
        .commands(cell, setup)
        .and_then(|commands| processes::run(commands, setup.limit));
    remove_shared_memory(&setup.session);
    let load = Moment::now()?.since(&before);
    let line_ns = line_before.zip(line_ns());
    let figures = said.and_then(|said| contender.figures(cell, &said));
    Ok(figures.map(|figures| Trial {
        figures,
        load,
        line_ns,
    }))
}

/// Removes shared memory that killed programs have left. Its name contains the session.
fn remove_shared_memory(session: &str) {
    let prefix = format!("spindle-bench-{session}-");
    let files = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten();
    for file in files.flatten() {
        if file.file_name().to_string_lossy().starts_with(&prefix) {
            // Its owner may have removed it meanwhile.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

const SHARED_MEMORY: &str = "/dev/shm";
