//! Reads the log of a topic.

use std::path::Path;
use std::{fmt, vec};

use spindle_dds_core::storage::log::{
    LogError, LogFigures, LogHead, LogState, LoggedRecord, OpenReport, TopicLog, VerifyReport,
};
use spindle_dds_xtypes::DynamicType;

use crate::discovery::read_logged;
use crate::error::{Error, Result};
use crate::history::LogDirectory;

/// Bytes of records that are read at once.
const READ_LEN: usize = 1 << 20;

/// Reads the log of a topic, and changes nothing. What a participant that writes the log appends
/// meanwhile is not seen.
pub struct LogReader {
    log: TopicLog<LogDirectory>,
    report: OpenReport,
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("state", self.log.state())
            .finish_non_exhaustive()
    }
}

impl LogReader {
    /// Opens the log in a directory: see [`LogPlace`](super::LogPlace).
    ///
    /// # Errors
    /// There is none, it cannot be read, or it is damaged: in its last segment, or in what the log says of
    /// itself. Damage elsewhere is found when it is read.
    pub fn open(directory: &Path) -> Result<Self, LogError> {
        let opened = TopicLog::open_read_only(LogDirectory::new(directory))?;
        let (log, report) = opened.ok_or_else(missing)?;
        Ok(Self { log, report })
    }

    /// The topic, its type, and the limits of what is kept for readers that come later.
    pub fn head(&self) -> &LogHead {
        self.log.head()
    }

    /// The log's id, and what it knows of the other logs of the topic.
    pub fn state(&self) -> &LogState {
        self.log.state()
    }

    /// Its size.
    pub fn figures(&self) -> LogFigures {
        self.log.figures()
    }

    /// Position after the last record; 0 without one.
    pub fn end(&self) -> u64 {
        self.log.appended()
    }

    /// File, offset and length of what a crash has left of records at the end. A participant that opens
    /// the log cuts it off.
    pub fn torn_tail(&self) -> Option<(&str, u64, u64)> {
        let cut = self.report.cut.as_ref()?;
        Some((&cut.0, cut.1, cut.2))
    }

    /// The type of the samples. `None` where the log does not have it: XTypes cannot describe the type, or
    /// its description is too long.
    ///
    /// # Errors
    /// BAD_PARAMETER if the log has something else in its place.
    pub fn data_type(&self) -> Result<Option<DynamicType>> {
        Ok(self.read_type()?.map(|(ty, _)| ty))
    }

    /// The type, if key hashes are digests of the keys.
    pub(super) fn keyed_by_digest(&self) -> Option<DynamicType> {
        let (ty, digests_key) = self.read_type().ok()??;
        digests_key.then_some(ty)
    }

    fn read_type(&self) -> Result<Option<(DynamicType, bool)>> {
        let bytes = &self.log.head().type_information;
        if bytes.is_empty() {
            return Ok(None);
        }
        let wrong = |error| Error::BadParameter(format!("the type in the log: {error}"));
        read_logged(bytes).map_err(wrong)
    }

    /// The records from a position on, in order. Ends after an error.
    pub fn records(&mut self, from: u64) -> LogRecords<'_> {
        LogRecords {
            log: &mut self.log,
            next: Some(from),
            read: Vec::new().into_iter(),
        }
    }

    /// Reads all, and says what is damaged. `progress` is called with the bytes that were read so far.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64)) -> Result<VerifyReport, LogError> {
        self.log.verify(progress)
    }

    pub(super) fn log(&mut self) -> &mut TopicLog<LogDirectory> {
        &mut self.log
    }
}

/// The records of a log, in order.
#[derive(Debug)]
pub struct LogRecords<'a> {
    log: &'a mut TopicLog<LogDirectory>,
    /// The position from which on there is more to read.
    next: Option<u64>,
    read: vec::IntoIter<LoggedRecord>,
}

impl Iterator for LogRecords<'_> {
    type Item = Result<LoggedRecord, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.read.next() {
            return Some(Ok(record));
        }
        let read = match self.log.read(self.next.take()?, READ_LEN) {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        self.next = read.last().map(LoggedRecord::end);
        self.read = read.into_iter();
        self.read.next().map(Ok)
    }
}

/// The error of a directory without a log.
pub(super) fn missing() -> LogError {
    LogError::Unreadable {
        file: "superblock".to_owned(),
        why: "there is no log".to_owned(),
    }
}
