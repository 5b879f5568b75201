//! Which types contain each other: Tarjan's algorithm, without recursion.

use crate::graph::{TypeGraph, TypeIndex};

/// Types each of which contains all others, or one type alone.
pub(super) struct Component {
    /// By the order of their names.
    pub(super) types: Vec<TypeIndex>,
    /// Whether the one type contains itself; so are several.
    pub(super) recursive: bool,
}

/// A type on the way down.
struct Visit {
    index: usize,
    names: Vec<usize>,
    next: usize,
}

struct Search<'g> {
    graph: &'g TypeGraph,
    /// Number in the order of discovery, and the lowest that can be reached.
    numbers: Vec<Option<(usize, usize)>>,
    discovered: usize,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    path: Vec<Visit>,
    found: Vec<Component>,
}

/// The components of a graph, each after those that it is made of.
pub(super) fn components(graph: &TypeGraph) -> Vec<Component> {
    let count = graph.len();
    let mut search = Search {
        graph,
        numbers: vec![None; count],
        discovered: 0,
        stack: Vec::new(),
        on_stack: vec![false; count],
        path: Vec::new(),
        found: Vec::new(),
    };
    for index in 0..count {
        if search.numbers[index].is_none() {
            search.enter(index);
            search.walk();
        }
    }
    search.found
}

/// The types that a type names, itself perhaps among them.
fn named(graph: &TypeGraph, index: usize) -> Vec<usize> {
    let mut names = Vec::new();
    graph.names(TypeIndex(index as u32), &mut |named| {
        let named = named.0 as usize;
        if named < graph.len() && !names.contains(&named) {
            names.push(named);
        }
    });
    names
}

impl Search<'_> {
    fn enter(&mut self, index: usize) {
        self.numbers[index] = Some((self.discovered, self.discovered));
        self.discovered += 1;
        self.stack.push(index);
        self.on_stack[index] = true;
        let names = named(self.graph, index);
        self.path.push(Visit {
            index,
            names,
            next: 0,
        });
    }

    /// The lowest number known to be reached from `index` is at most `low`.
    fn lower(&mut self, index: usize, low: usize) {
        if let Some((_, lowest)) = &mut self.numbers[index] {
            *lowest = low.min(*lowest);
        }
    }

    fn walk(&mut self) {
        while let Some(visit) = self.path.last_mut() {
            let index = visit.index;
            let Some(next) = visit.names.get(visit.next).copied() else {
                self.leave(index);
                continue;
            };
            visit.next += 1;
            match self.numbers[next] {
                None => self.enter(next),
                Some((number, _)) if self.on_stack[next] => self.lower(index, number),
                Some(_) => {}
            }
        }
    }

    fn leave(&mut self, index: usize) {
        let visit = self.path.pop();
        let Some((number, low)) = self.numbers[index] else {
            return;
        };
        if let Some(outer) = self.path.last().map(|visit| visit.index) {
            self.lower(outer, low);
        }
        if number != low {
            return;
        }
        let mut types = Vec::new();
        while let Some(top) = self.stack.pop() {
            self.on_stack[top] = false;
            types.push(TypeIndex(top as u32));
            if top == index {
                break;
            }
        }
        let recursive = types.len() > 1 || visit.is_some_and(|visit| visit.names.contains(&index));
        types.sort_by_key(|index| (self.graph.declaration(*index).name.clone(), *index));
        self.found.push(Component { types, recursive });
    }
}

/// A type and all that it is made of, itself first, without the same twice.
pub(super) fn reachable(graph: &TypeGraph, index: TypeIndex) -> Vec<TypeIndex> {
    let mut seen = vec![false; graph.len()];
    let mut found: Vec<TypeIndex> = Vec::new();
    let mut waiting = vec![index];
    while let Some(index) = waiting.pop() {
        match seen.get_mut(index.0 as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        found.push(index);
        let names = named(graph, index.0 as usize);
        waiting.extend(names.into_iter().rev().map(|index| TypeIndex(index as u32)));
    }
    found
}
