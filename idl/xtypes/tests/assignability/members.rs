//! Structures and unions.

use super::*;

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

/// A member of an appendable type must be skippable, which depends on the representation.
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
fn comparing_recursive_types_terminates() {
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
    // Other annotations, and names of types, do not matter.
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
fn nested_keys_do_not_count_if_the_member_is_not_a_key() {
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
    // `k` does not count, because `m` is not a key.
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
