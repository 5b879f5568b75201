//! What the logs of all participants have, read while no participant writes them.

use std::collections::BTreeMap;
use std::path::Path;

use spindle_dds::log::{LogId, LogReader, LoggedRecord};

use crate::Failure;

/// The records of one log.
pub(crate) struct Log {
    pub(crate) number: u32,
    records: Vec<LoggedRecord>,
    /// Of each writer: so many samples, without a gap.
    samples: BTreeMap<String, u64>,
    pub(crate) id: LogId,
    /// The roster that it knows to be confirmed.
    pub(crate) roster: Vec<LogId>,
}

impl Log {
    /// `None`: there is none yet.
    pub(crate) fn read(directory: &Path, number: u32) -> Result<Option<Self>, Failure> {
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
        let state = log.state().clone();
        let roster = state.confirmed.map_or_else(Vec::new, |it| it.logs);
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
            id: state.id,
            roster,
        }))
    }

    /// How many samples it has of a writer.
    pub(crate) fn samples_of(&self, writer: &str) -> u64 {
        self.samples.get(writer).copied().unwrap_or(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether one of both begins with all that the other one has of the generations that both have.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
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
