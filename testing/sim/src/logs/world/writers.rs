//! Samples are written, and acknowledged.

use super::super::participant::{Kept, LogView};
use super::{GROUPS, Item, Waits, World, takes};
use crate::violation::Finding;

impl World {
    pub(super) fn write(&mut self, at: usize) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        let group = &mut self.groups[node.group];
        let Some(view) = node.view.clone() else {
            return;
        };
        let is_last = group.last.as_ref().is_some_and(|it| it.view == view.view);
        if !is_last || !takes(group, &view) {
            return;
        }
        let Some(logs) = &view.logs else {
            return;
        };
        let position = group.next + self.rng.below(2) as u64;
        group.next = position + 1;
        self.values += 1;
        self.written += 1;
        let value = self.values;
        let record = Kept {
            position,
            generation: logs.generation.number,
            epoch: view.view,
            value,
        };
        group.items.push(Item::Message { position, value });
        node.waits.push(Waits {
            record,
            lineage: logs.lineage,
            generation: logs.generation,
        });
        let group = node.group;
        self.say(|| format!("host {at} writes {value} at {position} in group {group}"));
    }

    /// A writer looks at the words.
    pub(super) fn acknowledge(&mut self, at: usize) -> Result<(), Finding> {
        let Some(node) = &mut self.hosts[at].node else {
            return Ok(());
        };
        let group = &self.groups[node.group];
        let Some(view) = node.view.clone() else {
            return Ok(());
        };
        let Some(logs) = view.logs.as_ref().filter(|it| it.is_open()) else {
            return Ok(());
        };
        let by_majority = self.plan.acknowledges_by_majority_of_proposed;
        let any_generation = self.plan.acknowledges_in_any_generation;
        let is_acked = |waits: &Waits| {
            if !any_generation && waits.generation != logs.generation {
                return false;
            }
            let is_present = waits.record.epoch == view.view;
            let needed = match is_present {
                true => waits.record.position + 1,
                false => view.base,
            };
            let there = logs.loggers.iter().filter(|it| {
                let word = group.words.get(&(it.member, view.view));
                word.is_some_and(|word| *word >= needed)
            });
            // A roster that not all of its logs have recorded may never be heard of again.
            match is_present || by_majority {
                true => there.count() * 2 > logs.loggers.len(),
                false => there.count() == logs.loggers.len(),
            }
        };
        let (acked, waits): (Vec<_>, Vec<_>) = node.waits.drain(..).partition(is_acked);
        node.waits = waits;
        let own = node.group;
        for waits in acked {
            let Kept {
                value, position, ..
            } = waits.record;
            self.say(|| format!("{value} at {position} is acknowledged in group {own}"));
            self.acknowledged += 1;
            self.acked
                .entry(waits.lineage)
                .or_default()
                .push(waits.record);
            // No other opening goes on without it.
            for group in 0..GROUPS {
                let Some(view) = self.groups[group].last.clone() else {
                    continue;
                };
                let other = view.logs.as_ref().map(|it| it.generation);
                let is_other = other != Some(waits.generation);
                if is_other && takes(&self.groups[group], &view) && self.may_acknowledge(&view) {
                    self.recovered(&view)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a majority of the loggers of a view live.
    pub(super) fn may_acknowledge(&self, view: &LogView) -> bool {
        let loggers = view.logs.as_ref().map_or(&[][..], |it| &it.loggers);
        let nodes = self.hosts.iter().filter_map(|it| it.node.as_ref());
        let is_up = |id| nodes.clone().any(|it| it.member == id && it.log.is_some());
        let up = loggers.iter().filter(|it| is_up(it.member)).count();
        up * 2 > loggers.len()
    }
}
