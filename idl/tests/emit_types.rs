//! Generated code of types other than structures.

use std::collections::BTreeSet;

use spindle_dds_idl::emit::{EmitError, EmitOptions, emit};
use spindle_dds_idl::mapping::VARIABLES;
use spindle_dds_idl::{Options, compile_str};

fn bare() -> EmitOptions {
    EmitOptions {
        serde: false,
        ..EmitOptions::default()
    }
}

fn try_generate(idl: &str, options: &EmitOptions) -> Result<String, EmitError> {
    let compilation = compile_str("test.idl", idl.as_bytes(), &Options::default());
    emit(compilation.ok().expect("the IDL is right"), options)
}

fn generate(idl: &str, options: &EmitOptions) -> String {
    try_generate(idl, options).expect("the options are right")
}

/// Comments reach each item through which an application sees a branch.
#[test]
fn documentation_reaches_branches() {
    let idl = "
        module m {
          // A value of some kind.
          @nested union Value switch (boolean) {
            // Its text.
            case TRUE: string<8> text;
            case FALSE: long numbers[40];
          };
        };";
    let text = generate(idl, &bare());
    assert!(
        text.contains("/// A value of some kind.\n    #[derive("),
        "{text}"
    );
    // The variant of the owned form, that of the view, and the builder's method.
    assert_eq!(text.matches("/// Its text.\n").count(), 3, "{text}");
}

#[test]
fn bitmasks_and_bitsets() {
    let idl = "
        module m {
          // Its flags.
          @bit_bound(9) bitmask Flags {
            // The first.
            ONE,
            @position(8) all
          };
          @final bitmask Closed { A };
          bitset Base { bitfield<3> low; bitfield<2>; bitfield<4, short> high; };
          bitset More : Base { bitfield<1> flag; };
        };";
    insta::assert_snapshot!(generate(idl, &EmitOptions::default()));
}

#[test]
fn native_types_are_the_users() {
    let idl = "module m { native Handle; interface I { Handle open(in Handle other); }; };";
    let missing = try_generate(idl, &bare()).expect_err("has no path");
    assert_eq!(
        missing,
        EmitError::NativeWithoutPath {
            name: "m::Handle".into()
        }
    );
    let mut options = bare();
    options
        .natives
        .insert("m::Handle".into(), "::my_crate::Handle".into());
    let text = generate(idl, &options);
    assert!(
        text.contains("pub type Handle = ::my_crate::Handle;"),
        "{text}"
    );
    assert!(
        text.contains("fn open(&self, other: &Handle) -> Handle;"),
        "{text}"
    );
    options.natives.insert("m::Handle".into(), "no path".into());
    let wrong = try_generate(idl, &options).expect_err("is no path");
    assert!(matches!(wrong, EmitError::InvalidPath { .. }));
}

#[test]
fn types_without_a_finite_value_are_refused() {
    let infinite = [
        "struct S { long x; @external S next; };",
        "union S switch (long) { case 0: @external S a; case 1: @external S b; };",
        "struct S; struct T { @external S s; }; struct S { T t[2]; };",
    ];
    for idl in infinite {
        let compilation = compile_str("test.idl", idl.as_bytes(), &Options::default());
        let diagnostics = compilation.ok().expect_err("would not end");
        let texts: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(texts[0].contains("has no finite value"), "{texts:?}");
    }
    let finite = [
        "struct S { long x; @external @optional S next; };",
        "union S switch (long) { case 0: @external S a; case 1: long b; };",
        "union S switch (boolean) { case FALSE: @external S a; default: long b; };",
        "struct S; union T switch (long) { case 0: @external S s; case 1: octet o; };
         struct S { T t[2]; };",
    ];
    for idl in finite {
        generate(idl, &bare());
    }
}

#[test]
fn units_are_documented() {
    let idl = "
        @unit(\"m/s\") typedef double Speed;
        @nested struct S {
          // How fast.
          Speed speed;
          @unit(\"kg\") long mass;
        };";
    let text = generate(idl, &bare());
    assert!(
        text.contains("/// How fast.\n    ///\n    /// Unit: m/s.\n    pub speed"),
        "{text}"
    );
    assert!(
        text.contains("    /// Unit: kg.\n    pub mass: i32"),
        "{text}"
    );
    assert!(
        text.contains("    /// Unit: kg.\n    #[inline]\n    pub fn mass(&self)"),
        "{text}"
    );
}

fn verbatim(placement: &str, text: &str) -> String {
    format!("@verbatim(language=\"rust\", placement={placement}, text=\"{text}\")")
}

#[test]
fn verbatim_text_is_at_its_placement() {
    let idl = [
        "module m {",
        &verbatim("BEGIN_FILE", "// First of all."),
        &verbatim("BEFORE_DECLARATION", "#[derive(Eq, Hash)]"),
        &verbatim(
            "BEGIN_DECLARATION",
            "#[doc=\\\" Of mine.\\\"] pub mine: ::my_crate::Mine,",
        ),
        &verbatim("END_DECLARATION", "pub last: u8,"),
        &verbatim("AFTER_DECLARATION", "impl S { pub fn one() -> i32 { 1 } }"),
        &verbatim("END_FILE", "// Last of all."),
        "@verbatim(language=\"c++\", text=\"#include <none>\")",
        "@nested struct S { long x; }; };",
    ]
    .join("\n");
    let text = generate(&idl, &bare());
    let at = |part: &str| {
        let at = text.find(part);
        at.unwrap_or_else(|| panic!("{part} is not in {text}"))
    };
    let order = [
        "// First of all.",
        "pub mod m {",
        "#[derive(Eq, Hash)]",
        "pub struct S {",
        "/// Of mine.",
        "pub mine: ::my_crate::Mine,",
        "pub x: i32,",
        "pub last: u8,",
        "impl S {",
        "// Last of all.",
    ];
    let places: Vec<_> = order.iter().map(|part| at(part)).collect();
    assert!(places.is_sorted(), "{places:?} in {text}");
    assert!(!text.contains("include"), "{text}");
}

#[test]
fn verbatim_text_must_be_rust() {
    let wrong = [
        ("BEFORE_DECLARATION", "fn {", "struct S { long x; };"),
        ("BEGIN_DECLARATION", "not fields", "struct S { long x; };"),
        ("END_FILE", "fn broken(", "struct S { long x; };"),
        ("END_FILE", "no items", "struct S { long x; };"),
        ("BEGIN_DECLARATION", "x", "typedef long S;"),
    ];
    for (placement, text, declaration) in wrong {
        let idl = format!("{} {declaration}", verbatim(placement, text));
        let error = try_generate(&idl, &bare()).expect_err("is no Rust there");
        assert!(matches!(error, EmitError::Verbatim { .. }), "{error}");
    }
}

/// Many items are distributed to threads.
#[test]
fn items_stand_once_and_in_their_order() {
    let structures = |numbers: std::ops::Range<usize>| -> String {
        let structure = |number| format!("struct Number{number} {{ long x; }};\n");
        numbers.map(structure).collect()
    };
    let idl = format!(
        "{} module m {{ {} interface I {{ {} }}; {} }}; module elsewhere {{ {} }}; {}",
        structures(0..40),
        structures(40..80),
        structures(80..120),
        structures(120..160),
        structures(500..540),
        structures(160..200)
    );
    let mut options = bare();
    let path = "::other::types".to_owned();
    options.extern_modules.insert("elsewhere".to_owned(), path);
    let text = generate(&idl, &options);
    let (mut rest, mut found) = (&text[..], 0);
    while let Some((_, behind)) = rest.split_once("pub struct Number") {
        let end = behind.find(|c: char| !c.is_ascii_digit()).expect("goes on");
        // Not a view or a builder.
        if behind[end..].starts_with(" {") {
            assert_eq!(behind[..end].parse(), Ok(found));
            found += 1;
        }
        rest = behind;
    }
    assert_eq!(found, 200);
    assert_eq!(text, generate(&idl, &options));
}

/// Variables that generated code binds: after `let`, between bars, and before a colon.
fn bindings(text: &str) -> BTreeSet<&str> {
    let word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") || line.starts_with("pub const ") {
            continue;
        }
        let lets = line.split("let ").skip(1);
        let lets = lets.filter_map(|rest| rest.trim_start_matches("mut ").split([' ', ':']).next());
        let bars = line.split('|').skip(1).step_by(2);
        let closures = bars.flat_map(|inside| inside.split(", "));
        let colons = line
            .split(": ")
            .filter_map(|before| before.rsplit([' ', '(']).next());
        found.extend(lets.chain(closures).chain(colons).filter(|it| word(it)));
    }
    found
}

#[test]
fn constants_and_bitmasks_are_never_patterns_in_generated_code() {
    let constants: String = VARIABLES
        .iter()
        .map(|name| format!("const long {name} = 1;"))
        .collect();
    let bitmasks: String = VARIABLES
        .iter()
        .map(|name| format!("bitmask {name} {{ A }};"))
        .collect();
    let idl = format!(
        "module constants {{ {constants} const long value_ = 2;
           @mutable struct M {{ @key long m1; @optional string m2; sequence<M> m3; }};
           struct S {{ @key M m1; @max(4) long m2; map<string, M> m3; wstring<3> m4; }};
           @final struct P {{ double m1; octet m2[9]; }};
           union U switch (long) {{ case 1: case 2: S m1; case 3: P m2; }};
           enum E {{ A1, A2 }}; bitset B {{ bitfield<3> m1; }};
           exception X {{ E m1; }};
           interface I {{ void m1(in S m2) raises (X); attribute B m3; }};
         }};
         module bitmasks {{ {bitmasks} }};"
    );
    let text = generate(&idl, &EmitOptions::default());
    let bound = bindings(&text);
    // Fields of the runtime's, and words of Rust.
    let fields = [
        "align",
        "both",
        "depth",
        "first",
        "information",
        "objects",
        "offset",
        "path",
        "self",
        "size",
        "stage",
        "unused_variables",
        "where",
    ];
    let lower = |name: &&&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let members = ["m1", "m2", "m3", "m4"];
    for name in bound.iter().filter(lower) {
        let known = [VARIABLES, &fields, &members];
        assert!(
            known.iter().any(|all| all.contains(name)),
            "`{name}` is a variable too"
        );
    }
    for line in text.lines().map(str::trim_start) {
        let constant = line.strip_prefix("pub const ");
        let bitmask = line.strip_prefix("pub struct ");
        let name = constant
            .or(bitmask)
            .and_then(|rest| rest.split([':', '(', ' ']).next());
        let declared = name.filter(|name| name.ends_with('_') || VARIABLES.contains(name));
        if let Some(name) = declared {
            assert!(!bound.contains(name), "`{name}` is bound too");
        }
    }
    assert!(
        text.contains("pub const value__: i32 = 1;"),
        "beside value_"
    );
    assert!(text.contains("pub struct value_(u32);"));
}
