//! Rules of IDL 4.2 and XTypes 1.3 that hold at many places: each at every construct where it can
//! stand, with the place and the text of what is reported.
#![forbid(unsafe_code)]

use spindle_dds_idl::{Encoding, Options, compile_str};

/// What is reported for a text, a line each, without hints.
fn reports(text: &[u8], options: &Options) -> Vec<String> {
    let compilation = compile_str("a.idl", text, options);
    let diagnostics = compilation.diagnostics.iter();
    diagnostics.map(ToString::to_string).collect()
}

fn check(text: &str, expected: &[&str]) {
    let found = reports(text.as_bytes(), &Options::default());
    assert_eq!(found, expected, "{text}");
}

fn print(text: &[u8], options: &Options) -> String {
    let compilation = compile_str("a.idl", text, options);
    let model = compilation.ok().map_err(|found| format!("{found:#?}"));
    spindle_dds_idl::print(model.expect("compiles"))
}

// Keys: XTypes 1.3 §7.2.2.4.4.4.8.

const PLATE: &str = "struct Plate { string number; @optional string state; };";

#[test]
fn an_optional_member_is_in_no_key_by_implication() {
    let refused = |line: usize, column: usize| {
        format!(
            "a.idl:{line}:{column}: error: a member of the key cannot be optional, but `state` of \
             `Plate` is"
        )
    };
    for use_of_it in [
        "struct Car { @key Plate plate; };",
        "struct Car { @key sequence<Plate> plates; };",
        "struct Car { @key sequence<sequence<Plate>, 2> plates; };",
        "struct Car { @key Plate plates[2]; };",
        "struct Car { @key @external Plate plate; };",
    ] {
        check(&format!("{PLATE}\n{use_of_it}"), &[&refused(2, 14)]);
    }
    for around in [
        "struct Outer { Plate plate; };",
        "struct Outer { sequence<Plate> plates; };",
        "struct Outer { @external Plate plate; };",
        "union Outer switch (long) { case 1: long a; case 2: Plate plate; };",
        "typedef Plate Outer;",
        "typedef sequence<Plate> Outer;",
        "typedef Plate Outer[3];",
        "struct Outer : Plate { long more; };",
    ] {
        let text = format!("{PLATE}\n{around}\nstruct Car {{ @key Outer outer; }};");
        let found = reports(text.as_bytes(), &Options::default());
        let expected = match around.contains(": Plate {") {
            true => refused(3, 14).replace("`Plate`", "`Outer`"),
            false => refused(3, 14),
        };
        assert_eq!(found, [expected], "{around}");
    }
    check(
        &format!("struct Plate;\nstruct Car {{ @key sequence<Plate> plates; }};\n{PLATE}"),
        &[&refused(2, 14)],
    );
    check(
        &format!("{PLATE}\nstruct Car {{ Plate plate; }};\n#pragma keylist Car plate"),
        &[&refused(3, 1)],
    );
}

#[test]
fn a_member_that_is_not_sent_is_in_no_key_by_implication() {
    check(
        "struct Part { long a; @non_serialized long b; };\nstruct S { @key Part i; };",
        &["a.idl:2:12: error: a member of the key is always sent, but `b` of `Part` is not"],
    );
    check(
        "struct S { @non_serialized long a; long b; };\n#pragma keylist S a",
        &["a.idl:2:1: error: a member of the key is always sent"],
    );
}

#[test]
fn types_with_a_key_of_their_own_may_have_optional_members() {
    for text in [
        "struct Part { @key long a; @optional long b; };\nstruct S { @key Part i; };",
        "struct Part { @optional long b; };\nunion U switch (@key long) { case 1: Part i; };\n\
         struct S { @key U u; };",
        "struct Part { @key long a; @optional long b; };\nstruct D : Part { @optional long c; };\n\
         struct S { @key D d; };",
        "struct Part { long a; @optional long b; };\nstruct S { @key long k; Part i; };",
        "struct Part { long a; @optional long b; };\nstruct S { Part i; };\n#pragma keylist S i.a",
    ] {
        check(text, &[]);
    }
}

// Extensibility: XTypes 1.3 table 12.

#[test]
fn enumerations_and_bitmasks_are_not_mutable() {
    let message = |line: usize, column: usize, what: &str| {
        format!("a.idl:{line}:{column}: error: {what} cannot be mutable")
    };
    check("@mutable enum E { A };", &[&message(1, 1, "an enum")]);
    check(
        "@extensibility(MUTABLE) enum E { A };",
        &[&message(1, 1, "an enum")],
    );
    check("@mutable bitmask M { A };", &[&message(1, 1, "a bitmask")]);
    check(
        "module m {\n  @extensibility(MUTABLE) bitmask M { A };\n};",
        &[&message(2, 3, "a bitmask")],
    );
    for text in [
        "@final enum E { A };",
        "@appendable enum E { A };",
        "@extensibility(APPENDABLE) bitmask M { A };",
        "@final bitmask M { A };",
    ] {
        check(text, &[]);
    }
}

// Annotations may precede any construct: IDL 4.2 §7.4.15.4.2.

#[test]
fn an_annotation_without_effect_is_a_warning() {
    let none = |line: usize, column: usize, name: &str, place: &str| {
        format!("a.idl:{line}:{column}: warning: `@{name}` has no effect on {place}")
    };
    check(
        "@topic const long N = 1;",
        &[&none(1, 1, "topic", "a constant")],
    );
    check(
        "@key typedef long T;\n@id(3) enum E { @bit_bound(8) A };\n@range(min = 1) struct S { long a; };",
        &[
            &none(1, 1, "key", "a typedef"),
            &none(2, 1, "id", "an enum"),
            &none(2, 17, "bit_bound", "a literal of an enum"),
            &none(3, 1, "range", "a struct"),
        ],
    );
    check(
        "@nested module m { struct S { @topic long a; }; };",
        &[
            &none(1, 1, "nested", "a module"),
            &none(1, 31, "topic", "a member"),
        ],
    );
    check(
        "interface I { @optional attribute long a; void call(@default(3) in long b); };",
        &[
            &none(1, 15, "optional", "an attribute"),
            &none(1, 53, "default", "a parameter"),
        ],
    );
}

#[test]
fn an_annotation_that_contradicts_its_construct_is_an_error() {
    let refused = |column: usize, name: &str, place: &str| {
        format!("a.idl:1:{column}: error: `@{name}` is not allowed on {place}")
    };
    for (name, place) in [
        ("optional", "a branch of a union"),
        ("key", "a branch of a union"),
        ("must_understand", "a branch of a union"),
        ("non_serialized", "a branch of a union"),
    ] {
        check(
            &format!("union U switch (long) {{ case 1: @{name} long a; }};"),
            &[&refused(33, name, place)],
        );
    }
    check(
        "union U switch (@optional long) { case 1: long a; };",
        &[&refused(17, "optional", "the discriminator of a union")],
    );
    check(
        "@mutable bitset B { bitfield<1> a; };",
        &[&refused(1, "mutable", "a bitset")],
    );
    check(
        "@extensibility(MUTABLE) typedef long T;",
        &[&refused(1, "extensibility", "a typedef")],
    );
}

// Names: IDL 4.2 §7.2.3, §7.5.2.

#[test]
fn a_member_with_the_name_of_its_type_is_a_warning() {
    let same = |column: usize, member: &str, ty: &str| {
        format!("a.idl:1:{column}: warning: `{member}` has the name of its enclosing type `{ty}`")
    };
    check(
        "struct Command { string command; };",
        &[&same(25, "command", "Command")],
    );
    check(
        "module m { struct A { long b, a; }; };",
        &[&same(31, "a", "A")],
    );
    check("struct A { long A; };", &[&same(17, "A", "A")]);
    check(
        "union Shape switch (long) { case 1: long shape; };",
        &[&same(42, "shape", "Shape")],
    );
    check(
        "exception Fault { long fault; };",
        &[&same(24, "fault", "Fault")],
    );
    check(
        "bitset Bits { bitfield<3> bits; };",
        &[&same(27, "bits", "Bits")],
    );
    check("bitmask Flag { flag };", &[&same(16, "flag", "Flag")]);
    check("struct A { long a_; string other; };", &[]);
    // The base's member is not a name of the derived structure's text.
    check("struct A { long b; };\nstruct B : A { long c; };", &[]);
}

// Encodings of source files: IDL 4.2 §7.2.6.

fn with(encoding: Encoding) -> Options {
    Options {
        encoding,
        ..Options::default()
    }
}

const NOTE: &str = "warning: bytes that are not UTF-8: the file is read as ISO 8859-1";

#[test]
fn literals_in_iso_8859_1_are_read() {
    let text = b"const char D = '\xB0';\nconst string U = \"\xB0C\";\nconst wchar W = L'\xE9';\n\
        const wstring X = L\"\xE9t\xE9\";\nstruct S { @unit(\"\xB5m\") @default(\"\xFC\") string a; };";
    let printed = "const D: char = '\\xb0'\nconst U: string = \"°C\"\nconst W: wchar = L'é'\n\
        const X: wstring = \"été\"\nstruct S Appendable\n  0 a: string = \"ü\" unit \"µm\"\n";
    let auto = Options::default();
    assert_eq!(auto.encoding, Encoding::Auto);
    assert_eq!(print(text, &auto), printed);
    assert_eq!(reports(text, &auto), [format!("a.idl:1:17: {NOTE}")]);
    let latin1 = with(Encoding::Latin1);
    assert_eq!(print(text, &latin1), printed);
    assert_eq!(reports(text, &latin1), [""; 0]);
    let utf8 = reports(text, &with(Encoding::Utf8));
    let not = |line: usize, column: usize, what: &str| {
        format!("a.idl:{line}:{column}: error: {what} with bytes that are not UTF-8")
    };
    let expected = [
        not(1, 16, "character literal"),
        String::from("a.idl:1:17: warning: bytes that are not UTF-8"),
        not(2, 18, "string literal"),
        not(3, 17, "character literal"),
        not(4, 19, "string literal"),
        not(5, 18, "string literal"),
        not(5, 33, "string literal"),
    ];
    assert_eq!(utf8, expected);
}

#[test]
fn macros_and_comments_in_iso_8859_1() {
    let text = b"#define U \"\xB0C\"\n// d\xE9lai\nstruct S { @unit(U) double t; /* \xFF */ };";
    let auto = Options::default();
    let printed = "/// délai\nstruct S Appendable\n  0 t: float64 unit \"°C\"\n";
    assert_eq!(print(text, &auto), printed);
    assert_eq!(reports(text, &auto), [format!("a.idl:1:12: {NOTE}")]);
    let only_in_comments = b"// d\xE9lai\nstruct S { long a; };";
    assert_eq!(
        reports(only_in_comments, &with(Encoding::Utf8)),
        ["a.idl:1:5: warning: bytes that are not UTF-8"]
    );
    assert_eq!(
        reports(b"struct S\xFC { long a; };", &with(Encoding::Utf8))[1],
        "a.idl:1:9: error: bytes that are not UTF-8"
    );
}

#[test]
fn a_replacement_character_is_a_character() {
    let text = "const string S = \"\u{FFFD}x\";\nconst wchar W = L'\u{FFFD}';\n\
        const wstring X = L\"\u{FFFD}\";\nstruct T { @unit(\"\u{FFFD}\") long a; };";
    for encoding in [Encoding::Auto, Encoding::Utf8] {
        assert_eq!(reports(text.as_bytes(), &with(encoding)), [""; 0]);
        let printed = print(text.as_bytes(), &with(encoding));
        assert!(printed.contains("S: string = \"\u{FFFD}x\""), "{printed}");
    }
    // It is no character of 8 bits.
    check(
        "const char C = '\u{FFFD}';",
        &["a.idl:1:16: error: `\u{FFFD}` does not fit in a `char` of 8 bits"],
    );
    // As ISO 8859-1 the same bytes are three characters.
    let printed = print(
        text.as_bytes()
            .split(|byte| *byte == b'\n')
            .next()
            .expect("a line"),
        &with(Encoding::Latin1),
    );
    assert!(printed.contains("\"ï¿½x\""), "{printed}");
}

#[test]
fn encodings_of_files_with_marks() {
    check("\u{FEFF}struct S { long a; };", &[]);
    let utf16 = |big: bool| -> Vec<u8> {
        let text = "\u{FEFF}struct S { long a; };";
        let bytes = |unit: u16| match big {
            true => unit.to_be_bytes(),
            false => unit.to_le_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    };
    for encoding in [Encoding::Auto, Encoding::Utf8, Encoding::Latin1] {
        for big in [true, false] {
            assert_eq!(
                reports(&utf16(big), &with(encoding)),
                ["a.idl:1:1: error: the file is in UTF-16"]
            );
        }
    }
    // The mark says UTF-8.
    let found = reports(
        b"\xEF\xBB\xBFconst string S = \"\xB0\";",
        &Options::default(),
    );
    assert_eq!(
        found,
        [
            "a.idl:1:19: error: string literal with bytes that are not UTF-8",
            "a.idl:1:20: warning: bytes that are not UTF-8",
        ]
    );
}
