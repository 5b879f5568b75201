//! Names looked up among everything that has one.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Report, did_you_mean, quote};
use crate::provider::links::{EntityLinks, GroupLinks, Target};
use crate::xml::entity::EntityKind;
use crate::xml::library::{Entity, Group, GroupKind, Reference, qualified};

/// Everything that has a name.
pub(super) struct Names {
    groups: HashMap<(GroupKind, String), usize>,
    entities: HashMap<(EntityKind, String), (usize, usize)>,
}

impl Names {
    pub(super) fn of(groups: &[Group], remarks: &mut Vec<Diagnostic>) -> Self {
        let mut names = Self {
            groups: HashMap::new(),
            entities: HashMap::new(),
        };
        for (index, group) in groups.iter().enumerate() {
            let mut report = Report::new(group.file.clone());
            names.add(index, group, groups, &mut report);
            remarks.extend(report.into_diagnostics());
        }
        names
    }

    fn add(&mut self, index: usize, group: &Group, groups: &[Group], report: &mut Report) {
        let full_name = group.full_name();
        if group.kind != GroupKind::Loose {
            let key = (group.kind, full_name.clone());
            if let Some(first) = self.groups.insert(key, index).map(|first| &groups[first]) {
                let message = format!(
                    "{} is given twice, first in {}:{}",
                    quote(&full_name),
                    first.file,
                    first.at.line
                );
                report.error(group.at, message);
            }
        }
        let prefix = if group.kind == GroupKind::Loose {
            &group.library
        } else {
            &full_name
        };
        for (at, entity) in group.entities.iter().enumerate() {
            let Some(name) = &entity.name else { continue };
            let key = (entity.kind, qualified(prefix, name));
            if self.entities.insert(key, (index, at)).is_some() {
                let name = quote(name);
                report.error(entity.element.at, format!("{name} is given twice"));
            }
        }
    }

    pub(super) fn link(&self, group: &Group, report: &mut Report) -> GroupLinks {
        GroupLinks {
            base: group
                .base
                .as_ref()
                .and_then(|base| self.profile(group, base, report)),
            snippets: self.snippets(group, &group.snippets, report),
            entities: group
                .entities
                .iter()
                .map(|entity| EntityLinks {
                    base: entity
                        .base
                        .as_ref()
                        .and_then(|b| self.base(group, entity, b, report)),
                    snippets: self.snippets(group, &entity.snippets, report),
                })
                .collect(),
        }
    }

    fn profile(&self, from: &Group, base: &Reference, report: &mut Report) -> Option<usize> {
        let found = self.group(GroupKind::Profile, from, &base.name);
        if found.is_none() {
            let hint = self.hint(GroupKind::Profile, from, &base.name, report);
            let name = quote(&base.name);
            report.error(
                base.at,
                format!("base_name {name} is no known profile{hint}"),
            );
        }
        found
    }

    fn base(
        &self,
        from: &Group,
        entity: &Entity,
        base: &Reference,
        report: &mut Report,
    ) -> Option<Target> {
        let profile = self
            .group(GroupKind::Profile, from, &base.name)
            .map(Target::Group);
        let target = profile.or_else(|| {
            let found = candidates(from, &base.name)
                .into_iter()
                .find_map(|name| self.entities.get(&(entity.kind, name)));
            found.map(|&(group, at)| Target::Entity(group, at))
        });
        if target.is_none() {
            let hint = self.hint(GroupKind::Profile, from, &base.name, report);
            let (name, kind) = (quote(&base.name), quote(&entity.element.name));
            report.error(
                base.at,
                format!("base_name {name} is no known profile or {kind}{hint}"),
            );
        }
        target
    }

    fn snippets(
        &self,
        from: &Group,
        names: &[Reference],
        report: &mut Report,
    ) -> Vec<Option<usize>> {
        let mut links = Vec::new();
        for snippet in names {
            let found = self.group(GroupKind::Snippet, from, &snippet.name);
            if found.is_none() {
                let hint = self.hint(GroupKind::Snippet, from, &snippet.name, report);
                let name = quote(&snippet.name);
                report.error(
                    snippet.at,
                    format!("snippet_ref {name} is no known snippet{hint}"),
                );
            }
            links.push(found);
        }
        links
    }

    fn group(&self, kind: GroupKind, from: &Group, name: &str) -> Option<usize> {
        let mut names = candidates(from, name).into_iter();
        names.find_map(|name| self.groups.get(&(kind, name)).copied())
    }

    fn hint(&self, kind: GroupKind, from: &Group, name: &str, report: &Report) -> String {
        if report.is_full() {
            return String::new();
        }
        let own = qualified(&from.library, "");
        let mut known: Vec<&str> = self
            .groups
            .iter()
            .filter(|((known_kind, known), _)| *known_kind == kind && *known != from.full_name())
            .map(|((_, known), _)| known.strip_prefix(own.as_str()).unwrap_or(known))
            .take(HINTED_NAMES_MAX)
            .collect();
        known.sort_unstable();
        did_you_mean(name, known)
    }
}

/// What `name` may be in full when `from` says it, the nearest first.
fn candidates(from: &Group, name: &str) -> Vec<String> {
    vec![
        qualified(&from.library, name),
        qualified(&from.full_name(), name),
        name.to_owned(),
    ]
}

const HINTED_NAMES_MAX: usize = 256;
