//! A run of one contender.

use std::io;

use serde::Serialize;

use super::cell::Cell;
use super::contender::{Contender, Figures, Setup};
use crate::harness::cache_line::{Around, line_ns};
use crate::harness::load::{Load, Moment};
use crate::harness::processes;

/// What came out of it, and how busy the machine was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Trial {
    #[serde(flatten)]
    pub(super) figures: Figures,
    #[serde(flatten)]
    pub(super) load: Load,
    /// Nanoseconds that a cache line took between processors just before, and just after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line_ns: Option<Around>,
}

/// Runs it. An error of the contender is told, and is none of the runner's.
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

/// What programs name after their session, and leave if they are killed.
fn remove_shared_memory(session: &str) {
    let prefix = format!("spindle-bench-{session}-");
    let files = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten();
    for file in files.flatten() {
        if file.file_name().to_string_lossy().starts_with(&prefix) {
            // It may just have been removed by who made it.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

const SHARED_MEMORY: &str = "/dev/shm";
