//! Rosters in words.

use spindle_dds_core::storage::{LogEnd, LogGroup, Roster};

use super::participant::LogView;

fn roster(it: &Roster) -> String {
    let logs: Vec<_> = it.logs.iter().map(|it| it.0).collect();
    let generation = it.generation;
    format!(
        "{}.{}.{}/{}{logs:?}",
        generation.number, generation.view, generation.source.0, it.epoch
    )
}

pub(super) fn end(it: &LogEnd) -> String {
    let confirmed: String = it.confirmed.iter().map(roster).collect();
    let proposed: Vec<_> = it.proposed.iter().map(roster).collect();
    format!(
        "log {} of {} at {}.{} confirmed {confirmed} proposed {} follows {:?} as of {}",
        it.log.0,
        it.lineage,
        it.generation,
        it.end,
        proposed.join(" "),
        it.follows,
        it.as_of
    )
}

pub(super) fn group(it: &LogGroup) -> String {
    let rosters: Vec<_> = it.rosters.iter().map(roster).collect();
    let loggers = it.loggers.iter();
    let loggers: Vec<_> = loggers
        .map(|it| format!("{}@{}", it.log.0, it.member.0))
        .collect();
    let whole: Vec<_> = it.whole.iter().map(|it| it.0).collect();
    format!(
        "generation {} of {}, rosters {}, loggers {}, whole {whole:?}, source {:?}, {:?}",
        it.generation.number,
        it.lineage,
        rosters.join(" "),
        loggers.join(" "),
        it.source.map(|it| (it.logger.log.0, it.end)),
        it.state
    )
}

pub(super) fn view(it: &LogView) -> String {
    let members = it.members.iter();
    let members: Vec<_> = members.map(|(id, at)| format!("{}@{at}", id.0)).collect();
    let logs = it.logs.as_ref().map_or_else(String::new, group);
    format!(
        "view {} of {} from {}: {logs}",
        it.view,
        members.join(" "),
        it.base
    )
}
