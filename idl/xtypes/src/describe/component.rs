//! Strongly connected components of types: Tarjan's algorithm, without recursion.

use crate::graph::{TypeGraph, TypeIndex};
use crate::object::Form;

/// Types that all contain each other, or a single type.
pub(super) struct Component {
    /// Ordered by name.
    pub(super) types: Vec<TypeIndex>,
    /// Whether the types contain themselves; always true for several.
    pub(super) recursive: bool,
}

/// A type on the explicit stack of the search.
struct Visit {
    index: usize,
    next: usize,
}

struct Search<'e> {
    /// For each node the nodes that it names.
    edges: &'e [Vec<usize>],
    /// Number in the order of discovery, and the lowest that can be reached.
    numbers: Vec<Option<(usize, usize)>>,
    discovered: usize,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    path: Vec<Visit>,
    found: Vec<Vec<usize>>,
}

/// The components of a graph in a form, each after those that it depends on.
pub(super) fn components<F: Form>(graph: &TypeGraph) -> Vec<Component> {
    let edges = (0..graph.len()).map(|index| named::<F>(graph, index));
    let edges: Vec<Vec<usize>> = edges.collect();
    let component = |nodes: Vec<usize>| {
        let recursive = nodes.iter().any(|node| edges[*node].contains(node)) || nodes.len() > 1;
        let mut types: Vec<_> = nodes.iter().map(|node| TypeIndex(*node as u32)).collect();
        types.sort_by_key(|index| (graph.declaration(*index).name.clone(), *index));
        Component { types, recursive }
    };
    strongly_connected(&edges)
        .into_iter()
        .map(component)
        .collect()
}

/// The strongly connected components of any graph, given by the nodes that each node names,
/// all less than the number of nodes. Each component comes after those that it names.
pub(crate) fn strongly_connected(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let count = edges.len();
    let mut search = Search {
        edges,
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

/// The types that a type names in a form, possibly including itself.
fn named<F: Form>(graph: &TypeGraph, index: usize) -> Vec<usize> {
    let mut names = Vec::new();
    let mut found = |named: TypeIndex| {
        let named = named.0 as usize;
        if named < graph.len() {
            names.push(named);
        }
    };
    let index = TypeIndex(index as u32);
    graph.names(index, &mut found);
    if F::IS_ANNOTATED {
        graph.annotations(index, &mut found);
    }
    names.sort_unstable();
    names.dedup();
    names
}

impl Search<'_> {
    fn enter(&mut self, index: usize) {
        self.numbers[index] = Some((self.discovered, self.discovered));
        self.discovered += 1;
        self.stack.push(index);
        self.on_stack[index] = true;
        self.path.push(Visit { index, next: 0 });
    }

    /// Lowers the number known to be reachable from `index` to at most `low`.
    fn lower(&mut self, index: usize, low: usize) {
        if let Some((_, lowest)) = &mut self.numbers[index] {
            *lowest = low.min(*lowest);
        }
    }

    fn walk(&mut self) {
        while let Some(visit) = self.path.last_mut() {
            let index = visit.index;
            let Some(next) = self.edges[index].get(visit.next).copied() else {
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
        self.path.pop();
        let Some((number, low)) = self.numbers[index] else {
            return;
        };
        if let Some(outer) = self.path.last().map(|visit| visit.index) {
            self.lower(outer, low);
        }
        if number != low {
            return;
        }
        let mut nodes = Vec::new();
        while let Some(top) = self.stack.pop() {
            self.on_stack[top] = false;
            nodes.push(top);
            if top == index {
                break;
            }
        }
        self.found.push(nodes);
    }
}

/// A type and its dependencies in a form, itself first, each once.
pub(super) fn reachable<F: Form>(graph: &TypeGraph, index: TypeIndex) -> Vec<TypeIndex> {
    let mut seen = vec![false; graph.len()];
    let mut found: Vec<TypeIndex> = Vec::new();
    let mut waiting = vec![index];
    while let Some(index) = waiting.pop() {
        match seen.get_mut(index.0 as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        found.push(index);
        let names = named::<F>(graph, index.0 as usize);
        waiting.extend(names.into_iter().rev().map(|index| TypeIndex(index as u32)));
    }
    found
}
