//! Type objects equal those of another product, byte for byte: the vectors are those of the
//! crate `xtypes`, see `ORIGIN.md` there.

use std::collections::HashMap;

use spindle_dds_idl::model::{Model, TypeId};
use spindle_dds_idl::type_object::TypeDescriptions;
use spindle_dds_idl::{Options, compile_str};
use spindle_dds_xtypes::Registry;
use spindle_dds_xtypes::object::{TypeInformation, TypeObject, TypeObjects};

const IDL: &str = include_str!("../xtypes/tests/vectors/types.idl");
const TYPES: &str = include_str!("../xtypes/tests/vectors/types.txt");
const RECURSIVE: &str = include_str!("../xtypes/tests/vectors/recursive.txt");

fn model(text: &str) -> Model {
    let compilation = compile_str("types.idl", text.as_bytes(), &Options::default());
    let model = compilation.ok().map_err(|found| format!("{found:?}"));
    model.expect("compiles").clone()
}

fn find(model: &Model, name: &str) -> TypeId {
    let at = model.types.iter().position(|decl| {
        let scope = decl.scope.iter().map(|module| format!("{module}::"));
        scope.chain([decl.name.clone()]).collect::<String>() == name
    });
    TypeId(at.unwrap_or_else(|| panic!("{name} is declared")))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len() / 2).map(|at| &hex[2 * at..2 * at + 2]);
    digits
        .map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))
        .collect()
}

/// A sequence of objects, and the bytes after it and the padding.
fn objects(bytes: &[u8]) -> (TypeObjects, &[u8]) {
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four")) as usize + 4;
    let objects = TypeObjects::from_bytes(&bytes[..length]).expect("objects");
    (objects, &bytes[length.next_multiple_of(4)..])
}

/// For each type, the objects of all dependencies equal those of the other product, and the
/// type information is the same except for the order of the dependencies.
fn check(vectors: &str, known_differences: &[&str]) -> usize {
    let model = model(IDL);
    let found = TypeDescriptions::of(&model).expect("names are short");
    let lines: Vec<&str> = vectors.lines().collect();
    let mut count = 0;
    for lines in lines.chunks_exact(3) {
        if known_differences.contains(&lines[0]) {
            continue;
        }
        let id = find(&model, lines[0]);
        let theirs = TypeInformation::from_bytes(&bytes(lines[1])).expect("information");
        let ours = found.information(id).expect("is described");
        assert_eq!(
            ours.complete.sized,
            theirs.complete.sized,
            "{}: {:#?}",
            lines[0],
            found.objects(id)
        );
        assert_eq!(ours.minimal.sized, theirs.minimal.sized, "{}", lines[0]);
        let mapping = bytes(lines[2]);
        let (_, rest) = objects(&mapping);
        let (complete, _) = objects(rest);
        let theirs: HashMap<_, TypeObject> = complete
            .0
            .into_iter()
            .map(|one| (one.identifier, one.object))
            .collect();
        let ours = found.objects(id).expect("is described").0;
        assert_eq!(ours.len(), theirs.len(), "{}", lines[0]);
        for one in ours {
            assert_eq!(
                theirs.get(&one.identifier),
                Some(&one.object),
                "{}",
                lines[0]
            );
        }
        count += 1;
    }
    count
}

#[test]
fn objects_are_those_of_another_product() {
    // Its C backend hashes recursive types in another way.
    let count = check(TYPES, &["vectors::Recursive"]);
    assert!(count >= 14, "{count}");
    assert_eq!(check(RECURSIVE, &[]), 1);
}

/// A registry resolves the descriptions to the same types.
#[test]
fn descriptions_resolve() {
    let model = model(IDL);
    let found = TypeDescriptions::of(&model).expect("names are short");
    for at in 0..model.types.len() {
        let id = TypeId(at);
        let information = found.information(id).expect("is described");
        let mut registry = Registry::new();
        let objects = found.objects(id).expect("is described");
        registry
            .insert_objects(objects)
            .expect("the hashes are right");
        let resolved = registry.resolve(&information.complete.sized.identifier);
        let resolved = resolved.expect("resolves");
        let described = spindle_dds_xtypes::describe(&resolved.graph).expect("short names");
        let root = resolved.graph.indices().next().expect("the type itself");
        let again = &described.complete(root).expect("is described").identifier;
        assert_eq!(*again, information.complete.sized.identifier);
    }
}

#[test]
fn types_that_are_not_representable_are_left_out_with_their_containers() {
    let model = model(
        "module m {
            struct Money { fixed<5, 2> amount; };
            struct Purse { sequence<Money> all; };
            typedef Purse Pocket;
            exception E { long code; };
            union Large switch (unsigned long long) { case 0x100000000: long a; };
            bitset Padded { bitfield<7> a; bitfield<3>; };
            bitset Exact { bitfield<7> a; bitfield<1>; };
            struct Fine { long x; @non_serialized Money hidden; Exact bits; };
            struct Loop { sequence<Loop> inner; Money money; };
        };",
    );
    let found = TypeDescriptions::of(&model).expect("names are short");
    let is_described = |name: &str| found.information(find(&model, name)).is_some();
    for name in [
        "m::Money",
        "m::Purse",
        "m::Pocket",
        "m::E",
        "m::Large",
        "m::Padded",
        "m::Loop",
    ] {
        assert!(!is_described(name), "{name}");
    }
    for name in ["m::Exact", "m::Fine"] {
        assert!(is_described(name), "{name}");
    }
}

#[test]
fn annotations_of_typedefs_are_theirs() {
    let of_typedef = model(
        "module m { @unit(\"m\") @range(min=1, max=5) typedef long Metres;
         struct S { Metres x; }; };",
    );
    let found = TypeDescriptions::of(&of_typedef).expect("names are short");
    let objects = found
        .objects(find(&of_typedef, "m::S"))
        .expect("is described");
    let text = format!("{:?}", objects.0[0].object);
    assert!(!text.contains("unit: Some"), "{text}");
    let text = format!("{:?}", objects.0[1].object);
    assert!(
        text.contains("unit: Some(\"m\"), min: Some(Int32(1)), max: Some(Int32(5))"),
        "{text}"
    );
}

/// Dynamic types from the compiler have the defaults of the IDL; those from type objects do
/// not.
#[test]
fn defaults_are_those_of_the_idl() {
    let model = model(
        "module m { enum E { A, B, @default_literal C }; bitmask M { x, y }; typedef octet Small;
         union U switch (@default(2) long) { case 1: long a; case 2: @default(8) long b; };
         struct S { @default(-5) long l; @default(TRUE) boolean t; @default(1.5) double d;
           @default(\"text\") string s; @default(B) E e; E other; @default(x | y) M m;
           @default(7) Small small; @default('q') char c; @optional @default(3) long none; U u;
           @min(4) long least; }; };",
    );
    let found = TypeDescriptions::of(&model).expect("names are short");
    let id = find(&model, "m::S");
    let data = found
        .dynamic(id)
        .expect("is described")
        .default_data()
        .expect("has one");
    assert_eq!(
        data.to_string(),
        "{l: -5, t: true, d: 1.5, s: \"text\", e: B, other: C, m: x | y, small: 7, c: 'q', \
         u: (2) b: 8, least: 4}"
    );
    let mut registry = Registry::new();
    registry
        .insert_objects(found.objects(id).expect("is described"))
        .expect("right hashes");
    let information = found.information(id).expect("is described");
    let resolved = registry
        .resolve(&information.complete.sized.identifier)
        .expect("resolves");
    let data = spindle_dds_xtypes::DynamicType::from(resolved)
        .default_data()
        .expect("has one");
    assert_eq!(
        data.to_string(),
        "{l: 0, t: false, d: 0.0, s: \"\", e: C, other: C, m: 0x0, small: 0, c: '\\x00', \
         u: (0), least: 4}"
    );
}
