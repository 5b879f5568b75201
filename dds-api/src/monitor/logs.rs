//! The figures of logs.

use serde::{Deserialize, Serialize};

/// The log of a PERSISTENT topic at a participant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicLogFigures {
    /// The name of the topic.
    pub topic: String,
    /// Whether it is written, and why not.
    pub condition: LogCondition,
    /// Positions of the subgroup's order from the first message that is not on the disk to the last one that
    /// was delivered.
    pub behind: u64,
    /// Records since the log began, with those that were removed since.
    pub records: u64,
    /// Files with records.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Syncs of these files since the participant has opened the log.
    pub syncs: u64,
    /// Bytes that were written to these files since then.
    pub written_bytes: u64,
    /// How many of these files were written anew without what nothing needs, or removed, since then.
    pub compacted: u64,
}

/// Whether a log is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LogCondition {
    /// Its participant is in no view with it.
    #[default]
    Joining,
    /// It is: the topic takes samples of PERSISTENT writers.
    Open,
    /// It is, but has not recorded yet what came before the present epoch.
    Recording,
    /// It takes what it lacks from others.
    Learner,
    /// Too few of the logs of the last roster are there.
    Shut {
        /// Logs of the roster that are there.
        present: u64,
        /// Number of logs of the roster.
        of: u64,
    },
    /// Logs that are there descend from different beginnings.
    Lineages,
    /// There is no room on the disk.
    Full {
        /// What the disk says.
        why: String,
    },
    /// Its records do not go with those of the others.
    Barred {
        /// Which records.
        why: String,
    },
    /// It has failed, and is not used any more.
    Dead {
        /// What the disk says.
        why: String,
    },
}

impl LogCondition {
    /// In a few letters.
    pub fn short(&self) -> String {
        let name = match self {
            Self::Shut { present, of } => return format!("shut {present}/{of}"),
            Self::Joining => "joining",
            Self::Open => "open",
            Self::Recording => "recording",
            Self::Learner => "learner",
            Self::Lineages => "lineages",
            Self::Full { .. } => "full",
            Self::Barred { .. } => "barred",
            Self::Dead { .. } => "dead",
        };
        name.to_owned()
    }
}
