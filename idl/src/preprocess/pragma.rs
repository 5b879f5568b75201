//! `#pragma`: the keys and topic types of older IDL.
//!
//! `#pragma keylist Type a b.c`, `#pragma DCPS_DATA_TYPE "A::Type"` and `#pragma
//! DCPS_DATA_KEY "A::Type a.b"` are passed to the resolver between the tokens,
//! because the name of the type is resolved in the scope of the pragma.

use std::rc::Rc;

use super::Preprocessor;
use crate::lex::{Pragma, Token, TokenKind};
use crate::source::Span;

/// Pragmas of CORBA and of other compilers that say nothing about types.
const SILENT: &[&str] = &[
    "DCPS_SUPPORT_ZERO_COPY_READ",
    "GCC",
    "ID",
    "ciao",
    "clang",
    "ident",
    "prefix",
    "typeid",
    "version",
];

impl Preprocessor<'_> {
    pub(super) fn pragma(&mut self, span: Span, arguments: &[Token], silent: bool) {
        let name = arguments.first().and_then(|token| token.kind.word());
        let name = name.unwrap_or("");
        let rest = arguments.get(1..).unwrap_or(&[]);
        let pragma = match name {
            "once" => {
                self.once.insert(span.file);
                return;
            }
            "keylist" => keylist(&words(rest)),
            "DCPS_DATA_KEY" => keylist(&text_words(rest)),
            "DCPS_DATA_TYPE" => scoped(text_words(rest).first()).map(|(ty, absolute)| Pragma {
                ty,
                absolute,
                key: None,
            }),
            _ => {
                let text = self.raw(arguments).to_owned();
                let message = match SILENT.contains(&name) {
                    true => format!("`#pragma {name}` has no effect here"),
                    false => format!("unknown pragma is ignored: `{text}`"),
                };
                self.sink.warning(span, message);
                return;
            }
        };
        let Some(pragma) = pragma else {
            let hint = match name {
                "keylist" => "write `#pragma keylist Type member other.member`",
                "DCPS_DATA_KEY" => "write `#pragma DCPS_DATA_KEY \"Module::Type member\"`",
                _ => "write `#pragma DCPS_DATA_TYPE \"Module::Type\"`",
            };
            let message = format!("`#pragma {name}` expects the name of a type");
            self.sink.error_hint(span, message, hint);
            return;
        };
        // An earlier root has contributed this file, with this pragma.
        if silent {
            return;
        }
        let last = arguments.last().map_or(span, |token| token.span);
        self.out.push(Token {
            kind: TokenKind::Pragma(Rc::new(pragma)),
            span: span.to(last),
            first_on_line: true,
            glued: false,
            doc: None,
            trailing_annotations: None,
        });
    }
}

/// Tokens as words, which are separated by white space or commas.
fn words(tokens: &[Token]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut apart = true;
    for token in tokens {
        if token.kind.is_punct(',') {
            apart = true;
            continue;
        }
        let spelled = token.kind.spelled();
        match all.last_mut() {
            Some(last) if token.glued && !apart => last.push_str(&spelled),
            _ => all.push(spelled),
        }
        apart = false;
    }
    all
}

/// As [`words`]; they may be in quotes.
fn text_words(tokens: &[Token]) -> Vec<String> {
    match tokens.first().map(|token| &token.kind) {
        Some(TokenKind::Text(text)) => text
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty())
            .map(String::from)
            .collect(),
        _ => words(tokens),
    }
}

fn keylist(words: &[String]) -> Option<Pragma> {
    let (ty, absolute) = scoped(words.first())?;
    let members = words.iter().skip(1);
    let path = |word: &String| word.split('.').map(unescaped).collect();
    Some(Pragma {
        ty,
        absolute,
        key: Some(members.map(path).collect()),
    })
}

/// The parts of `::A::B`, and whether it starts at the root.
fn scoped(word: Option<&String>) -> Option<(Vec<String>, bool)> {
    let word = word?;
    let (name, absolute) = match word.strip_prefix("::") {
        Some(name) => (name, true),
        None => (word.as_str(), false),
    };
    let parts: Vec<String> = name.split("::").map(unescaped).collect();
    let named = parts.iter().all(|part| !part.is_empty());
    named.then_some((parts, absolute))
}

fn unescaped(name: &str) -> String {
    match name.strip_prefix('_') {
        Some(plain) if !plain.is_empty() => plain.into(),
        _ => name.into(),
    }
}
