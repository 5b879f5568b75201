//! `spindle log compact`.

use std::io::{Write, stdout};

use serde::Serialize;

use super::failure::Failure;
use super::logs;
use super::options::CompactOptions;
use crate::top::names::clean;

/// A log that was compacted.
#[derive(Debug, Serialize)]
struct Compacted {
    domain: u32,
    topic: String,
    bytes_before: u64,
    bytes: u64,
    /// Only records below this position could be removed.
    settled: u64,
}

/// Prints the bytes before and after.
pub(super) fn run(options: &CompactOptions) -> Result<(), Failure> {
    let directory = options.directory.as_path();
    let places = logs::selected(directory, &options.selection)?;
    let mut out = stdout().lock();
    for place in places {
        let lock = logs::lock(&place)?;
        let report = lock.compact(&place).map_err(Failure::log(&place.path))?;
        let compacted = Compacted {
            domain: place.domain,
            topic: place.topic,
            bytes_before: report.bytes_before,
            bytes: report.bytes,
            settled: report.settled,
        };
        let text = match options.json {
            true => serde_json::to_string(&compacted)?,
            false => format!(
                "topic {} of domain {}: {} bytes before, {} now; what is from position {} on stays",
                clean(&compacted.topic),
                compacted.domain,
                compacted.bytes_before,
                compacted.bytes,
                compacted.settled
            ),
        };
        writeln!(out, "{text}").map_err(Failure::Output)?;
    }
    Ok(())
}
