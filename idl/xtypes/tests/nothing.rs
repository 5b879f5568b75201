//! XTypes 1.3 §7.4.1.1.5: in XCDR1 an optional member is absent if its length is 0, so a value
//! that takes no bytes is decoded as absent. The compiler warns of such members.

use spindle_dds_idl_runtime::Representation;
use spindle_dds_xtypes::graph::{
    Definition, Extensibility, Member, Primitive, Struct, Type, TypeGraph,
};
use spindle_dds_xtypes::{DynamicType, Value};

fn structure(extensibility: Extensibility, members: Vec<Member>) -> Definition {
    Definition::Struct(Struct {
        extensibility,
        nested: false,
        autoid_hash: false,
        base: None,
        members,
    })
}

/// Whether the optional member of type `inner` is present after encoding and decoding.
fn survives(outer: Extensibility, inner: Extensibility, representation: Representation) -> bool {
    let mut graph = TypeGraph::new();
    let nothing = graph.add("Nothing", structure(inner, Vec::new()));
    let members = vec![
        Member::new("maybe", 0, Type::Declared(nothing)).optional(),
        Member::new("tail", 1, Type::Primitive(Primitive::Int32)),
    ];
    let holder = graph.add("Holder", structure(outer, members));
    let ty = DynamicType::new(graph, Type::Declared(holder));
    let tail = Value::Int32(7);
    let value = Value::Struct(vec![Some(Value::Struct(Vec::new())), Some(tail.clone())]);
    let data = ty.data(value.clone()).expect("is of the type");
    let bytes = data.encode(representation).expect("is in bounds");
    let read = ty.decode(&bytes, ty.encapsulation(representation));
    let read = read.expect("decodes").into_value();
    if read == value {
        return true;
    }
    assert_eq!(read, Value::Struct(vec![None, Some(tail)]));
    false
}

#[test]
fn optional_values_without_bytes() {
    use Extensibility::{Appendable, Final, Mutable};
    for outer in [Final, Appendable, Mutable] {
        for inner in [Final, Appendable, Mutable] {
            assert!(survives(outer, inner, Representation::Xcdr2));
            // In a parameter list a header marks the presence of a member, and a sentinel the
            // end.
            let told = outer == Mutable || inner == Mutable;
            assert_eq!(survives(outer, inner, Representation::Xcdr1), told);
        }
    }
}
