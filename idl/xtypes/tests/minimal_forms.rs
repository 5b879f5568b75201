//! Types known only in their minimal form, which has no names.

use spindle_dds_idl_runtime::Representation;
use spindle_dds_xtypes::graph::{
    Definition, Extensibility, Member, Primitive, Struct, Type, TypeGraph,
};
use spindle_dds_xtypes::{Consistency, Registry, Resolved, assignable, describe};

fn structure(extensibility: Extensibility, members: Vec<Member>) -> Definition {
    Definition::Struct(Struct {
        extensibility,
        nested: false,
        autoid_hash: false,
        base: None,
        members,
    })
}

/// The type as resolved from its minimal objects.
fn minimal(resolved: &Resolved) -> Resolved {
    let Type::Declared(index) = resolved.ty else {
        panic!("a declared type");
    };
    let described = describe(&resolved.graph).expect("short names");
    let objects = described.minimal_objects(&resolved.graph, index);
    let bytes = objects.to_bytes().expect("they fit");
    let mut registry = Registry::new();
    registry.insert_bytes(&bytes).expect("right hashes");
    let identifier = &described.minimal(index).expect("described").identifier;
    registry.resolve(identifier).expect("all are there")
}

/// Types that contain each other are numbered by their names, which the minimal form lacks:
/// the numbers in the received identifiers are kept.
#[test]
fn types_that_contain_each_other_are_the_same_wherever_they_are_met_first() {
    let make = |more: bool| {
        let mut graph = TypeGraph::new();
        let [one, other] = [0; 2].map(|_| graph.reserve());
        let list = |index| Type::sequence(Type::Declared(index), None);
        let members = |name, index| vec![Member::new(name, 0, list(index))];
        let (last, first) = (members("first", other), members("last", one));
        graph.define(one, Some("m::Last"), structure(Extensibility::Final, last));
        graph.define(
            other,
            Some("m::First"),
            structure(Extensibility::Final, first),
        );
        let mut members = vec![Member::new("list", 1, list(one))];
        if more {
            members.insert(0, Member::new("more", 2, list(other)));
        }
        let index = graph.add("m::T", structure(Extensibility::Mutable, members));
        let ty = Type::Declared(index);
        Resolved { graph, ty }
    };
    let types = [make(false), make(true)];
    let known = types.each_ref().map(minimal);
    for reader in types.iter().chain(&known) {
        for writer in types.iter().chain(&known) {
            let found = assignable(
                Some(reader),
                Some(writer),
                Representation::Xcdr2,
                &Consistency::default(),
            );
            assert_eq!(found, Ok(()));
        }
    }
}

/// If one of the types has names, the difference is described with them.
#[test]
fn a_difference_is_told_by_the_names_that_are_known() {
    let make = |primitive| {
        let mut graph = TypeGraph::new();
        let member = Member::new("v", 0, Type::Primitive(primitive));
        let inner = graph.add("m::Inner", structure(Extensibility::Final, vec![member]));
        let member = Member::new("inner", 0, Type::Declared(inner));
        let index = graph.add("m::T", structure(Extensibility::Final, vec![member]));
        let ty = Type::Declared(index);
        Resolved { graph, ty }
    };
    let (long, octet) = (make(Primitive::Int32), make(Primitive::Byte));
    let said = |reader: &Resolved, writer: &Resolved| {
        let found = assignable(
            Some(reader),
            Some(writer),
            Representation::Xcdr2,
            &Consistency::default(),
        );
        found.expect_err("they differ").to_string()
    };
    let expected = "T.inner.v: int32 cannot be read from octet";
    assert_eq!(said(&long, &octet), expected);
    assert_eq!(said(&long, &minimal(&octet)), expected);
    assert_eq!(said(&minimal(&long), &octet), expected);
}
