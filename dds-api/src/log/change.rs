//! What changes a log, while no participant writes it.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use spindle_dds_core::storage::log::{Compaction, LogError, LogState, MendError, Mended, TopicLog};

use super::lock::LogLock;
use super::place::LogPlace;
use super::reader::LogReader;
use crate::history::LogDirectory;
use crate::instance_names::InstanceNames;
use crate::keys::KnownKeys;

/// What compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes of the segments before.
    pub bytes_before: u64,
    /// And after.
    pub bytes: u64,
    /// Only records below this position could be removed.
    pub settled: u64,
}

impl LogLock {
    /// Mends a log from that of the same topic at another place. Damaged files are kept.
    ///
    /// # Errors
    /// The other log does not have what is missing, or it cannot be shown to be what was there.
    pub fn mend(&self, place: &LogPlace, from: &LogPlace) -> Result<Vec<Mended>, MendError> {
        let mut other = LogReader::open(&from.path).map_err(MendError::Other)?;
        TopicLog::mend(&mut LogDirectory::new(&place.path), other.log())
    }

    /// Removes records that the limits in the head of a log do not keep for readers that come later. Cuts a
    /// torn tail, as a participant does that opens the log.
    ///
    /// A segment is written anew if less than half of it is kept. The last one is not, and none with
    /// records that may still be exchanged for those of other logs: all since the newest confirmed
    /// roster, unless the log was never in a roster with another one.
    ///
    /// # Errors
    /// The log is damaged, or a file cannot be written.
    pub fn compact(&self, place: &LogPlace) -> Result<CompactReport, LogError> {
        let (settled, names) = {
            let mut log = LogReader::open(&place.path)?;
            let settled = settled(&mut log)?;
            // Without its type, key hashes tell instances apart.
            let ty = log.keyed_by_digest();
            let known = ty.and_then(|ty| KnownKeys::of_dynamic(&ty, &Arc::default()));
            (settled, InstanceNames::new(known))
        };
        let mut log = open(&place.path)?;
        let bytes_before = log.figures().bytes;
        let limits = log.head().limits;
        let mut compaction = Compaction::new(&log, settled, limits, now_ns());
        compaction.run(&mut log, &|record, history| names.of(record, history))?;
        Ok(CompactReport {
            bytes_before,
            bytes: log.figures().bytes,
            settled,
        })
    }
}

fn open(directory: &Path) -> Result<TopicLog<LogDirectory>, LogError> {
    let opened = TopicLog::open(LogDirectory::new(directory))?;
    opened
        .map(|(log, _)| log)
        .ok_or_else(super::reader::missing)
}

/// The position below which no record is ever exchanged for one of another log: all loggers of the newest
/// confirmed roster have these records.
fn settled(log: &mut LogReader) -> Result<u64, LogError> {
    let state = log.state();
    if is_alone(state) {
        return Ok(log.end());
    }
    let Some(epoch) = state.confirmed.as_ref().map(|it| it.epoch) else {
        return Ok(0);
    };
    let mut settled = 0;
    for record in log.records(0) {
        let record = record?;
        if record.epoch >= epoch {
            break;
        }
        settled = record.end();
    }
    Ok(settled)
}

/// Whether no other log has ever been in a roster that may be in use.
fn is_alone(state: &LogState) -> bool {
    let rosters = state.confirmed.iter().chain(&state.proposed);
    let mut logs = rosters.flat_map(|it| &it.logs).peekable();
    logs.peek().is_some() && logs.all(|it| *it == state.id)
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}
