//! Logs of PERSISTENT topics.

use serde::Serialize;
use spindle_dds::monitor::{LogCondition, ParticipantFigures, TopicLogFigures};

use super::scene::{Names, Rate};

/// The log of a topic at a participant.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Log {
    pub(super) topic: String,
    pub(super) participant: String,
    /// Whether it is written, and why not.
    pub(super) condition: LogCondition,
    /// Positions of the order that were delivered and are not on the disk, all topics of the subgroup counted.
    pub(super) behind: u64,
    pub(super) syncs_per_s: f64,
    pub(super) written_bytes_per_s: f64,
    pub(super) records: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Files that were written anew without what nothing needs, or removed.
    pub(super) compacted: u64,
}

impl Log {
    /// A participant's logs.
    pub(super) fn all(
        before: Option<&ParticipantFigures>,
        now: &ParticipantFigures,
        names: &Names,
    ) -> Vec<Self> {
        let rate = Rate::between(before, now);
        let log = |log: &TopicLogFigures| {
            let mut logs = before.into_iter().flat_map(|before| &before.logs);
            let before = logs.find(|it| it.topic == log.topic);
            let of = |value: fn(&TopicLogFigures) -> u64| rate.of(before.map(value), value(log));
            Self {
                topic: log.topic.clone(),
                participant: names.of(&now.member),
                condition: log.condition.clone(),
                behind: log.behind,
                syncs_per_s: of(|it| it.syncs),
                written_bytes_per_s: of(|it| it.written_bytes),
                records: log.records,
                files: log.files,
                bytes: log.bytes,
                compacted: log.compacted,
            }
        };
        now.logs.iter().map(log).collect()
    }
}
