//! Which types a reader can read, rule by rule and both ways.

use spindle_dds_idl_runtime::Representation;
use spindle_dds_xtypes::graph::{
    Bitmask, Branch, Definition, Discriminator, Enum, Extensibility, Flag, Literal, Member, Name,
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

/// A structure with one member `m` of a declared type, both of this extensibility.
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
    // The minimal form must say the same, but for names.
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

#[test]
fn primitives_are_what_they_are() {
    let differs = [
        "T.m: int32 cannot be read from octet",
        "T.m: octet cannot be read from int32",
    ];
    check(&of(LONG), &of(OCTET), differs);
    let differs = [
        "T.m: string cannot be read from wstring",
        "T.m: wstring cannot be read from string",
    ];
    check(&of(Type::String8(None)), &of(Type::String16(None)), differs);
}

#[test]
fn bounds_count_if_asked_for() {
    let short = of(Type::sequence(LONG, Some(4)));
    let long = of(Type::sequence(LONG, Some(8)));
    check(&short, &long, ["", ""]);
    check_with(
        &strict(),
        &short,
        &long,
        ["T.m: sequence bound 4 is less than 8", ""],
    );
    let open = of(Type::sequence(LONG, None));
    check_with(
        &strict(),
        &short,
        &open,
        ["T.m: sequence bound 4 is less than unbounded", ""],
    );

    let short = of(Type::String8(Some(4)));
    let long = of(Type::String8(None));
    check(&short, &long, ["", ""]);
    check_with(
        &strict(),
        &short,
        &long,
        ["T.m: string bound 4 is less than unbounded", ""],
    );

    let short = of(Type::map(LONG, LONG, Some(2)));
    let long = of(Type::map(LONG, LONG, Some(3)));
    check(&short, &long, ["", ""]);
    check_with(
        &strict(),
        &short,
        &long,
        ["T.m: map bound 2 is less than 3", ""],
    );
}

#[test]
fn collections_are_of_the_same() {
    let one = of(Type::sequence(LONG, None));
    let other = of(Type::sequence(OCTET, None));
    let differs = [
        "T.m[]: int32 cannot be read from octet",
        "T.m[]: octet cannot be read from int32",
    ];
    check(&one, &other, differs);
    check(
        &of(Type::array(LONG, [2, 3])),
        &of(Type::array(LONG, [3, 2])),
        [
            "T.m: array [2, 3] is not [3, 2]",
            "T.m: array [3, 2] is not [2, 3]",
        ],
    );
    let differs = [
        "T.m: sequence cannot be read from array",
        "T.m: array cannot be read from sequence",
    ];
    check(&one, &of(Type::array(LONG, [2])), differs);
}

/// Which no `TypeObject` says, so the minimal form is no match here.
#[test]
fn enumerations_by_value_alone() {
    use Extensibility::{Appendable, Final};
    let reads = |reader: &Resolved, writer: &Resolved| {
        let sides = (Some(reader), Some(writer));
        assignable(sides.0, sides.1, Representation::Xcdr2, &strict()).is_ok()
    };
    for (extensibility, key) in [(Final, false), (Appendable, false), (Appendable, true)] {
        let inner = |literals: &[(&str, i32)], alone| {
            let mut definition = enumeration(extensibility, literals);
            if let Definition::Enum(inner) = &mut definition {
                inner.ignore_literal_names = alone;
            }
            around(Appendable, definition, key)
        };
        let old = |alone| inner(&[("A", 0), ("B", 1)], alone);
        let renamed = |alone| inner(&[("B", 0), ("X", 1)], alone);
        assert!(!reads(&old(false), &renamed(false)));
        for (reader, writer) in [(true, false), (false, true), (true, true)] {
            assert!(
                reads(&old(reader), &renamed(writer)),
                "{extensibility:?} {key}"
            );
        }
        // Values count all the same: of final types and of keys all of them.
        let more = inner(&[("A", 0), ("B", 1), ("C", 2)], true);
        assert_eq!(
            reads(&old(true), &more),
            extensibility == Appendable && !key
        );
    }
}

#[test]
fn enumerations_by_value_and_name() {
    use Extensibility::{Appendable, Final};
    let inner = |extensibility, literals: &[(&str, i32)]| {
        around(Appendable, enumeration(extensibility, literals), false)
    };
    let one = inner(Appendable, &[("A", 0), ("B", 1)]);
    check(
        &one,
        &inner(Appendable, &[("A", 0), ("B", 1), ("C", 2)]),
        ["", ""],
    );
    let renamed = inner(Appendable, &[("A", 0), ("X", 1)]);
    check(
        &one,
        &renamed,
        [
            "T.m: X is not the same in both types",
            "T.m: B is not the same in both types",
        ],
    );
    let renumbered = inner(Appendable, &[("A", 0), ("B", 2)]);
    check(
        &one,
        &renumbered,
        [
            "T.m: B is not the same in both types",
            "T.m: B is not the same in both types",
        ],
    );
    let one = inner(Final, &[("A", 0), ("B", 1)]);
    check(
        &one,
        &inner(Final, &[("A", 0), ("B", 1), ("C", 2)]),
        [
            "T.m: C is not the same in both types",
            "T.m: the types have no set of literals in common",
        ],
    );
    check(
        &one,
        &inner(Appendable, &[("A", 0), ("B", 1)]),
        [
            "T.m: Final is not Appendable",
            "T.m: Appendable is not Final",
        ],
    );
}

#[test]
fn keys_have_literals_that_the_reader_knows() {
    use Extensibility::Appendable;
    let inner =
        |literals: &[(&str, i32)]| around(Appendable, enumeration(Appendable, literals), true);
    let (one, other) = (inner(&[("A", 0)]), inner(&[("A", 0), ("B", 1)]));
    check(
        &one,
        &other,
        ["T.m: the reader does not have B, which may be a key", ""],
    );
}

#[test]
fn bitmasks_are_their_integers() {
    let mask = |bit_bound| {
        let definition = Definition::Bitmask(Bitmask {
            bit_bound,
            extensibility: Some(Extensibility::Appendable),
            flags: vec![Flag {
                name: Name::from("F"),
                position: 0,
            }],
        });
        around(Extensibility::Appendable, definition, false)
    };
    check(&mask(12), &of(Type::Primitive(Primitive::UInt16)), ["", ""]);
    check(
        &mask(12),
        &of(Type::Primitive(Primitive::UInt8)),
        [
            "T.m: bitmask m::Inner cannot be read from uint8",
            "T.m: uint8 cannot be read from bitmask m::Inner",
        ],
    );
    check(
        &mask(12),
        &mask(13),
        ["T.m: 12 bits are not 13", "T.m: 13 bits are not 12"],
    );
}

#[test]
fn appendable_types_grow_at_the_end() {
    use Extensibility::{Appendable, Final, Mutable};
    let make = |extensibility, more: bool| {
        let mut members = vec![Member::new("a", 0, LONG), Member::new("b", 1, OCTET)];
        members.truncate(1 + usize::from(more));
        alone(structure(extensibility, members))
    };
    check(&make(Appendable, false), &make(Appendable, true), ["", ""]);
    check(&make(Mutable, false), &make(Mutable, true), ["", ""]);
    check(
        &make(Final, false),
        &make(Final, true),
        [
            "T.b: the reader lacks it, and it is a member of a final type",
            "T.b: the writer lacks it, and it is a member of a final type",
        ],
    );
    check(
        &make(Appendable, false),
        &make(Mutable, false),
        [
            "T: Appendable is not Mutable",
            "T: Mutable is not Appendable",
        ],
    );
    let narrow = Consistency {
        prevent_type_widening: true,
        ..Consistency::default()
    };
    check_with(
        &narrow,
        &make(Appendable, false),
        &make(Appendable, true),
        [
            "",
            "T.b: the writer lacks it, and it is more than the writer's type has, which is prevented",
        ],
    );
}

#[test]
fn order_counts_unless_mutable() {
    use Extensibility::{Appendable, Mutable};
    let make = |extensibility, turned: bool| {
        let mut members = vec![Member::new("a", 0, LONG), Member::new("b", 1, LONG)];
        if turned {
            members.reverse();
        }
        alone(structure(extensibility, members))
    };
    check(&make(Mutable, false), &make(Mutable, true), ["", ""]);
    check(
        &make(Appendable, false),
        &make(Appendable, true),
        [
            "T.a: it has id 0 to the reader and 1 to the writer",
            "T.b: it has id 1 to the reader and 0 to the writer",
        ],
    );
}

#[test]
fn names_go_with_ids() {
    use Extensibility::Mutable;
    let one = alone(structure(
        Mutable,
        vec![Member::new("a", 1, LONG), Member::new("z", 9, LONG)],
    ));
    let renamed = alone(structure(
        Mutable,
        vec![Member::new("b", 1, LONG), Member::new("z", 9, LONG)],
    ));
    check(
        &one,
        &renamed,
        [
            "T: member id 1 is a to the reader and b to the writer",
            "T: member id 1 is b to the reader and a to the writer",
        ],
    );
    let ignoring = Consistency {
        ignore_member_names: true,
        ..Consistency::default()
    };
    check_with(&ignoring, &one, &renamed, ["", ""]);
    let moved = alone(structure(
        Mutable,
        vec![Member::new("a", 2, LONG), Member::new("z", 9, LONG)],
    ));
    check(
        &one,
        &moved,
        [
            "T.a: it has id 1 to the reader and 2 to the writer",
            "T.a: it has id 2 to the reader and 1 to the writer",
        ],
    );
}

#[test]
fn keys_and_what_must_be_understood_are_in_both() {
    use Extensibility::Mutable;
    let with = |member: Member| alone(structure(Mutable, vec![Member::new("a", 0, LONG), member]));
    let without = alone(structure(Mutable, vec![Member::new("a", 0, LONG)]));
    let key = with(Member::new("k", 1, LONG).key());
    check(
        &without,
        &key,
        [
            "T.k: the reader lacks it, and it is a key",
            "T.k: the writer lacks it, and it is a key",
        ],
    );
    let must = |optional| Member {
        must_understand: true,
        optional,
        ..Member::new("u", 1, LONG)
    };
    check(
        &without,
        &with(must(false)),
        [
            "T.u: the reader lacks it, and it is to be understood",
            "T.u: the writer lacks it, and it is to be understood",
        ],
    );
    check(&without, &with(must(true)), ["", ""]);
}

#[test]
fn optional_is_optional_in_both_unless_mutable() {
    use Extensibility::{Appendable, Mutable};
    let make = |extensibility, optional| {
        let member = Member {
            optional,
            ..Member::new("a", 0, LONG)
        };
        alone(structure(extensibility, vec![member]))
    };
    check(&make(Mutable, false), &make(Mutable, true), ["", ""]);
    let differs = "T.a: it is optional to one of them only";
    check(
        &make(Appendable, false),
        &make(Appendable, true),
        [differs, differs],
    );
}

#[test]
fn something_is_in_common() {
    use Extensibility::Mutable;
    let one = alone(structure(Mutable, vec![Member::new("a", 0, LONG)]));
    let other = alone(structure(Mutable, vec![Member::new("b", 1, LONG)]));
    let differs = "T: the types have no member in common";
    check(&one, &other, [differs, differs]);
}

/// What is inside an appendable type must be skippable, which depends on the
/// representation.
#[test]
fn inside_others_types_are_delimited() {
    use Extensibility::{Appendable, Final};
    let make = |extensibility, more: bool| {
        let mut members = vec![Member::new("a", 0, LONG), Member::new("b", 1, OCTET)];
        members.truncate(1 + usize::from(more));
        around(Appendable, structure(extensibility, members), false)
    };
    let (one, other) = (make(Appendable, false), make(Appendable, true));
    check(&one, &other, ["", ""]);
    let xcdr1 = assignable(
        Some(&one),
        Some(&other),
        Representation::Xcdr1,
        &Consistency::default(),
    );
    let said = xcdr1
        .expect_err("classic CDR has no delimiters")
        .to_string();
    assert_eq!(
        said,
        "T.m: the types differ, and nothing says how long the value is"
    );
    check(
        &make(Final, false),
        &make(Final, true),
        [
            "T.m.b: the reader lacks it, and it is a member of a final type",
            "T.m.b: the writer lacks it, and it is a member of a final type",
        ],
    );
}

#[test]
fn unions_by_their_labels() {
    use Extensibility::{Appendable, Final};
    let make = |extensibility, branches| alone(union(extensibility, branches));
    let one = make(Appendable, vec![(&[1], "a", LONG), (&[2], "b", OCTET)]);
    let more = make(
        Appendable,
        vec![(&[1], "a", LONG), (&[2], "b", OCTET), (&[3], "c", LONG)],
    );
    check(&one, &more, ["", ""]);
    let retyped = make(Appendable, vec![(&[1], "a", LONG), (&[2], "b", LONG)]);
    check(
        &one,
        &retyped,
        [
            "T.b: octet cannot be read from int32",
            "T.b: int32 cannot be read from octet",
        ],
    );
    let elsewhere = make(Appendable, vec![(&[7], "a", LONG)]);
    let differs = "T: the types have no label in common";
    check(&one, &elsewhere, [differs, differs]);
    let default = make(Appendable, vec![(&[1], "a", LONG), (&[], "b", LONG)]);
    check(
        &one,
        &default,
        [
            "T.b: octet cannot be read from int32",
            "T.b: int32 cannot be read from octet",
        ],
    );
    let one = make(Final, vec![(&[1], "a", LONG)]);
    let more = make(Final, vec![(&[1], "a", LONG), (&[3], "c", LONG)]);
    let differs = "T: label 3 is not one of both unions, which are final";
    check(&one, &more, [differs, differs]);
    let default = make(Final, vec![(&[1], "a", LONG), (&[], "d", LONG)]);
    let differs = "T: label default is not one of both unions, which are final";
    check(&one, &default, [differs, differs]);
}

#[test]
fn types_that_contain_themselves_come_to_an_end() {
    let make = |more: bool| {
        let mut graph = TypeGraph::new();
        let index = graph.reserve();
        let children = Type::sequence(Type::Declared(index), None);
        let mut members = vec![
            Member::new("v", 0, LONG),
            Member::new("children", 1, children),
        ];
        if more {
            members.push(Member::new("w", 2, LONG));
        }
        graph.define(
            index,
            Some("m::T"),
            structure(Extensibility::Mutable, members),
        );
        root(graph, index)
    };
    check(&make(false), &make(true), ["", ""]);
}

#[test]
fn without_coercion_types_are_the_same() {
    let consistency = Consistency {
        allow_coercion: false,
        ..Consistency::default()
    };
    let differs = "T: the types differ, and coercion is not allowed";
    let (one, other) = (
        of(Type::sequence(LONG, Some(1))),
        of(Type::sequence(LONG, None)),
    );
    check_with(&consistency, &one, &other, [differs, differs]);
    // Annotations that do not matter, and names of types, are no difference.
    let mut graph = TypeGraph::new();
    let member = Member {
        unit: Some("m".to_owned()),
        ..Member::new("m", 0, LONG)
    };
    let index = graph.add(
        "other::Name",
        structure(Extensibility::Appendable, vec![member]),
    );
    assert_eq!(said(&of(LONG), &root(graph, index), &consistency), "");
}

#[test]
fn unknown_types_are_refused_if_asked_for() {
    let known = of(LONG);
    let lax = Consistency::default();
    let force = Consistency {
        force_type_validation: true,
        ..lax
    };
    let check = |reader, writer, consistency| {
        assignable(reader, writer, Representation::Xcdr1, consistency)
    };
    assert_eq!(check(None, Some(&known), &lax), Ok(()));
    let said = check(None, Some(&known), &force)
        .expect_err("is refused")
        .to_string();
    assert_eq!(
        said,
        "type: the reader's type is not known, and validation is forced"
    );
    let said = check(Some(&known), None, &force)
        .expect_err("is refused")
        .to_string();
    assert_eq!(
        said,
        "type: the writer's type is not known, and validation is forced"
    );
}

#[test]
fn nested_keys_do_not_count_where_the_member_is_none() {
    use Extensibility::Mutable;
    let make = |keyed: bool, key: bool| {
        let mut k = Member::new("k", 0, LONG);
        k.key = keyed;
        let inner = match keyed {
            true => vec![k, Member::new("x", 1, LONG)],
            false => vec![Member::new("x", 1, LONG)],
        };
        around(Mutable, structure(Mutable, inner), key)
    };
    // Nobody asks for `k`, as `m` is no key.
    check(&make(true, false), &make(false, false), ["", ""]);
    check(
        &make(true, true),
        &make(false, true),
        [
            "T.m.k: the writer lacks it, and it is a key",
            "T.m.x: the writer lacks it, and it is a key",
        ],
    );
}
