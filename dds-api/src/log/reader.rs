//! Reads the log of a topic.

use std::path::Path;
use std::vec;

use spindle_dds_core::storage::{
    LogError, LogFigures, LogHead, LogState, LoggedRecord, OpenReport, TopicLog,
};
use spindle_dds_xtypes::DynamicType;

use crate::discovery::read_logged;
use crate::error::{Error, Result};
use crate::history::LogDirectory;

/// Bytes of records that are read at once.
const READ_LEN: usize = 1 << 20;

/// Reads the log of a topic, and changes nothing. What a participant that writes the log appends
/// meanwhile is not seen.
#[derive(Debug)]
pub struct LogReader {
    log: TopicLog<LogDirectory>,
    report: OpenReport,
}

impl LogReader {
    /// Opens the log in a directory: see [`LogPlace`](super::LogPlace).
    ///
    /// # Errors
    /// There is none, it cannot be read, or it is damaged elsewhere than at its end.
    pub fn open(directory: &Path) -> Result<Self, LogError> {
        let disk = LogDirectory::new(directory);
        let (log, report) = TopicLog::open_read_only(disk)?.ok_or(LogError::Missing)?;
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

    /// What a crash has left of a record at the end: a participant that opens the log cuts it off.
    pub fn torn_tail(&self) -> Option<&OpenReport> {
        self.report.cut.is_some().then_some(&self.report)
    }

    /// The type of the samples. `None` where the log does not have it: the type cannot be described by
    /// XTypes, or its description is too long.
    ///
    /// # Errors
    /// BAD_PARAMETER if the log has something else in its place.
    pub fn data_type(&self) -> Result<Option<DynamicType>> {
        let bytes = &self.log.head().type_information;
        if bytes.is_empty() {
            return Ok(None);
        }
        match read_logged(bytes) {
            Ok(read) => Ok(read.map(|(ty, _)| ty)),
            Err(error) => Err(Error::BadParameter(format!("the type of the log: {error}"))),
        }
    }

    /// The records from a position on, in order. Ends after an error.
    pub fn records(&mut self, from: u64) -> LogRecords<'_> {
        LogRecords {
            log: &mut self.log,
            next: Some(from),
            read: Vec::new().into_iter(),
        }
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
        let last = read.last().map(|it| it.record.position());
        self.next = last.and_then(|last| last.checked_add(1));
        self.read = read.into_iter();
        self.read.next().map(Ok)
    }
}
