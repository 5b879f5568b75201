//! Type objects contain the annotations of types in the form of XTypes 1.3 Annex B.

use spindle_dds_idl::model::{Model, TypeId};
use spindle_dds_idl::type_object::TypeDescriptions;
use spindle_dds_idl::{Options, compile_str};
use spindle_dds_xtypes::graph::{Applied, Declaration, Definition, Type};
use spindle_dds_xtypes::object::{
    AnnotationValue, AppliedParameter, NameHash, TypeDefinition, TypeIdentifier, TypeObject,
};
use spindle_dds_xtypes::{Bounded, Registry, Resolved, TypeGraph, TypeIndex, describe};

fn model(text: &str) -> Model {
    let compilation = compile_str("types.idl", text.as_bytes(), &Options::default());
    let model = compilation.ok().map_err(|found| format!("{found:?}"));
    model.expect("compiles").clone()
}

/// The type as resolved from its complete objects; it is the first of the graph.
fn read(found: &TypeDescriptions, id: TypeId) -> Resolved {
    let objects = found.objects(id).expect("is described");
    let bytes = objects.to_bytes().expect("they fit");
    let mut registry = Registry::new();
    registry.insert_bytes(&bytes).expect("right hashes");
    let information = found.information(id).expect("is described");
    let identifier = information.complete.sized.identifier;
    registry.resolve(&identifier).expect("all are there")
}

fn find(model: &Model, name: &str) -> TypeId {
    let at = model.types.iter().position(|decl| decl.name == name);
    TypeId(at.unwrap_or_else(|| panic!("{name} is declared")))
}

fn root(resolved: &Resolved) -> &Declaration {
    let Type::Declared(index) = resolved.ty else {
        panic!("{:?}", resolved.ty);
    };
    resolved.graph.declaration(index)
}

/// Uses of annotations as text: names, and values by the names of the parameters.
fn said(graph: &TypeGraph, all: &[Applied]) -> Vec<String> {
    let mut all: Vec<String> = all.iter().map(|one| said_of(graph, one)).collect();
    all.sort();
    all
}

fn said_of(graph: &TypeGraph, applied: &Applied) -> String {
    let declaration = graph.declaration(applied.annotation);
    let Definition::Annotation(annotation) = &declaration.definition else {
        panic!("{declaration:?}");
    };
    let name_of = |hash: NameHash| {
        let mut parameters = annotation.parameters.iter();
        let found = parameters.find(|parameter| parameter.name.hash() == hash);
        found.expect("a parameter").name.to_string()
    };
    let value = |it: &AppliedParameter| match it.value.to_value() {
        Some(value) => format!("{}={value:?}", name_of(it.name_hash)),
        None => format!("{}={:?}", name_of(it.name_hash), it.value),
    };
    let mut values: Vec<String> = applied.parameters.iter().map(value).collect();
    values.sort();
    let name = declaration.name.as_deref().unwrap_or_default();
    format!("{name}({})", values.join(" "))
}

fn object(found: &TypeDescriptions, index: TypeIndex) -> (&TypeObject, &TypeObject) {
    let descriptions = found.descriptions();
    let [minimal, complete] = [descriptions.minimal(index), descriptions.complete(index)];
    (
        &minimal.expect("described").object,
        &complete.expect("described").object,
    )
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    let bytes = digits.chunks(2).map(byte);
    bytes.collect::<Result<_, _>>().expect("hexadecimal")
}

/// Byte by byte by the annex: an annotation in both forms, and the head of a structure with a
/// use of it.
#[test]
fn annotations_have_the_bytes_of_the_annex() {
    let model =
        model("@annotation Level { long value default 7; }; @Level(3) struct S { long x; };");
    let found = TypeDescriptions::of(&model).expect("names are short");
    let graph = found.graph();
    let level = graph.indices().find(|index| graph.is_annotation(*index));
    let level = level.expect("is described");
    let (minimal, complete) = object(&found, level);
    let expected = bytes(
        "34000000 F2 50 0000  0A000000 06000000 4C6576656C00 0000
         1C000000 01000000  14000000 0000 04 00 06000000 76616C756500 04 00 07000000",
    );
    assert_eq!(complete.to_bytes(), Ok(expected));
    let expected = bytes(
        "20000000 F1 50 0000  00000000
         14000000 01000000  0C000000 0000 04 2063C160 04 07000000",
    );
    assert_eq!(minimal.to_bytes(), Ok(expected));
    let TypeIdentifier::Hash(_, hash) = complete.identifier().expect("fits") else {
        panic!("it contains nothing");
    };
    let index = found.index(find(&model, "S")).expect("is described");
    let structure = object(&found, index).1.to_bytes().expect("fits");
    let mut expected = bytes("F2 51 0200  3E000000 00  00 01 00  30000000 01000000 28000000 F2");
    expected.extend(hash.0);
    expected.extend(bytes(
        "01 14000000 01000000 0C000000 2063C160 04 000000 03000000",
    ));
    expected.extend(bytes("02000000 5300"));
    assert_eq!(structure[4..74], expected);
}

const ALL: &str = "
    module m {
      enum Hue { RED, @default_literal GREEN };
      @annotation Empty { };
      @annotation Many {
        typedef string<9> Short;
        enum Colour { BLUE, @default_literal YELLOW };
        boolean flag default TRUE;
        octet o; char c; wchar w; int8 i8; uint8 u8; short s; unsigned short us;
        long l; unsigned long ul; long long ll; unsigned long long ull;
        float f; double d; long double ld;
        Short text default \"Hello\"; wstring wide;
        Colour colour default YELLOW; Hue hue default RED;
      };
      @annotation Level { long value default 7; };
    };
    @m::Many(o = 255, c = 'a', w = L'b', i8 = -1, u8 = 2, s = -3, us = 4, l = -5, ul = 6,
      ll = -7, ull = 8, f = 1.5, d = 2.5, ld = 0, text = \"x\", wide = L\"w\", colour = BLUE)
    @m::Empty
    struct S { @m::Level @m::Empty long a; long b; };
    @m::Level(1) enum Letters { @m::Level(2) A, B };
    @m::Level(3) bitmask Mask { @m::Level(4) bit };
    @m::Level(5) bitset Bits { @m::Level(6) bitfield<3> f; };
    @m::Level(7) typedef long Number;
    @m::Level(8) union U switch (@m::Level(9) long) { case 1: @m::Level(10) long a; };
    @verbatim(language = \"c++\", placement = AFTER_DECLARATION, text = \"// first\")
    @verbatim(language = \"rust\", text = \"// second\")
    struct V { long a; };
    struct Loop { @m::Level(11) sequence<Loop> inner; };
";

/// Annotations survive encoding and resolution, and the type keeps its hash.
#[test]
fn annotations_of_types_are_resolved_again() {
    let model = model(ALL);
    let found = TypeDescriptions::of(&model).expect("names are short");
    let read = |name: &str| {
        let id = find(&model, name);
        let read = read(&found, id);
        let again = describe(&read.graph).expect("names are short");
        let index = read.graph.indices().next().expect("the type itself");
        let information = found.information(id).expect("is described");
        let identifier = |index| again.complete(index).map(|it| it.identifier.clone());
        assert_eq!(
            identifier(index),
            Some(information.complete.sized.identifier)
        );
        read
    };
    let of_type = |name: &str| {
        let read = read(name);
        said(&read.graph, &root(&read).annotations.custom)
    };
    let level = |value: i32| vec![format!("m::Level(value=Int32({value}))")];
    assert_eq!(
        of_type("S"),
        [
            "m::Empty()",
            "m::Many(c=Char8(97) colour=Enum(0) d=Float64(2.5) f=Float32(1.5) flag=Boolean(true) \
             hue=Enum(0) i8=Int8(-1) l=Int32(-5) \
             ld=Float128(0) ll=Int64(-7) \
             o=Byte(255) s=Int16(-3) text=String8(Bounded(\"x\")) u8=UInt8(2) ul=UInt32(6) \
             ull=UInt64(8) us=UInt16(4) w=Char16(98) wide=String16([119]))",
        ]
    );
    for (name, value) in [
        ("Letters", 1),
        ("Mask", 3),
        ("Bits", 5),
        ("Number", 7),
        ("U", 8),
    ] {
        assert_eq!(of_type(name), level(value), "{name}");
    }
    let inside = |name: &str| {
        let read = read(name);
        let all = match &root(&read).definition {
            Definition::Struct(it) => it.members.iter().map(|it| &it.custom).collect(),
            Definition::Union(it) => {
                let branches = it.branches.iter().map(|it| &it.member.custom);
                branches
                    .chain([&it.discriminator.annotations.custom])
                    .collect()
            }
            Definition::Enum(it) => it.literals.iter().map(|it| &it.custom).collect(),
            Definition::Bitmask(it) => it.flags.iter().map(|it| &it.custom).collect(),
            Definition::Bitset(it) => it.fields.iter().map(|it| &it.custom).collect(),
            other => panic!("{other:?}"),
        };
        let all: Vec<&Vec<Applied>> = all;
        let said = all.into_iter().map(|custom| said(&read.graph, custom));
        said.collect::<Vec<_>>()
    };
    let both = vec!["m::Empty()".to_owned(), level(7)[0].clone()];
    assert_eq!(inside("S"), [both, Vec::new()]);
    assert_eq!(inside("Letters"), [level(2), Vec::new()]);
    assert_eq!(inside("Mask"), [level(4)]);
    assert_eq!(inside("Bits"), [level(6)]);
    assert_eq!(inside("U"), [level(10), level(9)]);
    assert_eq!(inside("Loop"), [level(11)]);
    let read = read("V");
    let verbatim = root(&read).annotations.verbatim.clone().expect("the first");
    let said = [verbatim.placement.0, verbatim.language.0, verbatim.text];
    assert_eq!(said, ["after-declaration", "c++", "// first"]);
}

/// An annotation is resolved with its parameters and their defaults; a parameter without a
/// default has a zero or empty value.
#[test]
fn defaults_of_parameters_are_described() {
    let model = model(ALL);
    let found = TypeDescriptions::of(&model).expect("names are short");
    let read = read(&found, find(&model, "S"));
    let many = read.graph.indices().find(|index| {
        let name = read.graph.declaration(*index).name.as_deref();
        name == Some("m::Many") && read.graph.is_annotation(*index)
    });
    let many = &read.graph.declaration(many.expect("is there")).definition;
    let Definition::Annotation(many) = many else {
        panic!("{many:?}");
    };
    let default = |name: &str| {
        let mut parameters = many.parameters.iter();
        let found = parameters.find(|parameter| parameter.name.is(name));
        found.expect("a parameter").default.clone()
    };
    assert_eq!(many.parameters.len(), 19);
    assert_eq!(default("flag"), AnnotationValue::Boolean(true));
    assert_eq!(
        default("text"),
        AnnotationValue::String8(Bounded("Hello".into()))
    );
    assert_eq!(default("colour"), AnnotationValue::Enum(1));
    assert_eq!(default("hue"), AnnotationValue::Enum(0));
    assert_eq!(default("ull"), AnnotationValue::UInt64(0));
    assert_eq!(default("w"), AnnotationValue::Char16(0));
    assert_eq!(default("wide"), AnnotationValue::String16(Vec::new()));
}

/// Annex B: parameters are ordered by name, or by its hash in the minimal form, values by the
/// hash of the parameter, uses by the identifier of the annotation.
#[test]
fn parameters_values_and_uses_are_in_the_order_of_the_annex() {
    let model = model(ALL);
    let found = TypeDescriptions::of(&model).expect("names are short");
    let graph = found.graph();
    let mut annotations = 0;
    for index in graph.indices().filter(|index| graph.is_annotation(*index)) {
        let (minimal, complete) = object(&found, index);
        let TypeObject::Complete(complete) = complete else {
            panic!()
        };
        let TypeObject::Minimal(minimal) = minimal else {
            panic!()
        };
        let TypeDefinition::Annotation(complete) = &**complete else {
            panic!()
        };
        let TypeDefinition::Annotation(minimal) = &**minimal else {
            panic!()
        };
        assert!(
            complete
                .members
                .is_sorted_by(|one, other| one.name < other.name)
        );
        assert!(
            minimal
                .members
                .is_sorted_by(|one, other| one.name < other.name)
        );
        annotations += 1;
    }
    assert_eq!(annotations, 3);
    let index = found.index(find(&model, "S")).expect("is described");
    let TypeObject::Complete(structure) = object(&found, index).1 else {
        panic!()
    };
    let TypeDefinition::Struct(structure) = &**structure else {
        panic!()
    };
    let custom = structure.header.detail.annotations.custom.as_ref();
    let custom = custom.expect("there are two");
    assert_eq!(custom.len(), 2);
    assert!(custom.is_sorted_by(|one, other| one.identifier < other.identifier));
    let values = custom.iter().find_map(|one| one.parameters.as_ref());
    let values = values.expect("one has values");
    assert_eq!(values.len(), 19);
    assert!(values.is_sorted_by(|one, other| one.name_hash < other.name_hash));
}

/// Annotations do not affect assignability: the minimal form, which is announced, is the same
/// without them, and refers to none of them.
#[test]
fn the_minimal_form_has_no_annotations() {
    let annotated = model(ALL);
    let mut plain = annotated.clone();
    for decl in &mut plain.types {
        decl.custom.clear();
        decl.verbatim.clear();
        match &mut decl.kind {
            spindle_dds_idl::model::TypeKind::Struct(it) => {
                it.members.iter_mut().for_each(|it| it.custom.clear());
            }
            spindle_dds_idl::model::TypeKind::Union(it) => {
                it.discriminator.custom.clear();
                it.branches
                    .iter_mut()
                    .for_each(|it| it.member.custom.clear());
            }
            _ => {}
        }
    }
    let [annotated, plain] = [annotated, plain].map(|model| {
        let found = TypeDescriptions::of(&model).expect("names are short");
        ["S", "U", "V", "Loop"]
            .map(|name| found.information(find(&model, name)).expect("is described"))
    });
    for (annotated, plain) in annotated.iter().zip(&plain) {
        assert_eq!(annotated.minimal, plain.minimal);
        assert_ne!(annotated.complete, plain.complete);
    }
    // Three annotations, and the types of their parameters.
    assert_eq!(annotated[0].complete.dependents.len(), 6);
    assert_eq!(annotated[0].minimal.dependents.len(), 0);
}
