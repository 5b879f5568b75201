//! Tokens of IDL 4.2 §7.2 and of its preprocessor.

use std::rc::Rc;

use crate::source::Span;

/// A token with what later stages need to know about its surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    /// Only white space and comments precede it on its line.
    pub(crate) first_on_line: bool,
    /// It follows the previous token without white space.
    pub(crate) glued: bool,
    /// The comment block that ends on the line before it.
    pub(crate) doc: Option<Rc<[String]>>,
    /// Of a `;`: the annotations in the comment after it, as tokens of code.
    pub(crate) trailing_annotations: Option<Rc<[Self]>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// As written, with the underscore of an escaped identifier.
    Identifier(Rc<str>),
    /// One of [`KEYWORDS`].
    Keyword(&'static str),
    Integer(u64),
    /// `1.5`, as written.
    Float(Rc<str>),
    /// `1.5d`, as written without the `d`.
    Fixed(Rc<str>),
    Char(char),
    WideChar(char),
    Text(Rc<str>),
    WideText(Rc<str>),
    /// Every other character of the language stands alone; `<<` is two tokens,
    /// the second one glued.
    Punct(char),
    /// `::`
    Scope,
    /// A directive about types. It is between tokens, and is removed before these
    /// are parsed.
    Pragma(Rc<Pragma>),
    /// Invalid text, with the reason; empty once reported.
    Error(Rc<str>),
    /// The end of the file that was named by the user.
    End,
}

/// What a `#pragma` says about a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pragma {
    /// The name of the type, as written.
    pub(crate) ty: Vec<String>,
    /// Resolved from the root, not from the scope of the pragma.
    pub(crate) absolute: bool,
    /// Paths of the key members; `None` when the pragma only says that the type is
    /// a topic type.
    pub(crate) key: Option<Vec<Vec<String>>>,
}

impl TokenKind {
    /// Its name in "expected ..., found ...".
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Identifier(name) => format!("`{name}`"),
            Self::Keyword(word) => format!("keyword `{word}`"),
            Self::Integer(value) => format!("`{value}`"),
            Self::Float(_) => "a floating-point literal".into(),
            Self::Fixed(_) => "a fixed-point literal".into(),
            Self::Char(_) | Self::WideChar(_) => "a character literal".into(),
            Self::Text(_) | Self::WideText(_) => "a string literal".into(),
            Self::Punct(c) => format!("`{c}`"),
            Self::Scope => "`::`".into(),
            Self::Pragma(_) => "a pragma".into(),
            Self::Error(_) => "an invalid token".into(),
            Self::End => "the end of the file".into(),
        }
    }

    /// The spelling, if it is a word that the preprocessor looks up.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Self::Identifier(name) => Some(name),
            Self::Keyword(word) => Some(word),
            _ => None,
        }
    }

    /// One way to write it.
    pub(crate) fn spelled(&self) -> String {
        let quoted = |text: &str, quote: char| {
            let mut out = String::from(quote);
            for c in text.chars() {
                match c {
                    '\n' => out.push_str("\\n"),
                    '\\' | '"' | '\'' => out.extend(['\\', c]),
                    _ => out.push(c),
                }
            }
            out.push(quote);
            out
        };
        match self {
            Self::Identifier(name) => name.to_string(),
            Self::Keyword(word) => (*word).into(),
            Self::Integer(value) => value.to_string(),
            Self::Float(text) => text.to_string(),
            Self::Fixed(text) => format!("{text}d"),
            Self::Char(c) => quoted(&c.to_string(), '\''),
            Self::WideChar(c) => format!("L{}", quoted(&c.to_string(), '\'')),
            Self::Text(text) => quoted(text, '"'),
            Self::WideText(text) => format!("L{}", quoted(text, '"')),
            Self::Punct(c) => c.to_string(),
            Self::Scope => "::".into(),
            Self::Pragma(_) | Self::Error(_) | Self::End => String::new(),
        }
    }

    pub(crate) fn is_punct(&self, wanted: char) -> bool {
        matches!(self, Self::Punct(c) if *c == wanted)
    }

    pub(crate) fn is_keyword(&self, wanted: &str) -> bool {
        matches!(self, Self::Keyword(word) if *word == wanted)
    }
}

/// All keywords of IDL 4.2, table 7-6. Sorted by bytes.
pub(crate) const KEYWORDS: &[&str] = &[
    "FALSE",
    "Object",
    "TRUE",
    "ValueBase",
    "abstract",
    "alias",
    "any",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "boolean",
    "case",
    "char",
    "component",
    "connector",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "finder",
    "fixed",
    "float",
    "getraises",
    "getter",
    "home",
    "import",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "interface",
    "local",
    "long",
    "manages",
    "map",
    "mirrorport",
    "module",
    "multiple",
    "native",
    "octet",
    "oneway",
    "out",
    "port",
    "porttype",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "setter",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "truncatable",
    "typedef",
    "typeid",
    "typename",
    "typeprefix",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union",
    "unsigned",
    "uses",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];

/// The keyword that is spelled exactly so.
pub(crate) fn keyword(word: &str) -> Option<&'static str> {
    let at = KEYWORDS.binary_search(&word).ok()?;
    KEYWORDS.get(at).copied()
}

/// The keyword that differs from an identifier in case only.
pub(crate) fn keyword_ignoring_case(word: &str) -> Option<&'static str> {
    KEYWORDS
        .iter()
        .copied()
        .find(|keyword| keyword.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
        assert_eq!(keyword("wstring"), Some("wstring"));
        assert_eq!(keyword("Struct"), None);
        assert_eq!(keyword_ignoring_case("OBJECT"), Some("Object"));
    }
}
