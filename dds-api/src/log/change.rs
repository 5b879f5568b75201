//! What changes a log, while no participant writes it.

use std::time::{SystemTime, UNIX_EPOCH};

use spindle_dds_core::storage::log::{LogError, MendError, Mended, TopicLog};

use super::lock::LogLock;
use super::place::LogPlace;
use super::reader::LogReader;
use super::replay::Replay;
use crate::history::LogDirectory;

/// What compaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactReport {
    /// Bytes of the segments before.
    pub bytes_before: u64,
    /// And after.
    pub bytes: u64,
    /// Records that were removed.
    pub removed: u64,
}

impl LogLock {
    /// Mends a log, from that of the same topic at another place. Damaged files are kept.
    ///
    /// # Errors
    /// What is missing cannot be had from the other log, or not be proved to be what was there.
    pub fn mend(&self, place: &LogPlace, from: &LogPlace) -> Result<Vec<Mended>, MendError> {
        let mut other = LogReader::open(&from.path).map_err(MendError::Other)?;
        TopicLog::mend(&mut LogDirectory::new(&place.path), other.log())
    }
}
