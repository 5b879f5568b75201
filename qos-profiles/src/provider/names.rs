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
    left_out: HashMap<usize, &'static str>,
}

impl Names {
    pub(super) fn of(groups: &[Group], remarks: &mut Vec<Diagnostic>) -> Self {
        let mut names = Self {
            groups: HashMap::new(),
            entities: HashMap::new(),
            left_out: HashMap::new(),
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
        if group.kind == GroupKind::Inline {
            return;
        }
        if group.kind != GroupKind::Loose {
            let key = (group.kind, full_name.clone());
            // A file may have its own profile of a built-in name; built-in ones come last.
            if group.is_built_in && self.groups.contains_key(&key) {
                return;
            }
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
        self.left_out
            .extend(group.left_out.map(|text| (index, text)));
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
            snippets: self.snippets(group, None, &group.snippets, report),
            entities: group
                .entities
                .iter()
                .map(|entity| EntityLinks {
                    base: entity
                        .base
                        .as_ref()
                        .and_then(|b| self.base(group, entity, b, report)),
                    snippets: self.snippets(group, Some(entity), &entity.snippets, report),
                })
                .collect(),
        }
    }

    fn profile(&self, from: &Group, base: &Reference, report: &mut Report) -> Option<usize> {
        let found = self.group(GroupKind::Profile, from, &base.name);
        match found {
            Some(group) => self.note_left_out(group, base, report),
            None => self.say_unknown(from, base, "base_name", "profile", report),
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
        let target = self.target(&[GroupKind::Profile], from, Some(entity), base, report);
        if target.is_none() {
            let kinds = format!("profile or {}", quote(&entity.element.name));
            self.say_unknown(from, base, "base_name", &kinds, report);
        }
        target
    }

    /// The targets of `names`, which stand in a group, or in an entity of it.
    fn snippets(
        &self,
        from: &Group,
        entity: Option<&Entity>,
        names: &[Reference],
        report: &mut Report,
    ) -> Vec<Option<Target>> {
        let mut links = Vec::new();
        for name in names {
            let (kinds, entity): (&[_], _) = match name.is_listed {
                true => (&[GroupKind::Profile, GroupKind::Snippet], entity),
                false => (&[GroupKind::Snippet], None),
            };
            let found = self.target(kinds, from, entity, name, report);
            match (found, name.is_listed) {
                (Some(_), _) => {}
                (None, true) => {
                    let kinds = "profile or snippet";
                    self.say_unknown(from, name, "base_name", kinds, report);
                }
                (None, false) => self.say_unknown(from, name, "snippet_ref", "snippet", report),
            }
            links.push(found);
        }
        links
    }

    /// The group of one of these kinds, else the QoS of the same kind of entity as `entity`.
    fn target(
        &self,
        kinds: &[GroupKind],
        from: &Group,
        entity: Option<&Entity>,
        name: &Reference,
        report: &mut Report,
    ) -> Option<Target> {
        let mut groups = kinds.iter();
        if let Some(group) = groups.find_map(|&kind| self.group(kind, from, &name.name)) {
            self.note_left_out(group, name, report);
            return Some(Target::Group(group));
        }
        let mut names = candidates(from, &name.name).into_iter();
        let found = names.find_map(|name| self.entities.get(&(entity?.kind, name)));
        found.map(|&(group, at)| Target::Entity(group, at))
    }

    /// Warns of what a built-in profile of another product has, and has not here.
    fn note_left_out(&self, group: usize, by: &Reference, report: &mut Report) {
        if let Some(left_out) = self.left_out.get(&group) {
            let name = quote(&by.name);
            report.warning(by.at, format!("{name}: {left_out}"));
        }
    }

    fn say_unknown(
        &self,
        from: &Group,
        name: &Reference,
        place: &str,
        kinds: &str,
        report: &mut Report,
    ) {
        let kind = match place {
            "snippet_ref" => GroupKind::Snippet,
            _ => GroupKind::Profile,
        };
        let hint = self.hint(kind, from, &name.name, report);
        let text = quote(&name.name);
        report.error(name.at, format!("{place} {text} is no known {kinds}{hint}"));
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
