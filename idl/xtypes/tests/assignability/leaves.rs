//! Primitives, strings, collections, enumerations and bits.

use spindle_dds_xtypes::graph::{Bitmask, Flag};

use super::*;

#[test]
fn primitives_are_assignable_only_from_themselves() {
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

/// A `TypeObject` has no such flag, so the minimal form does not match here.
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
        // Values still count: all of them for final types and keys.
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
                custom: Vec::new(),
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

/// Bounds of keys count, even if those of other members are ignored.
#[test]
fn keys_are_no_longer_than_the_reader_takes() {
    let with = |ty: Type| {
        let member = Member {
            key: true,
            ..Member::new("m", 0, ty)
        };
        alone(structure(Extensibility::Appendable, vec![member]))
    };
    type Bounded = fn(Option<u32>) -> Type;
    let kinds: [(&str, Bounded); 4] = [
        ("string", Type::String8),
        ("string", Type::String16),
        ("sequence", |bound| Type::sequence(LONG, bound)),
        ("map", |bound| Type::map(LONG, OCTET, bound)),
    ];
    for (what, bounded) in kinds {
        let [short, long, unbounded] = [Some(4), Some(5), None].map(|it| with(bounded(it)));
        let differs = |writer: &str| format!("T.m: {what} key bound 4 is less than {writer}");
        check(&short, &long, [&differs("5"), ""]);
        check(&short, &unbounded, [&differs("unbounded"), ""]);
        check(&short, &short, ["", ""]);
        // Members that are not keys have no such rule.
        check(&of(bounded(Some(4))), &of(bounded(None)), ["", ""]);
    }
    // Behind a typedef, and in a structure that is a key.
    let nested = |bound: u32| {
        let member = Member::new("text", 0, Type::String8(Some(bound)));
        let inner = structure(Extensibility::Appendable, vec![member]);
        around(Extensibility::Appendable, inner, true)
    };
    let differs = "T.m.text: string key bound 4 is less than 9";
    check(&nested(4), &nested(9), [differs, ""]);
}
