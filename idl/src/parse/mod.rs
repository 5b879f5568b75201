//! The parser: recursive descent by hand over IDL 4.2 §7.4, never failing.
//!
//! After a syntax error parsing resumes after the next `;`, before the `}` of the
//! block, or before a line that begins a declaration. The whole grammar is
//! recognised: unsupported building blocks are refused by name and skipped
//! ([`refused`]), not reported as syntax errors.

mod annotations;
mod declarations;
mod expressions;
mod interfaces;
mod refused;
mod types;
mod unions;

use std::borrow::Cow;
use std::rc::Rc;

use crate::ast::{Definition, Ident, ScopedName};
use crate::diag::Sink;
use crate::lex::{Token, TokenKind, keyword_ignoring_case};
use crate::limits::NESTING_MAX;
use crate::source::Span;

/// A construct was abandoned; its fault has been reported.
#[derive(Debug)]
pub(crate) struct Abandoned;

pub(crate) type Parsed<T> = Result<T, Abandoned>;

/// Parses the tokens of one root file.
pub(crate) fn parse(tokens: &[Token], sink: &mut Sink) -> Vec<Definition> {
    let (tokens, pragmas) = without_pragmas(tokens);
    let mut parser = Parser::new(&tokens, &pragmas, sink);
    let mut all = Vec::new();
    loop {
        all.append(&mut parser.definitions());
        if parser.kind() == &TokenKind::End {
            return all;
        }
        // Only a closing brace stops the list before the end.
        parser.sink.error(parser.span(), "unmatched `}`");
        parser.bump();
        parser.take(';');
    }
}

/// The tokens without pragmas, and these with the number of tokens before them.
fn without_pragmas(tokens: &[Token]) -> (Cow<'_, [Token]>, Vec<(usize, Token)>) {
    let is_pragma = |token: &Token| matches!(token.kind, TokenKind::Pragma(_));
    if !tokens.iter().any(is_pragma) {
        return (tokens.into(), Vec::new());
    }
    let (mut rest, mut pragmas) = (Vec::new(), Vec::new());
    for token in tokens {
        match token.kind {
            TokenKind::Pragma(_) => pragmas.push((rest.len(), token.clone())),
            _ => rest.push(token.clone()),
        }
    }
    (rest.into(), pragmas)
}

/// Keywords that begin a definition.
const BEGINNINGS: &[&str] = &[
    "module",
    "struct",
    "exception",
    "union",
    "enum",
    "bitmask",
    "bitset",
    "typedef",
    "const",
    "native",
    "interface",
];

/// Keywords that are unambiguous where a name is expected: files for other compilers
/// have members of these names.
const TAKEN_FOR_NAMES: &[&str] = &[
    "abstract",
    "attribute",
    "case",
    "component",
    "connector",
    "consumes",
    "context",
    "custom",
    "default",
    "emits",
    "eventtype",
    "exception",
    "factory",
    "finder",
    "getraises",
    "getter",
    "home",
    "import",
    "in",
    "inout",
    "interface",
    "local",
    "manages",
    "map",
    "mirrorport",
    "multiple",
    "native",
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
    "supports",
    "switch",
    "truncatable",
    "typeid",
    "typename",
    "typeprefix",
    "uses",
    "valuetype",
];

struct Parser<'a> {
    /// The last one is [`TokenKind::End`] and is never consumed.
    tokens: &'a [Token],
    /// Pragmas not reached yet, with the number of tokens before them.
    pragmas: &'a [(usize, Token)],
    at: usize,
    /// How many tokens had been consumed when comments were last read.
    comments_read_to: usize,
    sink: &'a mut Sink,
    depth: usize,
    /// Inside `<` and `>`, where `>>` closes two of them.
    in_template: bool,
}

const END: &TokenKind = &TokenKind::End;

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token], pragmas: &'a [(usize, Token)], sink: &'a mut Sink) -> Self {
        Self {
            tokens,
            pragmas,
            at: 0,
            comments_read_to: 0,
            sink,
            depth: 0,
            in_template: false,
        }
    }

    fn token(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn kind(&self) -> &'a TokenKind {
        self.kind_at(0)
    }

    /// The token that many places ahead.
    fn kind_at(&self, ahead: usize) -> &'a TokenKind {
        self.tokens
            .get(self.at + ahead)
            .map_or(END, |token| &token.kind)
    }

    /// The position of the current token.
    fn span(&self) -> Span {
        let token = self.token().or_else(|| self.tokens.last());
        let nowhere = Span {
            file: crate::source::FileId(0),
            start: 0,
            end: 0,
        };
        token.map_or(nowhere, |token| token.span)
    }

    /// The position of the token before the current one.
    fn previous_span(&self) -> Span {
        let previous = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        previous.map_or_else(|| self.span(), |token| token.span)
    }

    fn bump(&mut self) {
        if self.kind() != END {
            self.at += 1;
        }
    }

    fn at_punct(&self, c: char) -> bool {
        self.kind().is_punct(c)
    }

    fn at_keyword(&self, word: &str) -> bool {
        self.kind().is_keyword(word)
    }

    /// Two characters without white space between them.
    fn at_pair(&self, c: char) -> bool {
        let glued = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|token| token.glued);
        self.at_punct(c) && self.kind_at(1).is_punct(c) && glued
    }

    fn take(&mut self, c: char) -> bool {
        let here = self.at_punct(c);
        if here {
            self.bump();
        }
        here
    }

    fn take_keyword(&mut self, word: &str) -> bool {
        let here = self.at_keyword(word);
        if here {
            self.bump();
        }
        here
    }

    /// Reports what was expected here. Silent on an invalid token, which the
    /// preprocessor has reported.
    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        if !matches!(self.kind(), TokenKind::Error(_)) {
            let found = self.kind().describe();
            self.sink
                .error(self.span(), format!("expected {what}, found {found}"));
        }
        Err(Abandoned)
    }

    fn expect(&mut self, c: char) -> Parsed<()> {
        if self.take(c) {
            Ok(())
        } else {
            self.expected(&format!("`{c}`"))
        }
    }

    /// The `;` after `what`. A missing one at the end of a line is reported at
    /// the end of that line, and parsing continues as if it were there.
    fn semicolon(&mut self, what: &str) -> Parsed<()> {
        if self.take(';') {
            return Ok(());
        }
        let next_line = self.token().is_some_and(|token| token.first_on_line);
        if next_line || self.at_punct('}') || self.kind() == END {
            let place = self.previous_span().after();
            self.sink.error(place, format!("expected `;` after {what}"));
            return Ok(());
        }
        self.expected(&format!("`;` after {what}"))
    }

    /// A name that is being declared.
    fn declared_name(&mut self, what: &str) -> Parsed<Ident> {
        if let TokenKind::Identifier(written) = self.kind()
            && let Some(keyword) = keyword_ignoring_case(written)
        {
            let message = format!("`{written}` differs from keyword `{keyword}` in case only");
            let hint = format!("write `_{written}` for other IDL compilers");
            self.sink.warning_hint(self.span(), message, hint);
        }
        self.identifier(what)
    }

    fn identifier(&mut self, what: &str) -> Parsed<Ident> {
        let span = self.span();
        match self.kind() {
            TokenKind::Identifier(written) => {
                let name = match written.strip_prefix('_') {
                    Some(name) if !name.is_empty() => Rc::from(name),
                    _ => Rc::clone(written),
                };
                self.bump();
                Ok(Ident { name, span })
            }
            // Where only a name is possible, a keyword is meant as a name.
            TokenKind::Keyword(word) if self.name_ends_at(1) => {
                let hint = format!("write `_{word}`");
                if TAKEN_FOR_NAMES.contains(word) {
                    let message = format!("`{word}` is a keyword of IDL, and is read as a name");
                    self.sink.warning_hint(span, message, hint);
                } else {
                    let message = format!("`{word}` is a keyword of IDL and cannot be {what}");
                    self.sink.error_hint(span, message, hint);
                }
                self.bump();
                Ok(Ident {
                    name: (*word).into(),
                    span,
                })
            }
            _ => self.expected(what),
        }
    }

    /// Whether a declared name can end before the token that many places ahead.
    fn name_ends_at(&self, ahead: usize) -> bool {
        let kind = self.kind_at(ahead);
        ['{', '(', ')', ';', ',', '[', '=', ':', '}']
            .into_iter()
            .any(|c| kind.is_punct(c))
    }

    /// `A::B::C`, `::A`.
    fn scoped_name(&mut self, what: &str) -> Parsed<ScopedName> {
        let start = self.span();
        let absolute = self.kind() == &TokenKind::Scope;
        if absolute {
            self.bump();
        }
        let first = self.identifier(what)?;
        let mut rest = Vec::new();
        while self.kind() == &TokenKind::Scope {
            self.bump();
            rest.push(self.identifier("a name after `::`")?);
        }
        let span = start.to(self.previous_span());
        Ok(ScopedName {
            absolute,
            first,
            rest,
            span,
        })
    }

    /// Enters one level of nesting, or reports that the limit is reached.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            let message = format!("nested more than {NESTING_MAX} levels deep");
            self.sink.error(self.span(), message);
            return Err(Abandoned);
        }
        self.depth += 1;
        let outcome = inner(self);
        self.depth -= 1;
        outcome
    }

    /// Resumes after the next `;`, or before the `}` of this block, or before a
    /// line that begins a declaration; braces in between are skipped in pairs.
    /// The failed construct began at token `from`.
    fn recover(&mut self, from: usize) {
        while self.kind() != END && !self.at_punct('}') {
            let starts = self.token().is_some_and(|token| token.first_on_line);
            if self.at > from && starts && self.begins_definition() {
                return;
            }
            if self.take(';') {
                return;
            }
            if self.skip_group() {
                // `};` ends the failed construct.
                if self.previous_is('}') {
                    self.take(';');
                    return;
                }
            } else {
                self.bump();
            }
        }
    }

    fn previous_is(&self, c: char) -> bool {
        let previous = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        previous.is_some_and(|token| token.kind.is_punct(c))
    }

    /// Skips `{ ... }`, `( ... )` or `[ ... ]` if one begins here.
    fn skip_group(&mut self) -> bool {
        let opens = |kind: &TokenKind| matches!(kind, TokenKind::Punct('{' | '(' | '['));
        let closes = |kind: &TokenKind| matches!(kind, TokenKind::Punct('}' | ')' | ']'));
        if !opens(self.kind()) {
            return false;
        }
        let brace = self.at_punct('{');
        let mut depth = 0_usize;
        while self.kind() != END {
            // A parenthesis that is never closed ends with the statement.
            if !brace && matches!(self.kind(), TokenKind::Punct(';' | '{' | '}')) {
                break;
            }
            if opens(self.kind()) {
                depth += 1;
            } else if closes(self.kind()) {
                depth = depth.saturating_sub(1);
            }
            self.bump();
            if depth == 0 {
                break;
            }
        }
        true
    }

    fn begins_definition(&self) -> bool {
        match self.kind() {
            TokenKind::Punct('@') => true,
            TokenKind::Keyword(word) => {
                BEGINNINGS.contains(word) || refused::construct(word).is_some()
            }
            _ => false,
        }
    }
}
