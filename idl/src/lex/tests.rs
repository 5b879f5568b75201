use super::*;

/// One token a line in a short notation.
fn check(text: &str, expected: &[&str]) {
    let shown = |token: &Token| match &token.kind {
        TokenKind::Identifier(name) => format!("{name}"),
        TokenKind::Keyword(word) => format!("kw {word}"),
        TokenKind::Integer(value) => format!("int {value}"),
        TokenKind::Float(value) => format!("float {value}"),
        TokenKind::Fixed(text) => format!("fixed {text}"),
        TokenKind::Char(c) => format!("char {c:?}"),
        TokenKind::WideChar(c) => format!("wchar {c:?}"),
        TokenKind::Text(text) => format!("text {text:?}"),
        TokenKind::WideText(text) => format!("wtext {text:?}"),
        TokenKind::Punct(c) => format!("{c}"),
        TokenKind::Scope => "::".into(),
        TokenKind::Error(message) => format!("error {message}"),
        TokenKind::Pragma(_) => "pragma".into(),
        TokenKind::End => "end".into(),
    };
    let tokens: Vec<String> = lex(FileId(0), text).iter().map(shown).collect();
    assert_eq!(tokens, expected, "tokens of {text:?}");
}

#[test]
fn words_and_punctuation() {
    check(
        "struct _struct A::b<<x",
        &["kw struct", "_struct", "A", "::", "b", "<", "<", "x"],
    );
    check("@id(1);", &["@", "id", "(", "int 1", ")", ";"]);
    check(
        "Größe",
        &["error `Größe`: identifiers are made of ASCII letters and digits"],
    );
    check("a § b", &["a", "error unexpected `§`", "b"]);
    check(
        "a $b `",
        &["a", "error unexpected `$`", "b", "error unexpected ```"],
    );
}

#[test]
fn numbers() {
    check(
        "0 7 017 0x1F 0XfF",
        &["int 0", "int 7", "int 15", "int 31", "int 255"],
    );
    check("18446744073709551615", &["int 18446744073709551615"]);
    check(
        "18446744073709551616",
        &["error `18446744073709551616` does not fit in 64 bits"],
    );
    check(
        "1.5 .5 1. 1e3 1.5E-2",
        &[
            "float 1.5",
            "float .5",
            "float 1.",
            "float 1e3",
            "float 1.5E-2",
        ],
    );
    check("1.5d 3D", &["fixed 1.5", "fixed 3"]);
    check(
        "08",
        &["error `08` begins with 0 and so is octal, but has a digit 8 or 9"],
    );
    check(
        "0x 12ab 1e 1e999",
        &[
            "error `0x` is not a number",
            "error `12ab` is not a number",
            "error `1e` is not a number",
            "float 1e999",
        ],
    );
}

#[test]
fn characters_and_strings() {
    check(
        r"'a' '\n' '\'' '\x41' '\101' L'\u00e9'",
        &[
            "char 'a'",
            "char '\\n'",
            "char '\\''",
            "char 'A'",
            "char 'A'",
            "wchar 'é'",
        ],
    );
    check(r#""a\"b" L"w""#, &["text \"a\\\"b\"", "wtext \"w\""]);
    check("''", &["error empty character literal"]);
    check(
        "'ab'",
        &["error character literal of more than one character"],
    );
    check("\"ab\nc", &["error unterminated string literal", "c"]);
    check(r#""\q" x"#, &["error unknown escape sequence `\\q`", "x"]);
    check(r#""\u0041\u20ac""#, &["text \"A€\""]);
    check(
        r#"L"\ud83d\ude00\uE9" L'\ud83d' '\400'"#,
        &[
            "wtext \"😀é\"",
            "error `\\ud83d` is half of a character",
            "error octal escape of 256, which is more than 255",
        ],
    );
    check(
        r"'\a' '\v' '\?' '\x7' '\7' '\''",
        &[
            "char '\\u{7}'",
            "char '\\u{b}'",
            "char '?'",
            "char '\\u{7}'",
            "char '\\u{7}'",
            "char '\\''",
        ],
    );
    check(r#""\0""#, &["error string literal with a NUL in it"]);
}

#[test]
fn comments_document_the_line_after_them() {
    let text = "// licence\n\n/// about a\n//  b\nstruct A { long x; // not y\n long y; };\n\
                /** A block\n *  of two.\n */ @id";
    let tokens = lex(FileId(0), text);
    let docs: Vec<_> = tokens
        .iter()
        .filter_map(|token| token.doc.as_deref())
        .collect();
    assert_eq!(docs.len(), 2);
    assert_eq!(docs[0], ["about a", " b"]);
    assert_eq!(docs[1], ["A block", " of two."]);
    check("/* open", &["error unterminated comment"]);
}

#[test]
fn a_backslash_joins_lines() {
    let tokens = lex(FileId(0), "#define A \\\n 1\nB");
    let first: Vec<bool> = tokens.iter().map(|token| token.first_on_line).collect();
    assert_eq!(first, [true, false, false, false, true]);
}
