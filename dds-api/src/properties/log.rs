//! The properties `spindle.log.*`: logged storage, for topics whose DURABILITY is PERSISTENT.

use std::path::PathBuf;
use std::time::Duration;

use spindle_dds_qos::Properties;

use super::choice;
use crate::error::{Error, Result};

pub(super) const DIRECTORY: &str = "spindle.log.directory";
const SYNC: &str = "spindle.log.sync";
const ACK: &str = "spindle.log.ack";
const DELIVER: &str = "spindle.log.deliver";

/// Before the milliseconds of an interval.
const INTERVAL_PREFIX: &str = "interval:";
/// Longer than that, a power cut takes more than what a user expects of a log.
const INTERVAL_MS_MAX: u64 = 60_000;

/// How a participant logs, and what its writers and readers ask of the logs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogConfig {
    /// Where the logs of this participant are; without it, it logs nothing.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) sync: LogSync,
    pub(crate) ack: LogAck,
    pub(crate) deliver: LogDeliver,
}

/// When a log is brought to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogSync {
    /// After each sample.
    Each,
    /// After what has come meanwhile.
    #[default]
    Batch,
    /// That long after the first sample that is not on the disk.
    Interval(Duration),
}

/// The logs that have to have a sample before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogAck {
    /// That of the writer's participant; any one if it does not log.
    Local,
    /// A strict majority.
    #[default]
    Quorum,
    /// All.
    All,
}

/// The logs that have to have a sample before a reader shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogDeliver {
    /// None.
    #[default]
    Before,
    /// That of the reader's participant; any one if it does not log.
    AfterLocal,
    /// All.
    AfterAll,
}

const ACKS: [(&str, LogAck); 3] = [
    ("local", LogAck::Local),
    ("quorum", LogAck::Quorum),
    ("all", LogAck::All),
];

const DELIVERIES: [(&str, LogDeliver); 3] = [
    ("before", LogDeliver::Before),
    ("after_local", LogDeliver::AfterLocal),
    ("after_all", LogDeliver::AfterAll),
];

impl LogConfig {
    pub(super) fn read(properties: &Properties) -> Result<Self> {
        let directory = properties.get(DIRECTORY).map(directory).transpose()?;
        if directory.is_none() && properties.get(SYNC).is_some() {
            return Err(Error::BadParameter(format!(
                "property {SYNC} has no effect without {DIRECTORY}: say where this participant has \
                 its logs"
            )));
        }
        Ok(Self {
            directory,
            sync: properties
                .get(SYNC)
                .map_or_else(|| Ok(LogSync::default()), sync)?,
            ack: choice(properties, ACK, &ACKS)?.unwrap_or_default(),
            deliver: choice(properties, DELIVER, &DELIVERIES)?.unwrap_or_default(),
        })
    }
}

fn directory(text: &str) -> Result<PathBuf> {
    match text.is_empty() {
        false => Ok(PathBuf::from(text)),
        true => Err(Error::BadParameter(format!(
            "property {DIRECTORY} is {text:?}; it has to be the path of a directory on a disk"
        ))),
    }
}

fn sync(text: &str) -> Result<LogSync> {
    let label = text.trim();
    let interval = |label: &str| {
        let number = label.strip_prefix(INTERVAL_PREFIX)?.trim().parse().ok()?;
        let is_good = (1..=INTERVAL_MS_MAX).contains(&number);
        is_good.then(|| LogSync::Interval(Duration::from_millis(number)))
    };
    let sync = match label {
        "each" => Some(LogSync::Each),
        "batch" => Some(LogSync::Batch),
        _ => interval(label),
    };
    sync.ok_or_else(|| {
        Error::BadParameter(format!(
            "property {SYNC} is {text:?}; it has to be one of each, batch, {INTERVAL_PREFIX}<ms> \
             with a number of milliseconds from 1 to {INTERVAL_MS_MAX}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<LogConfig> {
        LogConfig::read(&pairs.iter().copied().collect())
    }

    #[test]
    fn without_properties_nothing_is_logged_and_a_majority_acknowledges() {
        let config = read(&[]).unwrap();
        assert_eq!(config.directory, None);
        assert_eq!(config.sync, LogSync::Batch);
        assert_eq!(config.ack, LogAck::Quorum);
        assert_eq!(config.deliver, LogDeliver::Before);
    }

    #[test]
    fn a_log_has_a_directory_and_a_way_to_sync() {
        let directory = (DIRECTORY, "/var/lib/spindle");
        for (value, expected) in [
            ("each", LogSync::Each),
            (" batch ", LogSync::Batch),
            ("interval:1", LogSync::Interval(Duration::from_millis(1))),
            ("interval:60000", LogSync::Interval(Duration::from_secs(60))),
        ] {
            let config = read(&[directory, (SYNC, value)]).unwrap();
            assert_eq!(config.directory, Some("/var/lib/spindle".into()));
            assert_eq!(config.sync, expected);
        }
        let config = read(&[(ACK, "all"), (DELIVER, "after_local")]).unwrap();
        assert_eq!(config.ack, LogAck::All);
        assert_eq!(config.deliver, LogDeliver::AfterLocal);
    }

    #[test]
    fn wrong_values_are_refused_with_what_is_allowed() {
        let directory = (DIRECTORY, "/var/lib/spindle");
        for (pairs, wanted) in [
            (&[(DIRECTORY, "")][..], [DIRECTORY, "path of a directory"]),
            (&[(SYNC, "each")], [SYNC, "no effect without"]),
            (&[directory, (SYNC, "always")], [SYNC, "each, batch"]),
            (
                &[directory, (SYNC, "interval:0")],
                [SYNC, "from 1 to 60000"],
            ),
            (
                &[directory, (SYNC, "interval:2s")],
                [SYNC, "\"interval:2s\""],
            ),
            (&[(ACK, "none")], [ACK, "local, quorum, all"]),
            (
                &[(DELIVER, "after")],
                [DELIVER, "before, after_local, after_all"],
            ),
        ] {
            let error = read(pairs).unwrap_err();
            assert!(matches!(error, Error::BadParameter(_)), "{error}");
            let text = error.to_string();
            assert!(wanted.iter().all(|it| text.contains(it)), "{text}");
        }
    }
}
