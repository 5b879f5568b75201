//! What monitors are told of a log.

use spindle_dds_core::storage::{KeeperStatus, LogGroup, LogGroupState};

use super::topic::{Keeper, LoggedTopic};
use crate::monitor::{LogCondition, TopicLogFigures};

/// Tells monitors of a log, which may be one of a group in the present view.
pub(super) fn publish(logged: &LoggedTopic, group: Option<&LogGroup>, is_logger: bool) {
    let keeper = logged.keeper();
    let log = keeper.log().figures();
    let figures = TopicLogFigures {
        topic: logged.name.clone(),
        condition: condition(&keeper, group, is_logger),
        behind: keeper.behind(),
        records: log.records,
        files: log.segments,
        bytes: log.bytes,
        syncs: log.syncs,
        written_bytes: log.written,
        compacted: log.compacted,
    };
    drop(keeper);
    logged.set_figures(figures);
}

fn condition(keeper: &Keeper, group: Option<&LogGroup>, is_logger: bool) -> LogCondition {
    match keeper.status().clone() {
        KeeperStatus::Good => {}
        KeeperStatus::Full(why) => return LogCondition::Full { why },
        KeeperStatus::Barred(why) => return LogCondition::Barred { why },
        KeeperStatus::Dead(why) => return LogCondition::Dead { why },
    }
    let Some(group) = group else {
        return LogCondition::Joining;
    };
    match group.state {
        LogGroupState::NoMajority { present, of } => LogCondition::Shut {
            present: present as u64,
            of: of as u64,
        },
        LogGroupState::Lineages(..) => LogCondition::Lineages,
        LogGroupState::Open if keeper.is_ready() => LogCondition::Open,
        LogGroupState::Open if is_logger && keeper.is_whole() => LogCondition::Recording,
        LogGroupState::Open => LogCondition::Learner,
    }
}
