//! Generated code: IDL in, Rust out.

use std::collections::BTreeMap;

use spindle_dds_idl::emit::{EmitError, EmitOptions, emit};
use spindle_dds_idl::{Options, compile_str};

fn generate(idl: &str, options: &EmitOptions) -> String {
    let compilation = compile_str("test.idl", idl.as_bytes(), &Options::default());
    let model = compilation.ok().expect("the IDL is right");
    let text = emit(model, options).expect("the options are right");
    assert_eq!(
        emit(model, options).as_deref(),
        Ok(&text[..]),
        "equal input, equal output"
    );
    text
}

fn bare() -> EmitOptions {
    EmitOptions {
        serde: false,
        ..EmitOptions::default()
    }
}

/// Comments and units reach each item through which an application sees a member.
#[test]
fn documentation_reaches_types_fields_views_and_builders() {
    let idl = r#"
        // Navigation.
        module nav {
          // One instance per aircraft.
          struct Track {
            // Identity.
            @key unsigned long id;
            /// Call sign.
            @default("none") string<12> callsign;
          };
        };"#;
    let text = generate(idl, &EmitOptions::default());
    let documented = [
        "/// Navigation.\n#[allow(",
        "/// One instance per aircraft.\n    #[derive(Debug, Clone, PartialEq)]",
        "/// Identity.\n        pub id: u32",
        "/// Identity.\n        #[inline]\n        pub fn id(&self)",
        "/// Identity.\n        #[inline]\n        pub fn set_id(&mut self",
        "/// Call sign.\n        pub callsign: String",
        "/// Call sign.\n        #[inline]\n        pub fn callsign(&self)",
        "/// Call sign.\n        #[inline]\n        pub fn callsign(\n            self",
    ];
    for part in documented {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// Only owned types derive serde's traits, and only when the options ask for them.
#[test]
fn owned_types_derive_serde_when_asked() {
    let idl = "module m { struct S { long x; }; enum E { A, B }; };";
    let derived = "#[derive(__rt::serde::Serialize, __rt::serde::Deserialize)]";
    let with = generate(idl, &EmitOptions::default());
    assert_eq!(with.matches(derived).count(), 2, "{with}");
    assert!(!generate(idl, &bare()).contains("serde"));
}

/// Derives repeat the paths of fields without the lints that the type allows, so these must not
/// trigger `unused_qualifications`.
#[test]
fn paths_outside_of_modules_are_as_short_as_possible() {
    let idl = "module a { struct S { long x; }; }; struct T { a::S s; };";
    let text = generate(idl, &EmitOptions::default());
    assert!(text.contains("pub s: a::S"), "{text}");
    assert!(!text.contains("self::"), "{text}");
}

/// Types that few members have: the lines of the structure, and its members as types.
#[test]
fn member_types() {
    let idl = r#"
        module m {
          @nested struct S {
            @default(L'x') wchar letter;
            @default(L"wide") wstring<4> text;
            @default(0.1) long double quad;
            @default(1.25d) fixed<4, 3> price;
            map<string, sequence<octet>, 5> blobs;
            map<long, long> table;
            @optional octet large[100];
          };
        };"#;
    let text = generate(idl, &EmitOptions::default());
    let parts = ["pub struct S {", "pub mod SMembers {"].map(|start| {
        let from = text.find(start).expect("is generated");
        let (part, _) = text[from..].split_once("\n    }").expect("ends");
        format!("{part}\n    }}\n")
    });
    insta::assert_snapshot!(parts.concat());
}

#[test]
fn enumerations_constants_and_aliases() {
    let idl = r#"
        module a {
          enum Colour { RED, @value(-4) GREEN, Unknown };
          @final @bit_bound(8) enum Switch { OFF, @default_literal ON };
          typedef sequence<string<4>, 3> Words;
          typedef octet Digest[16];
        };
        module b {
          typedef a::Words Alias;
          const a::Colour FAVOURITE = a::GREEN;
          const float RATIO = -0.1;
          const long long LEAST = -9223372036854775808;
          const char LETTER = 'x';
          const boolean YES = TRUE;
          const string TEXT = "a \"quote\"";
        };"#;
    insta::assert_snapshot!(generate(idl, &EmitOptions::default()));
}

#[test]
fn extern_modules_are_named_and_not_generated() {
    let idl = "
        module ext { module types { @nested struct T { long x; }; }; };
        module mine { struct U { ext::types::T t; sequence<ext::types::T> ts; }; };";
    let modules = [("ext::types".to_owned(), "::other_crate::types".to_owned())];
    let options = EmitOptions {
        extern_modules: BTreeMap::from(modules),
        ..bare()
    };
    let text = generate(idl, &options);
    assert!(text.contains("pub t: ::other_crate::types::T,"), "{text}");
    assert!(
        text.contains("-> ::other_crate::types::TView<'a>"),
        "{text}"
    );
    assert!(!text.contains("struct T "), "{text}");
}

#[test]
fn recursion_has_no_bound() {
    let idl = "module m { struct Node; typedef sequence<Node, 2> Nodes;
               struct Node { @key long x; Nodes children; @optional @external Node next; }; };";
    let text = generate(idl, &bare());
    // Measuring must terminate, and the key still has a bound.
    assert!(
        text.contains("measure.member::<NodeMembers::x>()"),
        "{text}"
    );
    for member in ["children", "next"] {
        let unbounded = format!("measure.recursive_member::<NodeMembers::{member}>()");
        assert!(text.contains(&unbounded), "{text}");
    }
}

#[test]
fn comments_do_not_become_programs() {
    let idl = "
        //     indented like code
        // ```
        // let x = 1;
        // ```
        struct S { long x; };";
    let text = generate(idl, &bare());
    assert!(text.contains("/// indented like code"), "{text}");
    assert!(!text.contains("```"), "{text}");
}

#[test]
fn options_are_checked() {
    let compilation = compile_str("test.idl", b"struct S { long x; };", &Options::default());
    let options = EmitOptions {
        runtime_path: "not a path".into(),
        ..bare()
    };
    let error = emit(&compilation.model, &options).expect_err("no path");
    assert_eq!(
        error,
        EmitError::InvalidPath {
            path: "not a path".into()
        }
    );
}

/// Exactly these types of the fixtures have the layout of memory in samples.
#[test]
fn plain_structures() {
    let idl = include_str!("../../testing/idl/fixtures/plain.idl");
    let text = generate(idl, &bare());
    let named = |prefix: &str| -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(prefix)?.split_once(' '))
            .map(|(name, _)| name)
            .collect()
    };
    let plain = [
        "Pose",
        "Reading",
        "Eight",
        "Board",
        "Keyed",
        "KeyedList",
        "Leg",
        "Mark",
    ];
    assert_eq!(named("impl __rt::Plain for "), plain);
    assert_eq!(
        named("impl __rt::Dense for "),
        ["Pose", "Eight", "Keyed", "KeyedList", "Leg", "Mark"]
    );
    assert_eq!(text.matches("#[repr(C)]").count(), plain.len());

    // Types of another crate are used with its properties.
    let idl = "module a { @final struct P { long x; }; }; module b { struct Q { a::P p; }; };";
    let extern_modules = BTreeMap::from([("a".to_owned(), "other".to_owned())]);
    let options = EmitOptions {
        extern_modules,
        ..bare()
    };
    assert!(!generate(idl, &options).contains("Plain"));
}
