//! Untrusted bytes: damaged type objects, types that no IDL can declare, and invalid samples.
//! Nothing panics, and nothing takes excessive memory or time.

mod support;

use spindle_dds_idl_runtime::{Encapsulation, Representation};
use spindle_dds_xtypes::graph::{Definition, Extensibility, Member, Primitive, Struct, Type};
use spindle_dds_xtypes::object::{TypeIdentifier, TypeInformation, TypeObject, TypeObjects};
use spindle_dds_xtypes::{
    Consistency, DynamicType, Registry, TypeError, TypeGraph, assignable, describe,
};
use support::random::Random;
use support::vectors;

const ENCAPSULATIONS: [Encapsulation; 6] = [
    Encapsulation::CDR_LE,
    Encapsulation::PL_CDR_LE,
    Encapsulation::CDR2_LE,
    Encapsulation::D_CDR2_LE,
    Encapsulation::PL_CDR2_LE,
    Encapsulation::CDR_BE,
];

#[test]
fn damaged_objects_are_refused_or_read() {
    let mut random = Random::new(1);
    for vector in vectors() {
        for length in 0..vector.complete.len() {
            let _ = TypeObjects::from_bytes(&vector.complete[..length]);
        }
        for _ in 0..300 {
            let altered = random.alter(&vector.information);
            let _ = TypeInformation::from_bytes(&altered);
            for bytes in [&vector.complete, &vector.minimal] {
                let altered = random.alter(bytes);
                if let Ok(read) = TypeObjects::from_bytes(&altered) {
                    let again = read.to_bytes().expect("what was read can be written");
                    assert_eq!(TypeObjects::from_bytes(&again), Ok(read));
                }
            }
        }
    }
}

/// Damaged objects with the hash of the damaged bytes, which a check of hashes accepts.
#[test]
fn malformed_types_are_refused_or_used() {
    let mut random = Random::new(2);
    let (mut refused, mut used) = (0, 0);
    for vector in vectors() {
        for _ in 0..60 {
            let mut registry = Registry::new();
            let mut roots = Vec::new();
            for one in vector.objects() {
                let bytes = random.alter(&one.object.to_bytes().expect("fits"));
                for object in [TypeObject::from_bytes(&bytes).ok(), Some(one.object)] {
                    let Some(object) = object else { continue };
                    let Ok(identifier) = object.identifier() else {
                        continue;
                    };
                    roots.push(identifier.clone());
                    registry
                        .insert(identifier, object)
                        .expect("the hash is right");
                }
            }
            for root in roots {
                match registry.resolve(&root) {
                    Err(_) => refused += 1,
                    Ok(resolved) => {
                        used += 1;
                        let _ = describe(&resolved.graph);
                        let consistency = Consistency::default();
                        let found = assignable(
                            Some(&resolved),
                            Some(&resolved),
                            Representation::Xcdr1,
                            &consistency,
                        );
                        assert_eq!(found, Ok(()), "a type is assignable from itself");
                        exercise(&DynamicType::from(resolved), &mut random);
                    }
                }
            }
        }
    }
    assert!(refused > 100 && used > 1000, "{refused} {used}");
}

fn exercise(ty: &DynamicType, random: &mut Random) {
    let mut samples = vec![random.bytes(40)];
    if let Ok(data) = ty.default_data() {
        let _ = (data.to_string(), data.key_hash());
        serde_json::to_string(&data).expect("serialises");
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            if let Ok(bytes) = data.encode(representation) {
                samples.push(random.alter(&bytes));
                samples.push(bytes);
            }
        }
    }
    for sample in samples {
        for encapsulation in ENCAPSULATIONS {
            if let Ok(data) = ty.decode(&sample, encapsulation) {
                let _ = (data.to_string(), data.key_hash());
                let _ = data.encode(Representation::Xcdr2);
            }
        }
    }
}

fn structure(members: Vec<Member>) -> Definition {
    Definition::Struct(Struct {
        extensibility: Extensibility::Final,
        nested: false,
        autoid_hash: false,
        base: None,
        members,
    })
}

/// A type of few bytes whose values take an absurd amount of memory.
#[test]
fn large_arrays_are_not_made() {
    let mut graph = TypeGraph::new();
    let empty = graph.add("m::Empty", structure(Vec::new()));
    let dimensions = [u32::MAX / 2];
    let members = vec![Member::new(
        "a",
        0,
        Type::array(Type::Declared(empty), dimensions),
    )];
    let index = graph.add("m::T", structure(members));
    let ty = DynamicType::new(graph, Type::Declared(index));
    ty.default_data().expect_err("has too many values");
    ty.decode(&[0; 64], Encapsulation::CDR_LE)
        .expect_err("has too many values");
}

/// Each level contains the next one twice: `2^60` values of no bytes.
#[test]
fn types_that_double_are_not_made() {
    let mut graph = TypeGraph::new();
    let mut inner = graph.add("m::Empty", structure(Vec::new()));
    for level in 0..60 {
        let members = vec![
            Member::new("a", 0, Type::Declared(inner)),
            Member::new("b", 1, Type::Declared(inner)),
        ];
        inner = graph.add(&format!("m::T{level}"), structure(members));
    }
    let ty = DynamicType::new(graph, Type::Declared(inner));
    ty.default_data().expect_err("has too many values");
    ty.decode(&[0; 64], Encapsulation::CDR_LE)
        .expect_err("has too many values");
}

/// A type that directly contains itself has no values.
#[test]
fn types_without_values_have_none() {
    let mut graph = TypeGraph::new();
    let index = graph.reserve();
    let members = vec![Member::new("a", 0, Type::Declared(index))];
    graph.define(index, Some("m::T"), structure(members));
    let ty = DynamicType::new(graph, Type::Declared(index));
    ty.default_data().expect_err("has no end");
    ty.decode(&[0; 640], Encapsulation::CDR_LE)
        .expect_err("has no end");
}

/// Identifiers nest without delimiters.
#[test]
fn deep_identifiers_are_refused() {
    let mut identifier = TypeIdentifier::Primitive(Primitive::Byte);
    for _ in 0..10_000 {
        identifier = TypeIdentifier::Array {
            equivalence: spindle_dds_xtypes::object::Equivalence::Both,
            bounds: vec![1],
            element: Box::new(spindle_dds_xtypes::object::PlainElement {
                flags: Default::default(),
                identifier,
            }),
        };
        let Ok(bytes) = identifier.to_bytes() else {
            break;
        };
        if TypeIdentifier::from_bytes(&bytes).is_err() {
            return;
        }
    }
    panic!("a depth of 10,000 was read");
}

/// The hash is the name: another object is refused.
#[test]
fn hashes_are_checked() {
    let vector = vectors().remove(0);
    let objects = vector.objects();
    let mut registry = Registry::new();
    let outcome = registry.insert(objects[0].identifier.clone(), objects[1].object.clone());
    assert!(matches!(outcome, Err(TypeError::HashMismatch { .. })));
    assert!(registry.is_empty());
    // For a recursive type, when it is resolved.
    let recursive = support::recursive().remove(0);
    let mut objects = TypeObjects::from_bytes(&recursive.complete).expect("objects");
    let TypeIdentifier::Component(id) = &mut objects.0[0].identifier else {
        panic!("contains itself");
    };
    id.hash.0[0] ^= 1;
    let identifier = objects.0[0].identifier.clone();
    registry.insert_objects(objects).expect("is checked later");
    let outcome = registry.resolve(&identifier);
    assert!(
        matches!(outcome, Err(TypeError::HashMismatch { .. })),
        "{outcome:?}"
    );
}

#[test]
fn the_missing_object_is_named() {
    let vectors = vectors();
    let nested = vectors
        .iter()
        .find(|one| one.name == "vectors::Nested")
        .expect("is there");
    let mut registry = Registry::new();
    let objects = TypeObjects::from_bytes(&nested.complete)
        .expect("objects")
        .0;
    let first = objects[0].clone();
    registry
        .insert(first.identifier.clone(), first.object)
        .expect("the hash is right");
    let outcome = registry.resolve(&first.identifier);
    assert!(
        matches!(outcome, Err(TypeError::Unknown { .. })),
        "{outcome:?}"
    );
}

/// An annotation has no values: as the type of a sample it reads nothing from any bytes, and
/// writes nothing.
#[test]
fn annotations_are_types_of_nothing() {
    let bytes =
        b"\x26\0\0\0\xf1\x50\xff\0\0\0\0\0\x07\0\0\0\0\0\0\0\x20\0\0\0\0\x22\0\x22\x22\x22\0\
        \x22\x22\x22\x22\x22\x22\x22\x22\x22\x22\xc7\0";
    let object = TypeObject::from_bytes(bytes).expect("an annotation with a parameter");
    let identifier = object.identifier().expect("has a hash");
    let mut registry = Registry::new();
    let inserted = registry.insert(identifier.clone(), object);
    inserted.expect("the hash is right");
    let ty = DynamicType::from(registry.resolve(&identifier).expect("is all there"));
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let read = ty.decode(bytes, ty.encapsulation(representation));
        let written = read.expect("reads nothing").encode(representation);
        assert_eq!(written, Ok(Vec::new()), "{representation:?}");
        assert_eq!(ty.layout(representation).size_max, Some(0));
    }
}

/// An object with a NaN default equals itself, bit by bit.
#[test]
fn descriptions_are_equal_to_themselves() {
    let bytes =
        b"\x38\0\0\0\xf1\x50\xe2\0\0\0\0\0\x2c\0\0\0\x01\0\0\0\x17\0\0\0\xff\xfd\0\0\0\0\0\x09\
        \xfe\xf8\xef\xff\0\x09\x27\xa9\xff\0\x27\0\x08\0\0\0\x0e\x08\x81\0\x01\0\0\xff\0\0\x17\x48\0";
    let object = TypeObject::from_bytes(bytes).expect("an annotation with a parameter");
    let shown = format!("{object:?}");
    assert!(shown.contains("Float32("), "{shown}");
    let written = object.to_bytes().expect("what was read can be written");
    assert_eq!(TypeObject::from_bytes(&written), Ok(object));
}
