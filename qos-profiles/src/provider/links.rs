//! Names in `base_name` and `snippet_ref` linked to what they stand for.
//!
//! ```text
//!   group (profile, kind of entity) ──▶ its entities, its base, its snippets
//!   entity                          ──▶ its base, or its group's; snippets of both
//! ```
//!
//! The graph is walked once: an edge back onto the path is a cycle, a path or an
//! inheritance of absurd size is refused, so that everything after is bounded.

use std::collections::HashMap;

use crate::diagnostic::{At, Diagnostic, Report, did_you_mean, quote};
use crate::xml::entity::EntityKind;
use crate::xml::library::{Entity, Group, GroupKind, Reference, qualified};

/// What a `base_name` of an entity stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    /// A group: its QoS for the same kind of entity.
    Group(usize),
    /// The entity of a group.
    Entity(usize, usize),
}

/// The links of all groups, by index.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) groups: Vec<GroupLinks>,
}

/// The links of one group.
#[derive(Debug, Default)]
pub(super) struct GroupLinks {
    pub(super) base: Option<usize>,
    pub(super) snippets: Vec<Option<usize>>,
    pub(super) entities: Vec<EntityLinks>,
}

/// The links of one entity.
#[derive(Debug, Default)]
pub(super) struct EntityLinks {
    pub(super) base: Option<Target>,
    pub(super) snippets: Vec<Option<usize>>,
}

impl Links {
    /// Links all names in `groups`; what stands for nothing or leads in a circle is
    /// in the remarks.
    pub(super) fn of(groups: &[Group]) -> (Self, Vec<Diagnostic>) {
        let mut remarks = Vec::new();
        let names = Names::of(groups, &mut remarks);
        let mut links = Self::default();
        for group in groups {
            if remarks.len() > REMARKS_MAX {
                return (links, remarks);
            }
            let mut report = Report::new(group.file.clone());
            links.groups.push(names.link(group, &mut report));
            remarks.extend(report.into_diagnostics());
        }
        let mut walk = Walk {
            groups,
            links: &links,
            path: vec![],
            sizes: HashMap::new(),
            remarks,
        };
        for group in 0..groups.len() {
            for kind in EntityKind::ALL {
                walk.visit(Node::Group(group, kind), None);
            }
        }
        let mut remarks = walk.remarks;
        remarks.dedup();
        (links, remarks)
    }
}

/// Everything that has a name.
struct Names {
    groups: HashMap<(GroupKind, String), usize>,
    entities: HashMap<(EntityKind, String), (usize, usize)>,
}

impl Names {
    fn of(groups: &[Group], remarks: &mut Vec<Diagnostic>) -> Self {
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

    fn link(&self, group: &Group, report: &mut Report) -> GroupLinks {
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

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Group(usize, EntityKind),
    Entity(usize, usize),
}

/// How much inheriting a node takes.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// How many elements are applied.
    layers: usize,
    /// How many steps lead to the furthest.
    depth: usize,
}

impl Size {
    fn add(&mut self, inherited: Self) {
        self.layers += inherited.layers;
        self.depth = self.depth.max(inherited.depth + 1);
    }
}

/// The walk over the graph, depth first.
struct Walk<'a> {
    groups: &'a [Group],
    links: &'a Links,
    path: Vec<Node>,
    sizes: HashMap<Node, Size>,
    remarks: Vec<Diagnostic>,
}

impl Walk<'_> {
    /// Visits `node`, to which the reference `by` of a group led.
    fn visit(&mut self, node: Node, by: Option<(usize, At)>) -> Size {
        if let Some(size) = self.sizes.get(&node) {
            return *size;
        }
        if let Some(start) = self.path.iter().position(|known| *known == node) {
            self.cycle(start, by);
            return Size::default();
        }
        self.path.push(node);
        let mut size = Size::default();
        if self.path.len() <= DEPTH_MAX {
            size = match node {
                Node::Group(group, kind) => self.group(group, kind),
                Node::Entity(group, entity) => self.entity(group, entity),
            };
        }
        if size.layers > LAYERS_MAX || size.depth > DEPTH_MAX || self.path.len() > DEPTH_MAX {
            let message =
                format!("inheritance goes over more than {LAYERS_MAX} others or {DEPTH_MAX} steps");
            self.say(Some(self.place(node)), message);
            size = Size::default();
        }
        self.path.pop();
        self.sizes.insert(node, size);
        size
    }

    fn group(&mut self, group: usize, kind: EntityKind) -> Size {
        let mut size = self.base(group, kind);
        size.add(self.snippets(group, kind));
        let groups = self.groups;
        for (at, entity) in groups[group].entities.iter().enumerate() {
            if entity.kind == kind {
                let of_entity = self.visit(Node::Entity(group, at), None);
                size.layers = size.layers.max(of_entity.layers);
                size.depth = size.depth.max(of_entity.depth + 1);
            }
        }
        size
    }

    fn entity(&mut self, group: usize, at: usize) -> Size {
        let entity = &self.groups[group].entities[at];
        let links = &self.links.groups[group].entities[at];
        let mut size = Size {
            layers: 1,
            depth: 0,
        };
        if let (Some(base), Some(target)) = (&entity.base, links.base) {
            let node = match target {
                Target::Group(group) => Node::Group(group, entity.kind),
                Target::Entity(group, at) => Node::Entity(group, at),
            };
            size.add(self.visit(node, Some((group, base.at))));
        } else {
            size.add(self.base(group, entity.kind));
        }
        size.add(self.snippets(group, entity.kind));
        size.add(self.applied(group, &links.snippets, &entity.snippets, entity.kind));
        size
    }

    fn base(&mut self, group: usize, kind: EntityKind) -> Size {
        let mut size = Size::default();
        if let (Some(base), Some(to)) = (&self.groups[group].base, self.links.groups[group].base) {
            size.add(self.visit(Node::Group(to, kind), Some((group, base.at))));
        }
        size
    }

    fn snippets(&mut self, group: usize, kind: EntityKind) -> Size {
        let links = &self.links.groups[group].snippets;
        self.applied(group, links, &self.groups[group].snippets, kind)
    }

    fn applied(
        &mut self,
        group: usize,
        links: &[Option<usize>],
        references: &[Reference],
        kind: EntityKind,
    ) -> Size {
        let mut size = Size::default();
        for (snippet, reference) in links.iter().zip(references) {
            if let Some(snippet) = snippet {
                size.add(self.visit(Node::Group(*snippet, kind), Some((group, reference.at))));
            }
        }
        size
    }

    fn cycle(&mut self, start: usize, by: Option<(usize, At)>) {
        let mut names: Vec<String> = self.path[start..]
            .iter()
            .map(|node| self.name(*node))
            .collect();
        names.dedup();
        names.extend(
            names
                .first()
                .cloned()
                .filter(|first| names.len() == 1 || names.last() != Some(first)),
        );
        self.say(
            by,
            format!("inheritance goes in a circle: {}", names.join(" -> ")),
        );
    }

    fn say(&mut self, by: Option<(usize, At)>, message: String) {
        let Some((group, at)) = by else { return };
        let mut report = Report::new(self.groups[group].file.clone());
        report.error(at, message);
        for remark in report.into_diagnostics() {
            let known = self
                .remarks
                .iter()
                .any(|known| known.location == remark.location);
            if !known && self.remarks.len() < REMARKS_MAX {
                self.remarks.push(remark);
            }
        }
    }

    fn place(&self, node: Node) -> (usize, At) {
        match node {
            Node::Group(group, _) => (group, self.groups[group].at),
            Node::Entity(group, at) => (group, self.groups[group].entities[at].element.at),
        }
    }

    fn name(&self, node: Node) -> String {
        let (Node::Group(group, _) | Node::Entity(group, _)) = node;
        self.groups[group].full_name()
    }
}

const DEPTH_MAX: usize = 128;
const LAYERS_MAX: usize = 256;
const HINTED_NAMES_MAX: usize = 256;
const REMARKS_MAX: usize = 200;
