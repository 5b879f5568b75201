//! Why a log cannot do something.

/// Why a log cannot do something. Files are named without their directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The disk has no room. The log is as it was before the call.
    #[error("no room for {file}: {why}")]
    Full {
        /// The file that was written.
        file: String,
        /// The disk's error.
        why: String,
    },
    /// A write or a sync has failed. The log takes no more for the life of the process.
    #[error("the log takes no more records, as {file} failed: {why}")]
    Dead {
        /// The file that was written or synced.
        file: String,
        /// The disk's error.
        why: String,
    },
    /// A file is not what was written.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file cannot be read.
    #[error("{file} cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The disk's error.
        why: String,
    },
    /// There is a log already where one was to be created.
    #[error("there is a log already")]
    Exists,
    /// The log was opened to be read only.
    #[error("the log was opened to be read only")]
    ReadOnly,
    /// A record's position is not after those before it.
    #[error("position {position} is before the end of the log, {end}")]
    Order {
        /// Position of the record.
        position: u64,
        /// End of the log, or of the record before.
        end: u64,
    },
    /// A record of another log does not follow the last one of this log.
    #[error("the record at position {position} does not follow those of this log")]
    Chain {
        /// Position of the record.
        position: u64,
    },
    /// Records that later ones superseded were removed below this position: to truncate there would
    /// lose them. The log can be truncated to 0.
    #[error("the log is compacted below position {settled}")]
    Compacted {
        /// See [`Compaction`](super::Compaction).
        settled: u64,
    },
    /// What is to be kept takes 4 GiB or more.
    #[error("{what} takes 4 GiB or more")]
    TooLong {
        /// The payload, or the head of the log.
        what: &'static str,
    },
    /// The log has another identity.
    #[error("the state is that of log {0}")]
    OtherLog(super::super::roster::LogId),
}

impl LogError {
    pub(super) fn damaged(file: &str, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged {
            file: file.to_owned(),
            offset,
            what: what.into(),
        }
    }

    pub(super) fn unreadable(file: &str, error: impl ToString) -> Self {
        Self::Unreadable {
            file: file.to_owned(),
            why: error.to_string(),
        }
    }
}
