//! Cycles in a graph.

use crate::model::TypeId;

/// For each node the number of its cycle, if it is on one: the strongly connected
/// components with an edge (Tarjan 1972, with an explicit stack).
pub(super) fn cycles(edges: &[Vec<TypeId>]) -> Vec<Option<usize>> {
    let count = edges.len();
    let none = usize::MAX;
    let (mut order, mut low) = (vec![none; count], vec![0; count]);
    let mut on_stack = vec![false; count];
    let (mut stack, mut next) = (Vec::new(), 0);
    let mut cycle = vec![None; count];
    let targets = |node: usize| edges.get(node).map_or(&[][..], Vec::as_slice);
    for root in 0..count {
        if order[root] != none {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, at)) = work.pop() {
            if at == 0 {
                order[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(target) = targets(node)
                .get(at)
                .map(|id| id.0)
                .filter(|id| *id < count)
            {
                work.push((node, at + 1));
                if order[target] == none {
                    work.push((target, 0));
                } else if on_stack[target] {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] != order[node] {
                continue;
            }
            let alone = stack.last() == Some(&node) && !targets(node).contains(&TypeId(node));
            while let Some(member) = stack.pop() {
                on_stack[member] = false;
                cycle[member] = (!alone).then_some(node);
                if member == node {
                    break;
                }
            }
        }
    }
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_on_the_same_cycle_have_the_same_number() {
        let edges = [vec![1], vec![2], vec![1, 3], vec![3], vec![0], vec![]];
        let edges: Vec<Vec<TypeId>> = edges
            .iter()
            .map(|targets: &Vec<usize>| targets.iter().copied().map(TypeId).collect())
            .collect();
        let found = cycles(&edges);
        assert_eq!(found[0], None);
        assert!(found[1].is_some() && found[1] == found[2]);
        assert!(found[3].is_some() && found[3] != found[1]);
        assert_eq!(found[4..], [None, None]);
    }
}
