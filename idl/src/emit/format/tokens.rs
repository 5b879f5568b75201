//! A stream of tokens as one flat list, in which each bracket has the index of its partner.
//!
//! Angle brackets count as brackets if they have a partner. That is a guess: a wrong one, as
//! for `a < b`, only affects line breaks.

use std::fmt::{Display, Write as _};
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::spacing::Class;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    Round,
    Square,
    Curly,
    Angle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Keyword,
    Lifetime,
    Literal,
    Operator,
    /// A line of documentation with its slashes, which ends its line.
    Doc,
    Open(Bracket),
    Close(Bracket),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The range of its text.
    start: usize,
    end: usize,
    /// Of a bracket: the index of its partner.
    pub(super) partner: usize,
    /// Of an operator: the next token is part of it, without a space between.
    pub(super) joint: bool,
    // Set by `spacing`:
    /// Whether a space precedes it.
    pub(super) space: bool,
    /// An operator between two operands.
    pub(super) binary: bool,
    /// A comma between two parts of a list in brackets, or after the last.
    pub(super) separates: bool,
    /// A comma after the last part, which is printed only at the end of a line.
    pub(super) free: bool,
    /// Of an opening bracket.
    pub(super) class: Class,
    /// Bytes of all tokens before it if on one line, and how many of these need lines of
    /// their own.
    pub(super) width_before: usize,
    pub(super) breaks_before: usize,
}

impl Token {
    /// Bytes of its text.
    pub(super) fn width(&self) -> usize {
        self.end - self.start
    }
}

/// The list.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) list: Vec<Token>,
    text: String,
    /// Angle brackets that are open, those of the innermost other bracket from `base` on.
    angles: Vec<usize>,
    base: usize,
}

/// Operators of several characters. `<<` and `>>` are not among them: they may be brackets.
const OPERATORS: &[&str] = &[
    "::", "->", "=>", "..", "...", "..=", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=",
    "/=", "%=", "^=", "&=", "|=",
];

/// Words that are not operands. Names from IDL are never among them.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "as" | "async"
            | "break"
            | "const"
            | "continue"
            | "dyn"
            | "else"
            | "enum"
            | "extern"
            | "fn"
            | "for"
            | "if"
            | "impl"
            | "in"
            | "let"
            | "loop"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "pub"
            | "ref"
            | "return"
            | "static"
            | "struct"
            | "trait"
            | "type"
            | "unsafe"
            | "use"
            | "where"
            | "while"
            | "yield"
    )
}

impl Tokens {
    pub(super) fn of(stream: TokenStream) -> Self {
        let mut tokens = Self::default();
        tokens.read(stream, false);
        tokens
    }

    pub(super) fn text(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// The text of the token at `index`; empty if there is none.
    pub(super) fn text_at(&self, index: usize) -> &str {
        self.list.get(index).map_or("", |token| self.text(token))
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        self.list.get(index).map(|token| token.kind)
    }

    /// The index after a token, or after its partner if it opens a bracket.
    pub(super) fn after(&self, index: usize) -> usize {
        match self.list[index].kind {
            Kind::Open(_) => self.list[index].partner + 1,
            _ => index + 1,
        }
    }

    /// The tokens of a range outside of its inner brackets.
    pub(super) fn outermost<'t>(
        &'t self,
        range: &Range<usize>,
    ) -> impl Iterator<Item = usize> + use<'t> {
        let end = range.end;
        let first = Some(range.start).filter(|first| *first < end);
        std::iter::successors(first, move |index| {
            Some(self.after(*index)).filter(|next| *next < end)
        })
    }

    /// Appends a stream. Inside macros, documentation stays an attribute.
    fn read(&mut self, stream: TokenStream, in_macro: bool) {
        for tree in stream {
            match tree {
                TokenTree::Group(group) => self.group(group, in_macro),
                TokenTree::Ident(ident) => self.word(&ident),
                TokenTree::Punct(punct) => {
                    self.operator(punct.as_char(), punct.spacing() == Spacing::Joint);
                }
                TokenTree::Literal(literal) => self.push(Kind::Literal, &literal),
            }
        }
    }

    fn push(&mut self, kind: Kind, text: &dyn Display) {
        let start = self.text.len();
        // Writing to a string does not fail.
        let _ = write!(self.text, "{text}");
        self.list.push(Token {
            kind,
            start,
            end: self.text.len(),
            partner: 0,
            joint: false,
            space: false,
            binary: false,
            separates: false,
            free: false,
            class: Class::List,
            width_before: 0,
            breaks_before: 0,
        });
    }

    fn group(&mut self, group: Group, in_macro: bool) {
        let (delimiter, stream) = (group.delimiter(), group.stream());
        // The tokens then have one owner, and are not copied.
        drop(group);
        let (bracket, open, close) = match delimiter {
            Delimiter::Parenthesis => (Bracket::Round, '(', ')'),
            Delimiter::Bracket => (Bracket::Square, '[', ']'),
            Delimiter::Brace => (Bracket::Curly, '{', '}'),
            Delimiter::None => return self.read(stream, in_macro),
        };
        let opening = self.list.len();
        let is_attribute = self.is_attribute(opening);
        let in_macro = in_macro || self.is_macro(opening);
        self.push(Kind::Open(bracket), &open);
        let base = std::mem::replace(&mut self.base, self.angles.len());
        self.read(stream, in_macro);
        self.angles.truncate(self.base);
        self.base = base;
        self.list[opening].partner = self.list.len();
        self.push(Kind::Close(bracket), &close);
        if let Some(closing) = self.list.last_mut() {
            closing.partner = opening;
        }
        if is_attribute && !in_macro {
            self.documentation(opening);
        }
    }

    /// Whether the bracket that opens at `index` belongs to an attribute.
    pub(super) fn is_attribute(&self, index: usize) -> bool {
        let is = |back: usize, text| index >= back && self.text_at(index - back) == text;
        is(1, "#") || (is(1, "!") && is(2, "#"))
    }

    /// Whether the bracket holds the arguments of a macro.
    pub(super) fn is_macro(&self, index: usize) -> bool {
        let named = |back: usize| {
            let word = index.checked_sub(back).and_then(|index| self.kind(index));
            word == Some(Kind::Word)
        };
        let bang = |back: usize| index >= back && self.text_at(index - back) == "!";
        // `name! {`, `macro_rules! name {`
        (bang(1) && named(2)) || (named(1) && bang(2) && named(3))
    }

    fn word(&mut self, ident: &proc_macro2::Ident) {
        match self.list.last_mut() {
            Some(token) if token.kind == Kind::Lifetime && token.joint => {
                token.joint = false;
                let _ = write!(self.text, "{ident}");
                token.end = self.text.len();
            }
            _ => {
                let behind_dot = self
                    .list
                    .last()
                    .is_some_and(|token| self.text(token) == ".");
                self.push(Kind::Word, ident);
                let Some(token) = self.list.last_mut() else {
                    return;
                };
                if !behind_dot && is_keyword(&self.text[token.start..token.end]) {
                    token.kind = Kind::Keyword;
                }
            }
        }
    }

    fn operator(&mut self, character: char, joint: bool) {
        let extended = self.list.last_mut().is_some_and(|last| {
            let start = last.start;
            if last.kind != Kind::Operator || !last.joint {
                return false;
            }
            self.text.push(character);
            let is_one = OPERATORS.contains(&&self.text[start..]);
            match is_one {
                true => (last.end, last.joint) = (self.text.len(), joint),
                false => drop(self.text.pop()),
            }
            is_one
        });
        if extended {
            return;
        }
        let index = self.list.len();
        let kind = match character {
            '\'' => Kind::Lifetime,
            _ => Kind::Operator,
        };
        self.push(kind, &character);
        self.list[index].joint = joint;
        match character {
            '<' if self.may_open_angle(index) => self.angles.push(index),
            '>' if self.angles.len() > self.base => {
                let Some(opening) = self.angles.pop() else {
                    return;
                };
                self.list[opening].kind = Kind::Open(Bracket::Angle);
                self.list[opening].partner = index;
                self.list[index].kind = Kind::Close(Bracket::Angle);
                self.list[index].partner = opening;
                self.list[index].joint = false;
            }
            ';' => self.angles.truncate(self.base),
            _ => {}
        }
    }

    /// After a number it compares or shifts, as does the second of two.
    fn may_open_angle(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else {
            return true;
        };
        let before = &self.list[before];
        let shifts =
            before.joint && self.text(before) == "<" && !self.angles.contains(&(index - 1));
        before.kind != Kind::Literal && !shifts
    }

    /// Converts the attribute whose bracket opens at `opening` to a line of documentation, if
    /// it is one.
    fn documentation(&mut self, opening: usize) {
        let [_, doc, equals, literal, _] = &self.list[opening..] else {
            return;
        };
        if self.text(doc) != "doc" || self.text(equals) != "=" {
            return;
        }
        let Some(text) = unescaped(self.text(literal)) else {
            return;
        };
        // With slashes before it, such text would become another kind of comment.
        if text.starts_with('/') || text.contains(['\n', '\r']) {
            return;
        }
        let (first, slashes) = match self.text_at(opening - 1) {
            "!" => (opening - 2, "//!"),
            _ => (opening - 1, "///"),
        };
        self.list.truncate(first);
        self.push(Kind::Doc, &format_args!("{slashes}{text}"));
    }
}

/// The value of a string literal; `None` for other tokens, and for rare escapes.
fn unescaped(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let raw = raw[hashes..].strip_prefix('"')?;
        return Some(
            raw.strip_suffix(&"#".repeat(hashes))?
                .strip_suffix('"')?
                .to_owned(),
        );
    }
    let quoted = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next()? {
                same @ ('\\' | '"' | '\'') => same,
                't' => '\t',
                'u' => {
                    let (number, rest) = characters.as_str().strip_prefix('{')?.split_once('}')?;
                    characters = rest.chars();
                    char::from_u32(u32::from_str_radix(number, 16).ok()?)?
                }
                _ => return None,
            },
            other => other,
        };
        text.push(character);
    }
    Some(text)
}
