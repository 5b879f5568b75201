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
        "a.idl:2:9: warning: macro `N` is redefined with another value",
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
fn function_like_macros() {
    check(
        "#define F(x) x + x\nF(1) F(a b) F((2, 3)) F",
        "1 + 1 a b + a b ( 2 , 3 ) + ( 2 , 3 ) F",
        "",
    );
    check("#define F(x, y) y x\nF(1,) F(\n 1,\n 2)", "1 2 1", "");
    check("#define F() z\nF() F ()", "z z", "");
    check("#define F (x) x\nF(1)", "( x ) x ( 1 )", "");
    check(
        "#define F(x) G(x)\n#define G(x) F(x) x\nF(1)",
        "F ( 1 ) 1",
        "",
    );
    check("#define F(x) [x]\nF(F(F(1)))", "[ [ [ 1 ] ] ]", "");
    check("#define F G\n#define G(x) x\nF(1) F", "1 G", "");
    check(
        "#define V(f, ...) f(__VA_ARGS__)\nV(a) V(a, 1, 2)",
        "a ( ) a ( 1 , 2 )",
        "",
    );
    check("#define A(...) __VA_ARGS__\nA() A(1, 2)", "1 , 2", "");
}

#[test]
fn function_like_macros_that_are_wrong() {
    check(
        "#define F(x, y) x y\nF(1) F(1, 2, 3)",
        "1 1 2",
        "a.idl:2:1: error: macro `F` expects 2 arguments, but has 1\n\
         a.idl:2:6: error: macro `F` expects 2 arguments, but has 3",
    );
    check(
        "#define F(x) x\nF(1\n#define G\n) y",
        ") y",
        "a.idl:2:1: error: unterminated arguments of macro `F`",
    );
    check(
        "#define F(x, x) x",
        "",
        "a.idl:1:9: error: parameter `x` occurs twice in this macro",
    );
    check(
        "#define F(x y) x\n#define G(..., x) x\n#define H(",
        "",
        "a.idl:1:9: error: expected `,` or `)` after a parameter of the macro\n\
         a.idl:2:9: error: `...` is the last parameter of a macro\n\
         a.idl:3:9: error: expected the name of a parameter of the macro",
    );
}

#[test]
fn pasting_and_quoting() {
    check(
        "#define P(a, b) a ## b\nP(x, 1) P(x,) P(,y) P(1, 2) P(<, <)",
        "x1 x y 12 < <",
        "",
    );
    check("#define M(n) struct T##n##_t\nM(3)", "struct T3_t", "");
    check("#define N 7\n#define P(a) a##N a\nP(N)", "NN 7", "");
    check(
        "#define P(a, b) a ## b\nP(+, x)",
        "+",
        "a.idl:2:1: error: `##` does not make a token of `+x`",
    );
    let text = "#define Q(x) #x\n#define N 1\nQ(a  b(N)) Q(\"t\\n\" 'c')";
    assert_eq!(
        texts(text),
        ["a b(N)", "\"t\\n\" \\'c\\'"].map(|text| text.replace("\\'", "'"))
    );
}

/// The string literals that are left.
fn texts(text: &str) -> Vec<String> {
    let mut sources = Sources::default();
    let mut sink = Sink::default();
    let file = sources.add("dir/a.idl".into(), None, text.as_bytes());
    let options = Options::default();
    let disk = Disk {
        beside: false,
        include_dirs: &[],
    };
    let tokens = Preprocessor::new(&mut sources, &mut sink, &options, disk).root(file);
    let text = |token: &Token| match &token.kind {
        TokenKind::Text(text) => Some(text.to_string()),
        _ => None,
    };
    tokens.iter().filter_map(text).collect()
}

#[test]
fn line_markers_and_places() {
    check(
        "#line 30 \"b.idl\"\n__LINE__ #\n#line 7\n'\n# 5 \"c.idl\" 1 3\n__LINE__ '",
        "30 # an invalid token 5 an invalid token",
        "b.idl:7:1: error: unterminated character literal\n\
         c.idl:5:10: error: unterminated character literal",
    );
    check(
        "#if __LINE__ == 1 && defined __FILE__\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#line\n#line x\n#line 1 2",
        "",
        "a.idl:1:1: error: a line marker is a number, and the name of a file or none\n\
         a.idl:2:1: error: a line marker is a number, and the name of a file or none\n\
         a.idl:3:1: error: a line marker is a number, and the name of a file or none",
    );
    assert_eq!(
        texts("__FILE__\n#line 1 \"b\"\n__FILE__"),
        ["dir/a.idl", "b"]
    );
}

#[test]
fn pragmas() {
    let all = "#pragma keylist m::T a b.c, _d\n#pragma DCPS_DATA_TYPE \"::A::B\"\n\
               #pragma DCPS_DATA_KEY \"A::B x.y\"\n";
    check(all, "a pragma a pragma a pragma", "");
    check(
        "#pragma keylist\n#pragma DCPS_DATA_KEY \"\"\n#pragma DCPS_DATA_TYPE \"A::\"",
        "",
        "a.idl:1:1: error: `#pragma keylist` expects the name of a type\n\
         a.idl:2:1: error: `#pragma DCPS_DATA_KEY` expects the name of a type\n\
         a.idl:3:1: error: `#pragma DCPS_DATA_TYPE` expects the name of a type",
    );
    check(
        "#pragma prefix \"x\"\n#pragma x y z",
        "",
        "a.idl:1:1: warning: `#pragma prefix` has no effect here\n\
         a.idl:2:1: warning: unknown pragma is ignored: `x y z`",
    );
}

#[test]
fn computed_includes() {
    let not_found = |name: &str| format!("a.idl:2:1: error: cannot find included file `{name}`");
    check("#define F \"x.idl\"\n#include F", "", &not_found("x.idl"));
    check("#define F <a/x.idl>\n#include F", "", &not_found("a/x.idl"));
    check(
        "#define F(n) <n.idl>\n#include F(y)",
        "",
        &not_found("y.idl"),
    );
    check(
        "#define F 3\n#include F",
        "",
        "a.idl:2:1: error: `#include` expects \"file\" or <file>",
    );
    check(
        "#include <tao/LongSeq.pidl>\n#include \"tao/LongSeq.pidl\"",
        "module CORBA { typedef sequence < long > LongSeq ; } ;",
        "",
    );
}

#[test]
fn errors_and_unknown_files() {
    check("#error don't", "", "a.idl:1:1: error: #error don't");
    check(
        "#warning once \\\n twice",
        "",
        "a.idl:1:1: warning: #warning once \\\n twice",
    );
    check(
        "#include <x.idl>",
        "",
        "a.idl:1:1: error: cannot find included file `x.idl`",
    );
    check(
        "#frobnicate",
        "",
        "a.idl:1:1: error: unknown directive `#frobnicate`",
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

#[test]
fn macros_with_arguments_come_to_an_end() {
    let mut nested = String::from("#define D(x) x x\n");
    nested.push_str(&"D(".repeat(25));
    nested.push('1');
    nested.push_str(&")".repeat(25));
    let mut deep = String::from("#define D(x) x\n");
    deep.push_str(&"D(".repeat(5000));
    let mut wide = String::from("#define A ");
    wide.push_str(&"x ".repeat(20_000));
    wide.push_str("\n#define D(y) ");
    wide.push_str(&"y #y ".repeat(20_000));
    wide.push_str("\nD(A) D(");
    wide.push_str(&"z ".repeat(20_000));
    wide.push(')');
    let many = format!("#define D(x) x\nD({})", ",".repeat(100_000));
    for (text, expected) in [
        (nested, "more than 1048576 tokens after preprocessing"),
        (deep, "unterminated arguments"),
        (wide, "more than 1048576 tokens after preprocessing"),
        (many, "more than 256 arguments"),
    ] {
        let (_, diagnostics) = run(&text, &Options::default());
        assert!(diagnostics.contains(expected), "{expected}: {diagnostics}");
    }
    let mut closed = String::from("#define D(x) x\n");
    closed.push_str(&"D(".repeat(5000));
    closed.push_str(&")".repeat(5000));
    let (_, diagnostics) = run(&closed, &Options::default());
    assert!(
        diagnostics.contains("is nested too deeply in other macros"),
        "{diagnostics}"
    );
}

#[test]
fn identifications_are_ignored() {
    check("#ident \"x 1.2\"\na", "a", "");
    check("#sccs \"x 1.2\"\na", "a", "");
    check("#if 0\n#ident what\n#endif\na", "a", "");
    check(
        "#ident x\na",
        "a",
        "a.idl:1:1: error: `#ident` expects a string",
    );
}

#[test]
fn conditions_on_files() {
    check(
        "#if __has_include(<nowhere.idl>)\nno\n#else\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#if !__has_include(\"nowhere.idl\") && 1\nyes\n#endif",
        "yes",
        "",
    );
    check("#ifdef __has_include\nyes\n#endif", "yes", "");
    check("#if defined(__has_include)\nyes\n#endif", "yes", "");
    // Files of other compilers' libraries are known by name.
    check(
        "#if __has_include(<tao/LongSeq.pidl>)\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#define F <nowhere.idl>\n#if __has_include(F)\nno\n#else\nyes\n#endif",
        "yes",
        "",
    );
    for text in [
        "#if __has_include\n#endif",
        "#if __has_include nowhere\n#endif",
        "#if __has_include(nowhere\n#endif",
        "#if __has_include(\"nowhere\"\n#endif",
        "#if __has_include(<nowhere)\n#endif",
    ] {
        check(
            text,
            "",
            "a.idl:1:5: error: `__has_include` expects (\"file\") or (<file>)",
        );
    }
    check("__has_include", "__has_include", "");
    check(
        "#define __has_include 1\n",
        "",
        "a.idl:1:9: error: `__has_include` cannot be the name of a macro",
    );
}

#[test]
fn optional_text_of_variadic_macros() {
    let define = "#define F(x, ...) x __VA_OPT__(, y) __VA_ARGS__\n";
    check(
        &format!("{define}F(1) F(1,) F(1, 2) F(1, 2, 3)"),
        "1 1 1 , y 2 1 , y 2 , 3",
        "",
    );
    // Arguments that expand to nothing are none: ISO C++20 §15.6.2.
    check(&format!("#define E\n{define}F(1, E)"), "1", "");
    check("#define G(...) a __VA_OPT__() b\nG() G(1)", "a b a b", "");
    check(
        "#define P(x, ...) x ## __VA_OPT__(y z)\nP(a) P(a, 1)",
        "a ay z",
        "",
    );
    check(
        "#define Q(x, ...) __VA_OPT__(y x) ## x\nQ(a) Q(a, 1)",
        "a y aa",
        "",
    );
    check(
        "#define S(x, ...) #__VA_OPT__(x y) x\nS(a) S(a, 1)",
        "a string literal a a string literal a",
        "",
    );
    check(
        "#define N(...) __VA_OPT__((a, (b)) __VA_ARGS__)\nN() N(1)",
        "( a , ( b ) ) 1",
        "",
    );
    check(
        "#define B(...) __VA_OPT__(a\n",
        "",
        "a.idl:1:9: error: `__VA_OPT__` without its `(` and `)`",
    );
    check(
        "#define B(...) __VA_OPT__ a\n",
        "",
        "a.idl:1:9: error: `__VA_OPT__` without its `(` and `)`",
    );
    check(
        "#define B(...) __VA_OPT__(a __VA_OPT__(b))\n",
        "",
        "a.idl:1:9: error: `__VA_OPT__` inside `__VA_OPT__`",
    );
    // Outside of variadic macros it is a word.
    check("#define C(x) x __VA_OPT__\nC(1)", "1 __VA_OPT__", "");
}

#[test]
fn pasting_with_nothing() {
    check("#define P(x) a x ## b\nP() P(c)", "a b a cb", "");
    check(
        "#define P(x, y) [x ## y]\nP(,) P(a,) P(,b)",
        "[ ] [ a ] [ b ]",
        "",
    );
    // A comma before no variable arguments goes, as other preprocessors have it.
    let define = "#define L(f, ...) f(0, ## __VA_ARGS__)\n#define N 1\n";
    check(
        &format!("{define}L(g) L(g, N, 2)"),
        "g ( 0 ) g ( 0 , 1 , 2 )",
        "",
    );
}

#[test]
fn conditions_that_continue_with_ifdef() {
    check(
        "#ifdef X\nno\n#elifdef Y\nno\n#elifndef Z\nyes\n#endif",
        "yes",
        "",
    );
    check(
        "#define Y\n#if 0\n#elifdef Y\nyes\n#elifndef Z\nno\n#endif",
        "yes",
        "",
    );
    check("#if 1\nyes\n#elifdef\n#endif", "yes", "");
}
