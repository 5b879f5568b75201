use super::*;

/// The text of the tokens that remain, and the diagnostics, one a line.
fn run(text: &str, options: &Options) -> (String, String) {
    let mut sources = Sources::default();
    let mut sink = Sink::default();
    let file = sources.add("a.idl".into(), None, text.as_bytes());
    let disk = Disk {
        beside: false,
        include_dirs: &options.include_dirs,
    };
    let tokens = Preprocessor::new(&mut sources, &mut sink, options, disk).root(file);
    let shown: Vec<String> = tokens.iter().map(|token| token.kind.describe()).collect();
    let diagnostics: Vec<String> = sink
        .finish(&sources)
        .iter()
        .map(ToString::to_string)
        .collect();
    let shown = shown[..shown.len() - 1]
        .join(" ")
        .replace('`', "")
        .replace("keyword ", "");
    (shown, diagnostics.join("\n"))
}

fn check(text: &str, expected: &str, expected_diagnostics: &str) {
    let (tokens, diagnostics) = run(text, &Options::default());
    assert_eq!(tokens, expected, "tokens of {text:?}");
    assert_eq!(diagnostics, expected_diagnostics, "diagnostics of {text:?}");
}

#[test]
fn object_like_macros() {
    check("#define N 3 + M\n#define M 4\nN x N\n", "3 + 4 x 3 + 4", "");
    check("#define A B\n#define B A\nA", "A", "");
    check("#define EMPTY\nEMPTY a EMPTY", "a", "");
    check("#define N 1\n#undef N\nN", "N", "");
    check("#define long short\nlong", "short", "");
    check(
        "#define N 1\n#define N 2\n#define N 2\nN",
        "2",
        "a.idl:2:9: warning: macro `N` is defined anew with another value",
    );
}

#[test]
fn macros_of_the_options() {
    let mut options = Options::default();
    options.defines.push(("A".into(), None));
    options.defines.push(("B".into(), Some("short x".into())));
    let (tokens, diagnostics) = run("#ifdef A\nA B\n#endif", &options);
    assert_eq!((tokens.as_str(), diagnostics.as_str()), ("1 short x", ""));
}

#[test]
fn conditions() {
    check("#ifdef A\nno\n#else\nyes\n#endif\nend", "yes end", "");
    check(
        "#ifndef A\n#define A\nyes\n#endif\n#ifndef A\nno 'x\n#endif",
        "yes",
        "",
    );
    check(
        "#if defined A || !defined(B) && 2 > 1\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#if 0\n#elif (1 << 4) == 16\nyes\n#elif 1\nno\n#else\nno\n#endif",
        "yes",
        "",
    );
    check(
        "#define V 42\n#if V >= 43 ? 1 : 0\nno\n#else\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#if 0\n#if 1\nno\n#else\nno\n#endif\nno\n#endif\nyes",
        "yes",
        "",
    );
    check(
        "#if 1 / 0\n#endif",
        "",
        "a.idl:1:1: error: condition of `#if`: division by zero",
    );
    check("#if 1", "", "a.idl:1:1: error: `#if` without `#endif`");
    check("#endif", "", "a.idl:1:1: error: `#endif` without `#if`");
    check(
        "#if 1\n#else\n#else\n#endif",
        "",
        "a.idl:3:1: error: the `#if` has had its `#else` already",
    );
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    check(
        "#define F(x) x\nF(1, (2)) y",
        "an invalid token y",
        "a.idl:1:9: error: function-like macro `F` is not yet supported\n\
         a.idl:2:1: error: use of a macro that was refused",
    );
    check(
        "#define P a ## b",
        "",
        "a.idl:1:9: error: `##` in a macro is not yet supported",
    );
    check(
        "#line 3",
        "",
        "a.idl:1:1: error: `#line` is not yet supported",
    );
    check(
        "#include FILE",
        "",
        "a.idl:1:1: error: `#include` of a macro is not yet supported",
    );
    check(
        "#pragma keylist T a",
        "",
        "a.idl:1:1: error: `#pragma keylist` is not yet supported",
    );
    check(
        "#pragma x y z",
        "",
        "a.idl:1:1: warning: unknown pragma is ignored: `x y z`",
    );
    check("#error don't", "", "a.idl:1:1: error: #error don't");
    check(
        "#include <x.idl>",
        "",
        "a.idl:1:1: error: cannot find included file `x.idl`",
    );
}

#[test]
fn expansion_comes_to_an_end() {
    for begin in ["x x", ""] {
        let mut text = format!("#define M0 {begin}\n");
        for n in 1..30 {
            text.push_str(&format!("#define M{n} M{m} M{m}\n", m = n - 1));
        }
        text.push_str("M29");
        let (_, diagnostics) = run(&text, &Options::default());
        let expected = "a.idl:31:1: error: more than 1048576 tokens after preprocessing";
        assert_eq!(diagnostics, expected);
    }
}
