//! No input makes the front end panic or hang, and every diagnostic has a position.

use std::fmt::Write as _;

use spindle_dds_idl::{Options, compile_str, print};

use super::fixtures;

/// A small deterministic generator of random numbers, so that failures can be repeated.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).expect("below a usize")
    }
}

/// Checks that one of the diagnostics contains `expected`.
fn complains(text: &str, expected: &str) {
    check(text.as_bytes());
    let compilation = compile_str("x.idl", text.as_bytes(), &Options::default());
    let mut messages = compilation.diagnostics.iter().map(|one| &one.message);
    let found = messages.any(|message| message.contains(expected));
    assert!(found, "{expected}: {:?}", compilation.diagnostics.first());
}

/// Compiles and checks the invariants of every result.
fn check(text: &[u8]) {
    let compilation = compile_str("x.idl", text, &Options::default());
    assert!(
        compilation.diagnostics.len() <= 200,
        "diagnostics are bounded"
    );
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    // After a line marker, lines are those of another file.
    let marked = text.contains(&b'#');
    for diagnostic in &compilation.diagnostics {
        assert!(
            marked || diagnostic.line <= lines,
            "{diagnostic} lies in the file"
        );
        assert!(!diagnostic.message.is_empty());
        assert!(diagnostic.render().ends_with('\n'));
    }
    if let Ok(model) = compilation.ok() {
        super::invariants::check(model);
        let text = print(model);
        assert!(text.is_empty() || text.ends_with('\n'));
    }
}

const FRAGMENTS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    ";",
    ",",
    "::",
    "@",
    "=",
    "\"",
    "'",
    "#",
    "\n",
    "\\\n",
    "/*",
    "*/",
    "//",
    "struct ",
    "module ",
    "enum ",
    "union ",
    "typedef ",
    "const ",
    "sequence<",
    "string",
    "@key ",
    "@id(1) ",
    "0x",
    "1e",
    "18446744073709551615",
    "-",
    "~",
    "<<",
    "#define A ",
    "#if ",
    "#endif\n",
    "#else\n",
    "\u{0}",
    "é",
    "L\"",
    "A::",
    "interface ",
    "@annotation X {",
    "union U switch (long) {",
    "case 1:",
    "default:",
    "bitmask M {",
    "bitset B {",
    "bitfield<3, ",
    "map<long, ",
    "fixed<5, 2> ",
    "1.5d",
    "wstring<",
    "L'",
    "long double ",
    "exception ",
    "native ",
    "attribute ",
    "raises (",
    "in ",
    "struct S;\n",
    ": S ",
    "S s;",
    "@optional ",
    "@external ",
    "@range(min = ",
    "@try_construct(TRIM) ",
    "@verbatim(text = ",
    "@bit_bound(",
    "@default(",
    "#define F(x, ...) x ## x #x __VA_ARGS__\n",
    "F(",
    "F",
    "#line 3 \"b\"\n",
    "#pragma keylist S s\n",
    "#include <tao/LongSeq.pidl>\n",
    "__LINE__",
];

#[test]
fn mutated_fixtures_never_panic() {
    let fixtures = fixtures();
    let mut random = SplitMix(0x5EED);
    for _ in 0..2000 {
        let (_, text) = &fixtures[random.below(fixtures.len())];
        let mut text = text.clone();
        // A window of a fixture keeps the runs short.
        let begin = random.below(text.len());
        let length = random.below(900);
        text = text[begin..(begin + length).min(text.len())].to_vec();
        for _ in 0..=random.below(6) {
            let at = random.below(text.len() + 1);
            match random.below(4) {
                0 if at < text.len() => text[at] = random.next() as u8,
                1 if at < text.len() => {
                    text.remove(at);
                }
                2 => {
                    let end = (at + random.below(40)).min(text.len());
                    let piece = text[at..end].to_vec();
                    let to = random.below(text.len() + 1);
                    text.splice(to..to, piece);
                }
                _ => {
                    let fragment = FRAGMENTS[random.below(FRAGMENTS.len())];
                    text.splice(at..at, fragment.bytes());
                }
            }
        }
        check(&text);
    }
}

#[test]
fn random_tokens_never_panic() {
    let mut random = SplitMix(0x70CE);
    for _ in 0..1500 {
        let count = random.below(120);
        let text: String = (0..count)
            .map(|_| FRAGMENTS[random.below(FRAGMENTS.len())])
            .collect();
        check(text.as_bytes());
    }
}

#[test]
fn fixtures_cut_off_anywhere_never_panic() {
    // Each fixture at different offsets, so that together they cover all of them.
    for (number, (_, text)) in fixtures().into_iter().enumerate() {
        for end in (number % 12..text.len().min(1500)).step_by(12) {
            check(&text[..end]);
        }
    }
}

#[test]
fn nesting_without_end_is_a_diagnostic() {
    let deep = 20_000;
    let cases = [
        "module m { ".repeat(deep),
        format!("const long X = {}1;", "(".repeat(deep)),
        format!("const long X = {}1;", "-".repeat(deep)),
        format!("const long X = 1{};", " + 1".repeat(deep)),
        format!(
            "const long X = 1{};",
            " | 1 ^ 1 & 1 << 1 + 1 * 1".repeat(deep)
        ),
        format!(
            "typedef {}long{} X;",
            "sequence<".repeat(deep),
            ">".repeat(deep)
        ),
        format!("struct S {{ long a{}; }};", "[2]".repeat(deep)),
        format!("struct S {}", "@a(".repeat(deep)),
        format!("@a({}", "x::".repeat(deep)),
        format!("union U {}", "{".repeat(deep)),
        format!("#if {}1\n#endif", "(".repeat(deep)),
        format!("#if {}1\n#endif", "!".repeat(deep)),
        format!("#if {}1\n#endif", "1 ? 1 : ".repeat(deep)),
        format!("{}{}", "#if 1\n".repeat(deep), "#endif\n".repeat(deep)),
        format!("typedef map<{}", "map<".repeat(deep)),
        "struct S { struct ".repeat(deep),
        "struct S { ".repeat(deep),
        "struct S { union U switch (long) { case 1: ".repeat(deep),
        "{".repeat(deep),
        "}".repeat(deep),
        "\"a\" ".repeat(deep),
        "\u{FEFF}\u{FEFF}".into(),
    ];
    for text in cases {
        check(text.as_bytes());
    }
}

#[test]
fn types_without_end_are_diagnostics() {
    let mut aliases = String::from("typedef long T0;\n");
    let mut structs = String::from("struct T0 { long a; };\n");
    let mut values = String::from("const long T0 = 1;\n");
    let mut macros = String::from("#define T0 1\n");
    for n in 1..3000 {
        let last = n - 1;
        writeln!(aliases, "typedef T{last} T{n};").expect("a string");
        writeln!(structs, "struct T{n} {{ @key T{last} a; T{last} b; }};").expect("a string");
        writeln!(values, "const long T{n} = T{last} + T{last};").expect("a string");
        writeln!(macros, "#define T{n} T{last} + T{last}").expect("a string");
    }
    macros.push_str("const long X = T2999;");
    for (text, expected) in [
        (aliases, "nests types more than 64 levels deep"),
        (structs, "takes more than 2147483647 bytes"),
        (values, "does not fit in `long`"),
        (macros, "is nested too deeply in other macros"),
    ] {
        complains(&text, expected);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_diagnostics() {
    check(b"\xFF\xFE struct");
    let compilation = compile_str(
        "x.idl",
        b"// \xE9\nstruct S { long a; };",
        &Options::default(),
    );
    assert!(compilation.ok().is_ok(), "they do no harm in a comment");
    assert_eq!(compilation.diagnostics.len(), 1);
    assert_eq!(
        compilation.diagnostics[0].to_string(),
        "x.idl:1:4: warning: bytes that are not UTF-8: the file is read as ISO 8859-1"
    );
}

/// A text whose lines repeat a pattern with the number of the line and of the previous one.
fn lines(first: &str, count: usize, line: impl Fn(usize, usize) -> String) -> String {
    let mut text = format!("{first}\n");
    for n in 1..count {
        text.push_str(&line(n, n - 1));
        text.push('\n');
    }
    text
}

#[test]
fn types_that_repeat_others_without_end_are_diagnostics() {
    let members = |count: usize, member: &str| -> String {
        (0..count).map(|n| format!("{member}{n}; ")).collect()
    };
    let big = members(3000, "long m");
    let deep = "struct T0; typedef sequence<T0> S0;";
    let cases = [
        (
            lines("struct T0 { };", 200, |n, last| {
                format!("struct T{n} : T{last} {{ long a{n}; }};")
            }),
            "nests types more than 64 levels deep",
        ),
        (
            lines(&format!("struct B {{ {big} }};"), 3000, |n, _| {
                format!("struct T{n} : B {{ }};")
            }),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            lines(&format!("@annotation A {{ {big} }};"), 3000, |n, _| {
                format!("@A struct T{n} {{ }};")
            }),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            lines(
                &format!("const string C = \"{}\";", "x".repeat(60_000)),
                3000,
                |n, _| format!("const string T{n} = C;"),
            ),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            format!(
                "/* {} */ typedef long {};",
                "long comment\n".repeat(50_000),
                (0..500)
                    .map(|n| format!("T{n}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            format!(
                "@unit(\"{}\") typedef long T; struct S {{ {} }};",
                "x".repeat(60_000),
                members(3000, "T m")
            ),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            format!(
                "struct S {{ @default(\"{}\") string m{} }};",
                "x".repeat(60_000),
                members(3000, ", m").replace(';', "") + ";"
            ),
            "declarations repeat more than 67108864 bytes",
        ),
        (
            lines("interface T0 { };", 400, |n, last| {
                format!("interface T{n} : T{last} {{ }};")
            }),
            "inherits from more than 256 interfaces",
        ),
        (
            lines(deep, 3000, |n, last| {
                format!("struct T{n}; struct T{last} {{ sequence<T{n}> a; }};")
            }) + "struct T2999 { };",
            "nests types more than 64 levels deep",
        ),
        (
            lines("struct T0;", 3000, |n, last| {
                format!("struct T{n}; struct T{last} {{ T{n} a; T{n} b; }};")
            }) + "struct T2999 { T0 c; };",
            "would contain itself without end",
        ),
        (
            format!(
                "struct T {{ @external T a; }};\n#pragma keylist T {}a",
                "a.".repeat(100_000)
            ),
            "the key goes more than 48 types deep",
        ),
        (
            lines(
                "union T0 switch (long) { case 1: long a; };",
                3000,
                |n, last| {
                    format!("union T{n} switch (long) {{ case 1: T{last} a; case 2: T{last} b; }};")
                },
            ),
            "nests types more than 64 levels deep",
        ),
        (
            lines("typedef map<long, long> T0;", 3000, |n, last| {
                format!("typedef map<long, T{last}> T{n};")
            }),
            "nests types more than 64 levels deep",
        ),
    ];
    for (text, expected) in cases {
        complains(&text, expected);
    }
}

#[test]
fn long_lists_take_no_time_by_the_square() {
    let many = 10_000;
    let list = |item: &dyn Fn(usize) -> String| (0..many).map(item).collect::<String>();
    let cases = [
        format!(
            "interface I {{ void f({}in long z); }};",
            list(&|n| format!("in long p{n}, "))
        ),
        format!("interface I : {} A {{ }};", list(&|n| format!("B{n}, "))),
        format!(
            "interface A {{ }}; interface I : {} A {{ }};",
            list(&|_| "A, ".into())
        ),
        format!(
            "@annotation A {{ {} }}; @A({} a0 = 1) struct S {{ }};",
            list(&|n| format!("long a{n};")),
            list(&|n| format!("a{n} = 1, "))
        ),
        format!(
            "struct S {{ {} }};\n#pragma keylist S {}",
            list(&|n| format!("long a{n};")),
            list(&|n| format!("a{n} "))
        ),
        format!(
            "{}{}",
            list(&|n| format!("struct S{n} {{ long a; }};\n")),
            list(&|n| format!("#pragma keylist S{n} a\n"))
        ),
        format!(
            "enum E {{ {} Z }}; union U switch (E) {{ {} default: long z; }};",
            list(&|n| format!("E{n}, ")),
            list(&|n| format!("case E{n}: long a{n};"))
        ),
        list(&|n| format!("struct S{n};\n"))
            + &list(&|n| format!("struct S{n} {{ sequence<S{n}> a; }};\n")),
        format!("struct S {{ long a; {}}};", list(&|_| "//@key\n".into())),
        format!("struct S {{ long a; {}\n}};", list(&|_| "//@key".into())),
        list(&|n| format!("#define M{n}(x) x\nM{n}(struct S{n} {{ }};)\n")),
        list(&|n| format!("#line {n} \"f\"\nstruct S{n} {{ Missing a; }};\n")),
    ];
    for text in cases {
        check(text.as_bytes());
    }
}
