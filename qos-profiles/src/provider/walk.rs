//! A walk over all inheritance, so that everything after it is bounded.
//!
//! ```text
//!   group (profile, kind of entity) ──▶ its entities, its base, its snippets
//!   entity                          ──▶ its base, or its group's; snippets of both
//! ```
//!
//! An edge back onto the path is a cycle; a path or an inheritance of absurd size is
//! refused. Each node is visited once, so the walk takes as long as there are edges.

use std::collections::HashMap;

use crate::diagnostic::{At, Diagnostic, Report};
use crate::provider::links::{Links, Target};
use crate::provider::profile::STEPS_MAX;
use crate::xml::entity::EntityKind;
use crate::xml::library::{Group, Reference};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Group(usize, EntityKind),
    Entity(usize, usize),
}

impl Node {
    fn of(target: Target, kind: EntityKind) -> Self {
        match target {
            Target::Group(group) => Self::Group(group, kind),
            Target::Entity(group, at) => Self::Entity(group, at),
        }
    }
}

/// How much inheriting a node takes.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// How many elements are applied.
    layers: usize,
    /// How many steps lead to the furthest.
    depth: usize,
    /// How many groups and entities are looked at.
    visits: usize,
}

impl Size {
    fn add(&mut self, inherited: Self) {
        self.layers += inherited.layers;
        self.visits = self.visits.saturating_add(inherited.visits);
        self.depth = self.depth.max(inherited.depth + 1);
    }
}

/// The walk over the graph, depth first.
pub(super) struct Walk<'a> {
    groups: &'a [Group],
    links: &'a Links,
    path: Vec<Node>,
    sizes: HashMap<Node, Size>,
    remarks: Vec<Diagnostic>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(groups: &'a [Group], links: &'a Links) -> Self {
        Self {
            groups,
            links,
            path: vec![],
            sizes: HashMap::new(),
            remarks: vec![],
        }
    }

    /// Walks everything and returns what is wrong with it.
    pub(super) fn run(mut self) -> Vec<Diagnostic> {
        for group in 0..self.groups.len() {
            for kind in EntityKind::ALL {
                self.visit(Node::Group(group, kind), None);
            }
        }
        self.remarks
    }

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
        size.visits = size.visits.saturating_add(1);
        let is_absurd = size.layers > LAYERS_MAX || size.visits > VISITS_MAX;
        if is_absurd || size.depth > DEPTH_MAX || self.path.len() > DEPTH_MAX {
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
                size.visits = size.visits.max(of_entity.visits);
            }
        }
        size
    }

    fn entity(&mut self, group: usize, at: usize) -> Size {
        let entity = &self.groups[group].entities[at];
        let links = &self.links.groups[group].entities[at];
        let mut size = Size {
            layers: 1,
            ..Size::default()
        };
        if let (Some(base), Some(target)) = (&entity.base, links.base) {
            size.add(self.visit(Node::of(target, entity.kind), Some((group, base.at))));
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
        links: &[Option<Target>],
        references: &[Reference],
        kind: EntityKind,
    ) -> Size {
        let mut size = Size::default();
        for (snippet, reference) in links.iter().zip(references) {
            if let Some(snippet) = snippet {
                size.add(self.visit(Node::of(*snippet, kind), Some((group, reference.at))));
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
/// Less than the steps that `Layers` takes.
const VISITS_MAX: usize = STEPS_MAX - 1;
const REMARKS_MAX: usize = 200;
