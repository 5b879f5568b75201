//! Steps of comparisons: ordinary types take few, and comparisons of types that are built to
//! take many are given up.

use super::*;
use crate::graph::{
    Alias, Branch, Discriminator, Element, Enum, Literal, Member, Name, Primitive, Range, Struct,
    Union,
};
use crate::registry::Registry;

const LONG: Type = Type::Primitive(Primitive::Int32);

fn structure(members: Vec<Member>) -> Definition {
    Definition::Struct(Struct {
        extensibility: Extensibility::Mutable,
        nested: false,
        autoid_hash: false,
        base: None,
        members,
    })
}

fn member(id: u32, ty: Type) -> Member {
    Member::new(&format!("m{id}"), id, ty)
}

/// The type as resolved from its minimal objects, and the size of those in bytes.
fn announced(graph: TypeGraph, root: TypeIndex) -> (Resolved, usize) {
    let described = crate::describe(&graph).unwrap();
    let bytes = described.minimal_objects(&graph, root).to_bytes().unwrap();
    let mut registry = Registry::new();
    registry.insert_bytes(&bytes).unwrap();
    let identifier = &described.minimal(root).unwrap().identifier;
    (registry.resolve(identifier).unwrap(), bytes.len())
}

fn steps(reader: &Resolved, writer: &Resolved) -> (Result<(), Difference>, usize) {
    let consistency = Consistency::default();
    let (found, steps) = compare(reader, writer, Representation::Xcdr2, &consistency);
    (found.map_err(|mismatch| mismatch.difference), steps)
}

/// `levels` typedefs, each a map of the one before to itself, with `2^levels` paths to the
/// string at the end.
fn maps_of_maps(levels: u32, bound: u32) -> Resolved {
    let mut graph = TypeGraph::new();
    let mut ty = Type::String8(Some(bound));
    for level in 0..levels {
        let alias = Alias {
            ty: Type::map(ty.clone(), ty, None),
            unit: None,
            range: Range::default(),
            custom: Vec::new(),
        };
        let index = graph.add(&format!("m::Map{level}"), Definition::Alias(alias));
        ty = Type::Declared(index);
    }
    let root = graph.add("m::T", structure(vec![member(0, ty)]));
    announced(graph, root).0
}

#[test]
fn a_use_of_a_type_is_compared_once_however_many_ways_lead_there() {
    let (reader, writer) = (maps_of_maps(50, 4), maps_of_maps(50, 5));
    let (found, steps) = steps(&reader, &writer);
    assert_eq!(found, Ok(()));
    assert!(steps < 50 * 50 * 4, "{steps}");
}

/// Layers of structures, each with members of structures of the next layer. The seed selects
/// them, so that both sides traverse their layers in different orders, and nearly all pairs
/// are compared.
fn mesh([layer, members, layers]: [u32; 3], seed: u32) -> (Resolved, usize) {
    let mut graph = TypeGraph::new();
    let mut below: Vec<Type> = vec![Type::String8(Some(1 + seed)); layer as usize];
    let pick = |at: u32, id: u32| {
        let mixed = (at * 31 + id).wrapping_mul(0x9e37_79b9) ^ seed.wrapping_mul(0x85eb_ca6b);
        (mixed.wrapping_mul(0xc2b2_ae35) >> 8) % layer
    };
    for depth in 0..layers {
        let next = (0..layer).map(|at| {
            let of = |id: u32| below[pick(at + depth * layer, id) as usize].clone();
            // Without a unique member it might equal another type.
            let own = member(1000 + at, LONG);
            let all = (0..members).map(|id| member(id, of(id))).chain([own]);
            let index = graph.add(&format!("m::S{depth}_{at}"), structure(all.collect()));
            Type::Declared(index)
        });
        below = next.collect();
    }
    let all = below.into_iter().zip(0..).map(|(ty, id)| member(id, ty));
    let root = graph.add("m::T", structure(all.collect()));
    announced(graph, root)
}

#[test]
fn the_worst_that_can_be_announced_is_given_up_in_time() {
    // Only one use of a type is counted without a check of the limit.
    let limit = COMPARE_STEPS_MAX + (64 << 10);
    for (members, layers) in [(12, 3), (5, 4), (2, 6)] {
        // As wide as the announcement of one endpoint allows.
        let widths = (1..=8).rev().map(|width| [width * 4, members, layers]);
        let fits = |shape: &[u32; 3]| mesh(*shape, 1).1 <= 16 << 10;
        let shape = widths.into_iter().find(fits).unwrap();
        let (found, steps) = steps(&mesh(shape, 1).0, &mesh(shape, 2).0);
        assert_eq!(found, Ok(()), "{shape:?}");
        assert!(steps < 30_000, "{shape:?}: {steps}");
    }
    // A higher limit would allow more steps.
    let (found, steps) = steps(&mesh([160, 40, 3], 1).0, &mesh([160, 40, 3], 2).0);
    assert_eq!(found, Err(Difference::TooLarge));
    assert!(steps < limit, "{steps}");
}

fn literals(count: u32) -> Definition {
    let literal = |value: u32| Literal {
        name: Name::Text(format!("L{value}")),
        value: value as i32,
        default: value == 0,
        custom: Vec::new(),
    };
    Definition::Enum(Enum {
        bit_bound: 32,
        extensibility: Some(Extensibility::Appendable),
        ignore_literal_names: false,
        literals: (0..count).map(literal).collect(),
    })
}

/// A structure with this many key members, a union with this many branches and an enumeration
/// with this many literals.
fn large(count: u32, more: u32) -> Resolved {
    let mut graph = TypeGraph::new();
    let color = graph.add("m::Color", literals(count + more));
    let branch = |id: u32| Branch {
        labels: vec![id as i32],
        default: false,
        member: member(id, LONG),
    };
    let union = Union {
        extensibility: Extensibility::Appendable,
        nested: false,
        autoid_hash: false,
        discriminator: Discriminator {
            ty: LONG,
            key: false,
            try_construct: Default::default(),
            default: None,
            annotations: Default::default(),
        },
        branches: (0..count + more).map(branch).collect(),
    };
    let union = graph.add("m::Union", Definition::Union(union));
    let keys = (0..count).map(|id| member(id, Type::Declared(color)).key());
    let last = member(count, Type::Declared(union));
    let list = Type::Sequence {
        element: Box::new(Element::of(Type::String8(Some(4 + more)))),
        bound: None,
    };
    let members = keys.chain([last, member(count + 1, list)]).collect();
    let root = graph.add("m::T", structure(members));
    announced(graph, root).0
}

/// The steps are linear in the size of the types.
#[test]
fn large_types_take_few_steps() {
    for count in [250, 1000, 4000] {
        let (reader, writer) = (large(count, 1), large(count, 0));
        let (found, steps) = steps(&reader, &writer);
        assert_eq!(found, Ok(()));
        assert!(steps < count as usize * 25, "{steps} of {count}");
    }
}
