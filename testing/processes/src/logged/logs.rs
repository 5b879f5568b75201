//! What the logs of all participants have, read while no participant writes them.

use std::collections::BTreeMap;
use std::path::Path;

use spindle_dds::log::{LogReader, LoggedRecord};

use crate::Failure;

/// The records of one log.
pub(super) struct Log {
    pub(super) number: u32,
    records: Vec<LoggedRecord>,
    /// Of each writer: so many samples, without a gap.
    samples: BTreeMap<String, u64>,
    /// Logs of the roster that it knows to be confirmed.
    pub(super) roster: usize,
}

impl Log {
    /// `None`: there is none yet.
    pub(super) fn read(directory: &Path, number: u32) -> Result<Option<Self>, Failure> {
        let Ok(places) = spindle_dds::log::log_places(directory) else {
            return Ok(None);
        };
        let Some(place) = places.first() else {
            return Ok(None);
        };
        let failed = |error| Failure::Run(format!("log {number}: {error}"));
        let mut log = match LogReader::open(&place.path) {
            Ok(log) => log,
            // It was being created.
            Err(_) if !place.path.join("superblock").exists() => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let roster = log.state().confirmed.as_ref().map_or(0, |it| it.logs.len());
        let records = log
            .records(0)
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        let mut samples: BTreeMap<String, u64> = BTreeMap::new();
        for logged in &records {
            let cursor = logged.record.cursor();
            let known = samples.entry(name(&cursor.writer)).or_default();
            if cursor.sequence != *known + 1 {
                return Err(Failure::Run(format!(
                    "log {number} has sample {} of a writer after {known}",
                    cursor.sequence
                )));
            }
            *known = cursor.sequence;
        }
        Ok(Some(Self {
            number,
            records,
            samples,
            roster,
        }))
    }

    /// How many samples it has of a writer.
    pub(super) fn samples_of(&self, writer: &str) -> u64 {
        self.samples.get(writer).copied().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether one of both begins with all that the other one has of the generations that both have.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let pairs = self.records.iter().zip(&other.records);
        pairs
            .take_while(|(one, other)| one.generation == other.generation)
            .all(|(one, other)| one.record == other.record && one.chain == other.chain)
    }
}

/// A writer, as its handle prints.
fn name(guid: &[u8; 16]) -> String {
    let bytes = guid.iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
