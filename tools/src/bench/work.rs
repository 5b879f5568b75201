//! A limit: writing and summing all bytes of samples without any middleware.

use std::process::Command;

use super::cell::Cell;
use super::contender::{Contender, Figures, Setup};
use super::options::{Measure, Read};
use super::spindle;

/// `spindle perf work`.
pub(super) struct Work;

impl Contender for Work {
    fn name(&self) -> &'static str {
        "work"
    }

    fn missing(&self) -> Option<String> {
        None
    }

    fn takes_part(&self, cell: &Cell) -> bool {
        cell.measure == Measure::Throughput && cell.read == Read::Sum
    }

    fn commands(&self, cell: &Cell, setup: &Setup) -> Result<Vec<Command>, String> {
        let mut command = spindle::perf("work")?;
        command.args(["--json", "--samples", &spindle::samples(cell, setup)]);
        spindle::add_sizes(&mut command, cell);
        Ok(vec![command])
    }

    fn figures(&self, _: &Cell, said: &[String]) -> Result<Figures, String> {
        spindle::figures(said)
    }
}
