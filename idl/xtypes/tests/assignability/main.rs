//! Assignability, rule by rule and in both directions.

mod leaves;
mod members;

use spindle_dds_idl_runtime::Representation;
use spindle_dds_xtypes::graph::{
    Annotations, Branch, Definition, Discriminator, Enum, Extensibility, Literal, Member, Name,
    Primitive, Struct, TryConstruct, Type, TypeGraph, TypeIndex, Union,
};
use spindle_dds_xtypes::{Consistency, Resolved, assignable, describe};

const LONG: Type = Type::Primitive(Primitive::Int32);
const OCTET: Type = Type::Primitive(Primitive::Byte);

fn structure(extensibility: Extensibility, members: Vec<Member>) -> Definition {
    Definition::Struct(Struct {
        extensibility,
        nested: false,
        autoid_hash: false,
        base: None,
        members,
    })
}

fn enumeration(extensibility: Extensibility, literals: &[(&str, i32)]) -> Definition {
    let literals = literals.iter().map(|(name, value)| Literal {
        name: Name::from(*name),
        value: *value,
        default: *value == 0,
        custom: Vec::new(),
    });
    Definition::Enum(Enum {
        bit_bound: 32,
        extensibility: Some(extensibility),
        ignore_literal_names: false,
        literals: literals.collect(),
    })
}

/// Branches: labels, name, type; no labels make the default.
fn union(extensibility: Extensibility, branches: Vec<(&[i32], &str, Type)>) -> Definition {
    let branches = (1..).zip(branches).map(|(id, (labels, name, ty))| Branch {
        labels: labels.to_vec(),
        default: labels.is_empty(),
        member: Member::new(name, id, ty),
    });
    Definition::Union(Union {
        extensibility,
        nested: false,
        autoid_hash: false,
        discriminator: Discriminator {
            ty: LONG,
            key: false,
            try_construct: TryConstruct::Discard,
            default: None,
            annotations: Annotations::default(),
        },
        branches: branches.collect(),
    })
}

fn root(graph: TypeGraph, index: TypeIndex) -> Resolved {
    Resolved {
        graph,
        ty: Type::Declared(index),
    }
}

fn alone(definition: Definition) -> Resolved {
    let mut graph = TypeGraph::new();
    let index = graph.add("m::T", definition);
    root(graph, index)
}

/// A structure with one member `m` of a declared type, both with this extensibility.
fn around(extensibility: Extensibility, inner: Definition, key: bool) -> Resolved {
    let mut graph = TypeGraph::new();
    let inner = graph.add("m::Inner", inner);
    let member = Member {
        key,
        ..Member::new("m", 0, Type::Declared(inner))
    };
    let index = graph.add("m::T", structure(extensibility, vec![member]));
    root(graph, index)
}

/// An appendable structure with one member `m`.
fn of(ty: Type) -> Resolved {
    let member = Member::new("m", 0, ty);
    alone(structure(Extensibility::Appendable, vec![member]))
}

fn strict() -> Consistency {
    Consistency {
        ignore_sequence_bounds: false,
        ignore_string_bounds: false,
        ..Consistency::default()
    }
}

fn said(reader: &Resolved, writer: &Resolved, consistency: &Consistency) -> String {
    let found = assignable(
        Some(reader),
        Some(writer),
        Representation::Xcdr2,
        consistency,
    );
    // The minimal form must give the same result, except for names.
    let minimal = [reader, writer].map(minimal);
    let short = assignable(
        Some(&minimal[0]),
        Some(&minimal[1]),
        Representation::Xcdr2,
        consistency,
    );
    assert_eq!(found.is_ok(), short.is_ok(), "{short:?}");
    found
        .err()
        .map_or_else(String::new, |found| found.to_string())
}

fn minimal(resolved: &Resolved) -> Resolved {
    let found = describe(&resolved.graph).expect("short names");
    let mut registry = spindle_dds_xtypes::Registry::new();
    registry
        .insert_graph(&resolved.graph, &found)
        .expect("right hashes");
    let Type::Declared(index) = resolved.ty else {
        return resolved.clone();
    };
    let identifier = &found.minimal(index).expect("described").identifier;
    registry.resolve(identifier).expect("resolves")
}

#[track_caller]
fn check_with(consistency: &Consistency, one: &Resolved, other: &Resolved, both: [&str; 2]) {
    assert_eq!(said(one, one, consistency), "", "the same is the same");
    assert_eq!(said(other, other, consistency), "", "the same is the same");
    assert_eq!(
        said(one, other, consistency),
        both[0],
        "the first reads the second"
    );
    assert_eq!(
        said(other, one, consistency),
        both[1],
        "the second reads the first"
    );
}

#[track_caller]
fn check(one: &Resolved, other: &Resolved, both: [&str; 2]) {
    check_with(&Consistency::default(), one, other, both);
}
