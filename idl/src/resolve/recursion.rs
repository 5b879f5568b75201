//! Recursive types: which members are boxed for it, and which types have no finite
//! value.
//!
//! Types contain each other by value through members and arrays, not through
//! sequences, maps and external members. On a cycle of containment, optional
//! members are boxed; a cycle without an optional member is an error. No function
//! recurses along a chain of types.

use super::Resolver;
use super::cycles::cycles;
use super::types::Facts;
use crate::limits::TYPE_DEPTH_MAX;
use crate::model::{Member, Struct, Type, TypeId, TypeKind};

impl Resolver<'_> {
    /// Completes the facts about types once all are declared.
    pub(super) fn close_recursion(&mut self) {
        if !self.facts.iter().any(|facts| facts.incomplete) {
            return;
        }
        self.box_members();
        if self.report_infinite_types() || self.sink.error_count() > 0 {
            return;
        }
        if let Some(id) = self.without_value() {
            let message = format!(
                "`{}` has no finite value: its mandatory members contain it again",
                self.name_of(id)
            );
            if let Some(span) = self.spans.get(id.0) {
                let hint = "make one of them `@optional`, or use a sequence or another branch in \
                            between";
                self.sink.error_hint(*span, message, hint);
            }
            return;
        }
        self.compute_sizes();
        if let Some(id) = self.depths() {
            let message = format!(
                "`{}` nests types more than {TYPE_DEPTH_MAX} levels deep",
                self.name_of(id)
            );
            self.report_at(id, message);
            return;
        }
        for index in 0..self.types.len() {
            let facts = self.facts.get(index).copied().unwrap_or_default();
            if let Err(message) = facts.within_limits() {
                let message = format!("`{}` {message}", self.name_of(TypeId(index)));
                self.report_at(TypeId(index), message);
            }
        }
    }

    fn name_of(&self, id: TypeId) -> String {
        self.types
            .get(id.0)
            .map_or_else(String::new, |decl| decl.name.clone())
    }

    fn report_at(&mut self, id: TypeId, message: String) {
        if let Some(span) = self.spans.get(id.0) {
            self.sink.error(*span, message);
        }
    }

    /// Boxes the optional members on cycles.
    fn box_members(&mut self) {
        let cycle = cycles(&self.value_edges());
        for (index, decl) in self.types.iter_mut().enumerate() {
            let TypeKind::Struct(structure) = &mut decl.kind else {
                continue;
            };
            let own = cycle.get(index).copied().flatten();
            for member in &mut structure.members {
                let part = contained(&member.ty).and_then(|id| cycle.get(id.0).copied().flatten());
                member.boxed |= member.optional && own.is_some() && part == own;
            }
        }
        self.box_inherited();
    }

    /// An inherited member is boxed exactly if it is in the base.
    fn box_inherited(&mut self) {
        for index in 0..self.types.len() {
            let mut bases = Vec::new();
            let mut at = self.struct_at(TypeId(index));
            while let Some(id) = at.and_then(|structure| structure.base) {
                bases.push(id);
                at = self.struct_at(id);
            }
            for id in bases {
                let boxed: Vec<bool> = self
                    .struct_at(id)
                    .map(|base| base.members.iter().skip(base.inherited))
                    .map_or_else(Vec::new, |own| own.map(|member| member.boxed).collect());
                let first = self.struct_at(id).map_or(0, |base| base.inherited);
                let Some(TypeKind::Struct(structure)) =
                    self.types.get_mut(index).map(|decl| &mut decl.kind)
                else {
                    continue;
                };
                let copies = structure.members.iter_mut().skip(first);
                copies
                    .zip(boxed)
                    .for_each(|(copy, boxed)| copy.boxed = boxed);
            }
        }
    }

    fn struct_at(&self, id: TypeId) -> Option<&Struct> {
        match &self.types.get(id.0)?.kind {
            TypeKind::Struct(structure) => Some(structure),
            _ => None,
        }
    }

    /// Reports the remaining cycles, each with its path.
    fn report_infinite_types(&mut self) -> bool {
        let edges = self.value_edges();
        let cycle = cycles(&edges);
        let mut reported = Vec::new();
        for (index, number) in cycle.iter().enumerate() {
            let Some(number) = number.filter(|number| !reported.contains(number)) else {
                continue;
            };
            reported.push(number);
            let path = self.path_of_cycle(TypeId(index), &edges, &cycle);
            let message = format!(
                "`{}` would contain itself without end: {path}",
                self.name_of(TypeId(index))
            );
            if let Some(span) = self.spans.get(index) {
                let hint =
                    "put a sequence in between, or make a member of it `@optional` or `@external`";
                self.sink.error_hint(*span, message, hint);
            }
        }
        !reported.is_empty()
    }

    /// Reports a type that contains itself through mandatory members behind pointers, and so
    /// has no finite value, not even a default.
    fn without_value(&self) -> Option<TypeId> {
        let mut ending = vec![false; self.types.len()];
        loop {
            let mut found = false;
            for (index, decl) in self.types.iter().enumerate() {
                if !ending[index] && ends(&decl.kind, &ending) {
                    ending[index] = true;
                    found = true;
                }
            }
            if !found {
                return ending.iter().position(|ends| !ends).map(TypeId);
            }
        }
    }

    /// The shortest cycle from a type back to itself, as a list of members.
    fn path_of_cycle(
        &self,
        start: TypeId,
        edges: &[Vec<TypeId>],
        cycle: &[Option<usize>],
    ) -> String {
        let mut from: Vec<Option<TypeId>> = vec![None; edges.len()];
        let mut queue = std::collections::VecDeque::from([start]);
        'search: while let Some(id) = queue.pop_front() {
            for next in edges.get(id.0).into_iter().flatten() {
                let same = cycle.get(next.0) == cycle.get(start.0);
                let fresh = from.get(next.0).is_some_and(Option::is_none);
                if same && fresh {
                    if let Some(place) = from.get_mut(next.0) {
                        *place = Some(id);
                    }
                    if *next == start {
                        break 'search;
                    }
                    queue.push_back(*next);
                }
            }
        }
        let mut steps = Vec::new();
        let mut at = start;
        while let Some(before) = from.get(at.0).copied().flatten() {
            steps.push(self.step(before, at));
            at = before;
            if at == start || steps.len() > 8 {
                break;
            }
        }
        steps.reverse();
        steps.join(", ")
    }

    /// The `A::member` through which one type contains another.
    fn step(&self, outer: TypeId, inner: TypeId) -> String {
        let name = self.name_of(outer);
        let members: Vec<&Member> = match self.types.get(outer.0).map(|decl| &decl.kind) {
            Some(TypeKind::Struct(structure)) => structure.members.iter().collect(),
            Some(TypeKind::Union(union)) => {
                union.branches.iter().map(|branch| &branch.member).collect()
            }
            _ => return format!("`{name}`"),
        };
        let member = members
            .iter()
            .find(|member| !member.boxed && contained(&member.ty) == Some(inner));
        match member {
            Some(member) => format!("`{name}::{}`", member.name),
            None => format!("`{name}`"),
        }
    }

    /// The types that each type contains by value.
    fn value_edges(&self) -> Vec<Vec<TypeId>> {
        let parts = |members: &mut dyn Iterator<Item = &Member>| {
            members
                .filter(|member| !member.boxed)
                .filter_map(|member| contained(&member.ty))
                .collect()
        };
        self.types
            .iter()
            .map(|decl| match &decl.kind {
                TypeKind::Struct(structure) => parts(&mut structure.members.iter()),
                TypeKind::Union(union) => {
                    parts(&mut union.branches.iter().map(|branch| &branch.member))
                }
                TypeKind::Alias(alias) => contained(&alias.ty).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect()
    }

    /// The sizes of types, parts first: containment by value has no cycles any more.
    fn compute_sizes(&mut self) {
        let edges = self.value_edges();
        let mut done = vec![false; edges.len()];
        for root in 0..edges.len() {
            let mut work = vec![(root, 0)];
            while let Some((node, at)) = work.pop() {
                if done.get(node).copied().unwrap_or(true) {
                    continue;
                }
                match edges.get(node).and_then(|parts| parts.get(at)) {
                    Some(part) => work.extend([(node, at + 1), (part.0, 0)]),
                    None => {
                        if let Some(done) = done.get_mut(node) {
                            *done = true;
                        }
                        self.compute_size(TypeId(node));
                    }
                }
            }
        }
    }

    fn compute_size(&mut self, id: TypeId) {
        let old = self.facts.get(id.0).copied().unwrap_or_default();
        let bytes = |member: &Member| match member.boxed {
            true => 8,
            false => self.facts_of(&member.ty).bytes,
        };
        let bytes = match self.types.get(id.0).map(|decl| &decl.kind) {
            Some(TypeKind::Struct(structure)) => {
                let members = structure.members.iter();
                members.map(bytes).fold(0, u64::saturating_add)
            }
            Some(TypeKind::Union(union)) => {
                let branches = union.branches.iter();
                let most = branches.map(|branch| bytes(&branch.member)).max();
                most.unwrap_or(0).saturating_add(8)
            }
            Some(TypeKind::Alias(alias)) => self.facts_of(&alias.ty).bytes,
            _ => old.bytes,
        };
        if let Some(facts) = self.facts.get_mut(id.0) {
            *facts = Facts {
                bytes,
                incomplete: false,
                ..old
            };
        }
    }

    /// Computes how deep types nest, where a recursive use counts as depth 0. Returns the
    /// first type that nests too deeply, if any.
    fn depths(&mut self) -> Option<TypeId> {
        let mut measured = Depths {
            all: vec![None; self.types.len()],
            open: Vec::new(),
            too_deep: false,
        };
        for index in 0..self.types.len() {
            self.depth(TypeId(index), &mut measured);
            if measured.too_deep {
                return Some(TypeId(index));
            }
        }
        for (facts, depth) in self.facts.iter_mut().zip(measured.all) {
            facts.depth = depth.unwrap_or(0);
        }
        None
    }

    /// Recursion depth is at most the limit of nesting.
    fn depth(&self, id: TypeId, measured: &mut Depths) -> u32 {
        if let Some(Some(depth)) = measured.all.get(id.0) {
            return *depth;
        }
        measured.too_deep |= measured.open.len() > TYPE_DEPTH_MAX as usize;
        if measured.too_deep || measured.open.contains(&id) {
            return 0;
        }
        measured.open.push(id);
        let depth = match self.types.get(id.0).map(|decl| &decl.kind) {
            Some(TypeKind::Struct(structure)) => {
                let members = structure.members.iter();
                members
                    .map(|member| self.depth_of(&member.ty, measured))
                    .max()
            }
            Some(TypeKind::Union(union)) => {
                let branches = union.branches.iter();
                branches
                    .map(|branch| self.depth_of(&branch.member.ty, measured))
                    .max()
            }
            Some(TypeKind::Alias(alias)) => Some(self.depth_of(&alias.ty, measured)),
            _ => None,
        };
        measured.open.pop();
        let depth = depth.unwrap_or(0).saturating_add(1);
        if let Some(place) = measured.all.get_mut(id.0) {
            *place = Some(depth);
        }
        depth
    }

    /// Recursive; the parser limits the nesting of written types.
    fn depth_of(&self, ty: &Type, measured: &mut Depths) -> u32 {
        match ty {
            Type::Named(id) => self.depth(*id, measured),
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.depth_of(&element.ty, measured).saturating_add(1)
            }
            Type::Map { key, value, .. } => {
                let key = self.depth_of(&key.ty, measured);
                key.max(self.depth_of(&value.ty, measured))
                    .saturating_add(1)
            }
            _ => 0,
        }
    }
}

struct Depths {
    all: Vec<Option<u32>>,
    /// The types on the current path.
    open: Vec<TypeId>,
    too_deep: bool,
}

/// Whether a type has a finite value, assuming that those of `ending` have.
fn ends(kind: &TypeKind, ending: &[bool]) -> bool {
    let has = |ty: &Type| contained(ty).is_none_or(|id| ending.get(id.0).is_none_or(|ends| *ends));
    match kind {
        TypeKind::Struct(structure) => {
            let mut members = structure.members.iter();
            members.all(|member| member.optional || has(&member.ty))
        }
        TypeKind::Union(union) => {
            let mut branches = union.branches.iter();
            branches.any(|branch| has(&branch.member.ty))
        }
        TypeKind::Alias(alias) => has(&alias.ty),
        _ => true,
    }
}

/// The type that a value of this type contains.
fn contained(ty: &Type) -> Option<TypeId> {
    match ty {
        Type::Named(id) => Some(*id),
        Type::Array { element, .. } => contained(&element.ty),
        _ => None,
    }
}
