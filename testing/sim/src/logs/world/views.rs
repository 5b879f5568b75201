//! Views are agreed, and participants come to them.

use std::sync::Arc;

use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::{LogEnd, LogGroup};

use super::super::participant::LogView;
use super::super::show;
use super::{Item, World, opening_key};

impl World {
    /// A view is agreed. Who has crashed is out, and newcomers are in, or not yet.
    pub(super) fn change_view(&mut self, group: usize) {
        let last = self.groups[group].last.clone();
        let mut members: Vec<(MemberId, usize)> = Vec::new();
        for one in last.iter().flat_map(|it| &it.members) {
            if self.is_alive(*one) || self.rng.chance(0.1) {
                members.push(*one);
            }
        }
        for one in std::mem::take(&mut self.groups[group].joining) {
            if !self.is_alive(one) {
                continue;
            }
            match members.is_empty() || self.rng.chance(0.8) {
                true => members.push(one),
                false => self.groups[group].joining.push(one),
            }
        }
        if !members.iter().any(|one| self.is_alive(*one)) {
            return;
        }
        let mut ends = Vec::new();
        for (member, _) in &members {
            let before = last.as_ref().map(|it| &it.ends);
            let old = before.and_then(|ends| ends.iter().find(|it| it.0 == *member));
            let new = self.groups[group].ends.get(member);
            // What is announced may be in the next view, or in a later one.
            let end = match (old, new) {
                (Some((_, old)), _) if self.rng.chance(0.3) => Some(old),
                (_, new) => new,
            };
            ends.extend(end.map(|end| (*member, end.clone())));
        }
        let by_rank: Vec<(MemberId, &LogEnd)> = ends.iter().map(|(id, end)| (*id, end)).collect();
        let view = last.as_ref().map_or(0, |it| it.view) + 1;
        let before = last.as_ref().and_then(|it| it.logs.as_ref());
        let logs = LogGroup::next(before, view, &by_rank);
        let floors = ends.iter().map(|(_, end)| end.end);
        let base = floors
            .chain([self.groups[group].next, 1])
            .max()
            .unwrap_or(1);
        let new = Arc::new(LogView {
            view,
            base,
            members,
            ends,
            logs,
        });
        if last.is_some_and(|it| it.members == new.members && it.ends == new.ends) {
            return;
        }
        self.say(|| format!("group {group}: {}", show::view(&new)));
        if let Some(logs) = new.logs.as_ref().filter(|it| it.is_open()) {
            let by = self.opened_by.entry(opening_key(logs));
            by.or_insert_with(|| logs.loggers.iter().map(|it| it.log).collect());
        }
        let it = &mut self.groups[group];
        it.next = base;
        it.last = Some(Arc::clone(&new));
        it.items.push(Item::View(new));
    }

    /// A participant comes to the next items.
    pub(super) fn come_on(&mut self, at: usize) {
        let count = 1 + self.rng.below(4);
        let now = self.now_ns;
        for _ in 0..count {
            // The last words of the view before.
            self.read(at);
            let Some(node) = &mut self.hosts[at].node else {
                return;
            };
            let Some(item) = self.groups[node.group].items.get(node.at) else {
                return;
            };
            node.at += 1;
            match item {
                Item::View(view) if view.members.iter().any(|it| it.0 == node.member) => {
                    node.view = Some(Arc::clone(view));
                    node.reader.begin(view);
                    if let Some(log) = &mut node.log {
                        log.begin(view, now);
                    }
                }
                Item::Message { position, value } if node.view.is_some() => {
                    if let Some(view) = &node.view {
                        node.reader.deliver(view, *position, *value);
                    }
                    if let Some(log) = &mut node.log {
                        log.deliver(*position, *value);
                    }
                }
                _ => {}
            }
            self.take_from(at);
        }
    }
}
