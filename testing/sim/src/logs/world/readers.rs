//! Readers show samples, and what they have shown is known later.

use spindle_dds_core::storage::LogGroup;

use super::super::participant::{Kept, LogView};
use super::super::plan::ShownAfter;
use super::super::reader::Shown;
use super::super::show;
use super::{World, opening_key};
use crate::violation::Finding;

impl World {
    /// A reader looks at the words, and shows what it may.
    pub(super) fn read(&mut self, at: usize) {
        let shown = self.plan.shown;
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let Some(view) = &node.view else {
            return;
        };
        let words = &self.groups[node.group].words;
        let word = |id| words.get(&(id, view.view)).copied().unwrap_or(0);
        let new = node.reader.look((node.member, view), word, shown);
        self.shown += new.len();
        for it in &new {
            let value = it.record.value;
            self.say(|| format!("host {at}'s reader shows {value}"));
        }
        self.shown_samples.extend(new);
    }

    /// What readers have shown is known to the logs of a group that begins to take samples.
    pub(super) fn shown_is_known(&mut self, view: &LogView) -> Result<(), Finding> {
        let Some(logs) = &view.logs else {
            return Ok(());
        };
        let by_all = match self.plan.shown {
            ShownAfter::Delivery => self.plan.judges_shown_on_delivery,
            ShownAfter::LocalLog => false,
            ShownAfter::AllLogs => true,
        };
        let id = if by_all { "D3" } else { "D4" };
        let mut due = Vec::new();
        for it in &self.shown_samples {
            let is_promised = match self.plan.shown {
                ShownAfter::LocalLog => self.is_known_locally(it, logs),
                _ => by_all,
            };
            if is_promised && it.lineage == logs.lineage {
                due.push(it.record);
            }
        }
        due.retain(|it| !self.excused.contains(&it.value));
        let shown = show::group(logs);
        let is_above =
            |it: &&Kept| it.position >= view.base && it.generation != logs.generation.number;
        if let Some(record) = due.iter().find(is_above) {
            let what = format!("{record:?} was shown, and is not below the base of {shown}");
            return Err((id, what));
        }
        for logger in &logs.loggers {
            let Some(kept) = self.durable_of(logger.member) else {
                continue;
            };
            let lacks = |it: &&Kept| it.position < view.base && !kept.contains(it);
            if let Some(record) = due.iter().find(lacks) {
                let log = logger.log.0;
                let what = format!("log {log} of {shown} lacks {record:?}, which was shown");
                return Err((id, what));
            }
        }
        Ok(())
    }

    /// Whether the log that a sample was shown by takes part in the first opening since.
    fn is_known_locally(&self, shown: &Shown, logs: &LogGroup) -> bool {
        let Some(log) = shown.local else {
            return false;
        };
        let number = shown.record.generation;
        let mut between = self.took.range((shown.lineage, number + 1)..);
        let next = between
            .next()
            .filter(|(lineage, _)| *lineage == shown.lineage);
        let host = usize::try_from(log.0).unwrap_or(0).wrapping_sub(1);
        let began = self.opened_by.get(&opening_key(logs));
        let takes_part = match number == logs.generation.number {
            true => logs.loggers.iter().any(|it| it.log == log),
            false => began.is_some_and(|it| it.contains(&log)),
        };
        takes_part
            && next.is_none_or(|(_, next)| *next >= logs.generation.number)
            && !self.taken.contains(&(host, shown.record.value))
    }
}
