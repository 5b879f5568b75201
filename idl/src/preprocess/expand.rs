//! Expansion of macros by ISO C++ §15.6.
//!
//! The algorithm is Prosser's: each token carries its hide set, the macros that it
//! results from, and none of them expands it again. An expansion is put back in front
//! of the input, so that a function-like macro in it may take its arguments from the
//! text after the original use.

use std::rc::Rc;

use super::Preprocessor;
use super::macros::{Parameters, REST, closing, is_optional};
use crate::lex::{Token, TokenKind, lex};
use crate::limits::{MACRO_ARGUMENTS_MAX, MACRO_DEPTH_MAX, TOKENS_MAX};
use crate::source::Span;

/// The hide set of a token, innermost macro first.
#[derive(Debug, Clone, Default)]
struct Hidden(Option<Rc<(String, Self)>>);

impl Hidden {
    fn has(&self, name: &str) -> bool {
        self.iter().any(|one| one == name)
    }

    fn with(&self, name: &str) -> Self {
        Self(Some(Rc::new((name.to_owned(), self.clone()))))
    }

    /// The union of two hide sets.
    fn and(&self, other: &Self) -> Self {
        let common: Vec<&str> = self.iter().filter(|name| other.has(name)).collect();
        let add = |hidden: Self, name: &&str| hidden.with(name);
        common.iter().rev().fold(Self::default(), add)
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(self.0.as_deref(), |(_, next)| next.0.as_deref())
            .map(|(name, _)| name.as_str())
    }
}

type Marked = (Token, Hidden);

/// Pending tokens: those from expansions, then the source.
struct Input<'t> {
    /// The next one is the last.
    given_back: Vec<Marked>,
    source: &'t [Token],
    taken: usize,
}

impl Input<'_> {
    fn peek(&self) -> Option<&Token> {
        let given_back = self.given_back.last().map(|(token, _)| token);
        let source = self.source.get(self.taken);
        // A directive ends the text in which a macro looks for arguments.
        given_back
            .or_else(|| source.filter(|token| !(token.first_on_line && token.kind.is_punct('#'))))
    }

    fn next(&mut self) -> Option<Marked> {
        if let Some(marked) = self.given_back.pop() {
            return Some(marked);
        }
        let token = self.peek()?.clone();
        self.taken += 1;
        Some((token, Hidden::default()))
    }

    fn give_back(&mut self, tokens: Vec<Marked>) {
        self.given_back.extend(tokens.into_iter().rev());
    }
}

impl Preprocessor<'_> {
    /// Appends the expansion of the first token and returns how many tokens of
    /// the input it stands for.
    pub(super) fn expand(&mut self, tokens: &[Token], out: &mut Vec<Token>) -> usize {
        let Some(first) = tokens.first() else {
            return 0;
        };
        let begin = out.len();
        if !first
            .kind
            .word()
            .is_some_and(|word| self.macros.contains(word))
        {
            self.count(1, first.span);
            out.push(first.clone());
            return 1;
        }
        let mut input = Input {
            given_back: vec![(first.clone(), Hidden::default())],
            source: tokens,
            taken: 1,
        };
        self.expand_input(&mut input, first.span, out);
        // White space before the macro is white space before its first token.
        if let Some(token) = out.get_mut(begin) {
            token.first_on_line = first.first_on_line;
            token.glued = first.glued;
            token.doc.clone_from(&first.doc);
        }
        input.taken
    }

    /// Counts produced tokens against the limit.
    fn count(&mut self, more: usize, site: Span) {
        self.tokens = self.tokens.saturating_add(more);
        if self.tokens > TOKENS_MAX {
            let message = format!("more than {TOKENS_MAX} tokens after preprocessing");
            self.exhaust(site, message);
        }
    }

    /// Expands until no token of an expansion is pending.
    fn expand_input(&mut self, input: &mut Input<'_>, site: Span, out: &mut Vec<Token>) {
        while let Some((token, hidden)) = input.given_back.pop() {
            self.count(1, site);
            if self.exhausted {
                return;
            }
            match self.replacement(&token, &hidden, input, site) {
                Some(replacement) => input.give_back(replacement),
                None => out.push(token),
            }
        }
    }

    /// The replacement of a token; `None` when it is not a use of a macro.
    fn replacement(
        &mut self,
        token: &Token,
        hidden: &Hidden,
        input: &mut Input<'_>,
        site: Span,
    ) -> Option<Vec<Marked>> {
        let word = token.kind.word()?;
        if hidden.has(word) {
            return None;
        }
        let Some(definition) = self.macros.get(word) else {
            return self.place_of_use(word, token, site, hidden);
        };
        let inner = match &definition.parameters {
            None => hidden.with(word),
            Some(_) if !input.peek().is_some_and(|next| next.kind.is_punct('(')) => return None,
            Some(_) => hidden.clone(),
        };
        if inner.iter().count() > MACRO_DEPTH_MAX {
            self.exhaust(
                site,
                format!("macro `{word}` is nested too deeply in other macros"),
            );
            return None;
        }
        let Some(parameters) = &definition.parameters else {
            let body = self.substitute(&definition.body, &[], site);
            return Some(marked(body, &inner, token));
        };
        let Some((arguments, last)) = self.arguments(word, input, site) else {
            return Some(Vec::new());
        };
        let arguments = self.by_name(word, parameters, arguments, site);
        let body = self.substitute(&definition.body, &arguments, site);
        Some(marked(body, &hidden.and(&last).with(word), token))
    }

    /// `__FILE__` and `__LINE__`.
    fn place_of_use(
        &self,
        word: &str,
        token: &Token,
        site: Span,
        hidden: &Hidden,
    ) -> Option<Vec<Marked>> {
        let kind = match word {
            "__FILE__" => {
                let file = self.sources.presumed(site.file, site.start).0;
                TokenKind::Text(file.to_string_lossy().into())
            }
            "__LINE__" => {
                let line = self.sources.presumed(site.file, site.start).1;
                TokenKind::Integer(u64::try_from(line).unwrap_or(u64::MAX))
            }
            _ => return None,
        };
        let token = Token {
            kind,
            ..token.clone()
        };
        Some(vec![(token, hidden.with(word))])
    }

    /// `(a, b)`: the arguments, and where the closing parenthesis came from.
    /// `None` when that is missing, which is reported.
    fn arguments(
        &mut self,
        word: &str,
        input: &mut Input<'_>,
        site: Span,
    ) -> Option<(Vec<Vec<Token>>, Hidden)> {
        input.next();
        let (mut all, mut argument) = (Vec::new(), Vec::new());
        let mut depth = 0_usize;
        while let Some((token, hidden)) = input.next() {
            match token.kind {
                TokenKind::Punct(')') if depth == 0 => {
                    all.push(argument);
                    return Some((all, hidden));
                }
                TokenKind::Punct(',') if depth == 0 => {
                    all.push(std::mem::take(&mut argument));
                    if all.len() > MACRO_ARGUMENTS_MAX {
                        let message =
                            format!("macro `{word}` has more than {MACRO_ARGUMENTS_MAX} arguments");
                        self.exhaust(site, message);
                        return None;
                    }
                    continue;
                }
                TokenKind::Punct('(') => depth += 1,
                TokenKind::Punct(')') => depth -= 1,
                _ => {}
            }
            argument.push(token);
        }
        let message = format!("unterminated arguments of macro `{word}`");
        self.sink.error(site, message);
        None
    }

    /// The arguments by the names of the parameters, in full number.
    fn by_name(
        &mut self,
        word: &str,
        parameters: &Parameters,
        mut arguments: Vec<Vec<Token>>,
        site: Span,
    ) -> Vec<Argument> {
        let count = parameters.names.len();
        let nothing = arguments.len() == 1 && arguments.iter().all(Vec::is_empty);
        if nothing && count == usize::from(parameters.variadic) {
            arguments.clear();
        }
        if parameters.variadic && arguments.len() >= count {
            let rest = arguments.split_off(count - 1);
            arguments.push(joined(rest));
        }
        let given = arguments.len();
        if given != count && !(parameters.variadic && given + 1 == count) {
            let message = format!("macro `{word}` expects {count} arguments, but has {given}");
            self.sink.error(site, message);
        }
        arguments.resize(count, Vec::new());
        let mut all = Vec::new();
        for (name, raw) in parameters.names.iter().zip(arguments) {
            let mut expanded = Vec::new();
            let given_back = raw
                .iter()
                .rev()
                .map(|token| (token.clone(), Hidden::default()));
            let mut input = Input {
                given_back: given_back.collect(),
                source: &[],
                taken: 0,
            };
            self.argument_depth += 1;
            if self.argument_depth > MACRO_DEPTH_MAX {
                self.exhaust(
                    site,
                    format!("macro `{word}` is nested too deeply in other macros"),
                );
            }
            self.expand_input(&mut input, site, &mut expanded);
            self.argument_depth -= 1;
            all.push(Argument {
                name: name.clone(),
                raw,
                expanded,
            });
        }
        all
    }

    /// The body with the arguments substituted and `#` and `##` applied. Tokens of the
    /// body get the position of the use.
    fn substitute(&mut self, body: &[Token], arguments: &[Argument], site: Span) -> Vec<Token> {
        let mut out: Vec<Token> = Vec::new();
        let mut paste = false;
        // How many of the tokens of `out` belong to the last part of the body: an empty part
        // before `##` leaves nothing to paste.
        let mut tail = 0;
        let mut at = 0;
        while let Some(token) = body.get(at).filter(|_| !self.exhausted) {
            let rest = body.get(at..).unwrap_or_default();
            if is_paste(token, rest.get(1)) {
                paste = at > 0;
                at += 2;
                if paste && ends_in_comma(&out, tail) {
                    // `, ## __VA_ARGS__`: other preprocessors drop the comma if there are none.
                    let variable = body.get(at).and_then(|token| variable(token, arguments));
                    if let Some(argument) = variable {
                        paste = false;
                        if argument.raw.is_empty() {
                            out.pop();
                        }
                    }
                }
                continue;
            }
            let (mut piece, length) = self.piece(rest, arguments, paste, site);
            at += length;
            let pasted = std::mem::take(&mut paste) && tail > 0;
            if pasted && !piece.is_empty() {
                let first = piece.remove(0);
                let last = out.pop();
                let joint = self.pasted(last, first, site);
                tail = tail - 1 + joint.len() + piece.len();
                out.extend(joint);
            } else if !pasted {
                tail = piece.len();
            }
            out.append(&mut piece);
        }
        out
    }

    /// The replacement of the first part of a body, and the number of its tokens. After `##`
    /// (`paste`) and before it, arguments are not expanded.
    fn piece(
        &mut self,
        body: &[Token],
        arguments: &[Argument],
        paste: bool,
        site: Span,
    ) -> (Vec<Token>, usize) {
        let Some((token, rest)) = body.split_first() else {
            return (Vec::new(), 0);
        };
        if token.kind.is_punct('#') && !arguments.is_empty() {
            let text = match rest.first().and_then(|next| named(next, arguments)) {
                Some(argument) => Some((spelled(&argument.raw), 1)),
                None => self
                    .optional(rest, arguments, site)
                    .map(|(tokens, length)| (spelled(&tokens), length)),
            };
            if let Some((text, length)) = text {
                self.count(text.len() / 16, site);
                let text = Token {
                    kind: TokenKind::Text(text.into()),
                    span: site,
                    ..token.clone()
                };
                return (vec![text], 1 + length);
            }
        }
        let (mut piece, length) = if let Some(argument) = named(token, arguments) {
            let before_paste = rest.first().is_some_and(|next| is_paste(next, rest.get(1)));
            match paste || before_paste {
                true => (argument.raw.clone(), 1),
                false => (argument.expanded.clone(), 1),
            }
        } else if let Some(optional) = self.optional(body, arguments, site) {
            optional
        } else {
            let token = Token {
                span: site,
                ..token.clone()
            };
            return (vec![token], 1);
        };
        self.count(piece.len(), site);
        if let Some(first) = piece.first_mut() {
            first.glued = token.glued;
        }
        (piece, length)
    }

    /// `__VA_OPT__(...)` at the start of a body of a variadic macro: its replacement, which is
    /// empty without variable arguments, and the number of its tokens.
    fn optional(
        &mut self,
        body: &[Token],
        arguments: &[Argument],
        site: Span,
    ) -> Option<(Vec<Token>, usize)> {
        body.first().filter(|token| is_optional(token))?;
        let variable = arguments.last().filter(|last| last.name == REST)?;
        let end = closing(body.get(1..)?)?;
        let piece = match variable.expanded.is_empty() {
            true => Vec::new(),
            false => self.substitute(body.get(2..=end).unwrap_or_default(), arguments, site),
        };
        Some((piece, end + 2))
    }

    /// Two tokens as one.
    fn pasted(&mut self, left: Option<Token>, right: Token, site: Span) -> Vec<Token> {
        let Some(left) = left else {
            return vec![right];
        };
        let text = format!("{}{}", left.kind.spelled(), right.kind.spelled());
        let tokens = lex(site.file, &text);
        match tokens.as_slice() {
            [one] if !matches!(one.kind, TokenKind::Error(_)) => vec![Token {
                kind: one.kind.clone(),
                span: site,
                ..left
            }],
            // This lexer reads `<<` as two tokens.
            [_, _] if text.chars().all(|c| c.is_ascii_punctuation()) => vec![
                left,
                Token {
                    glued: true,
                    ..right
                },
            ],
            _ => {
                self.sink
                    .error(site, format!("`##` does not make a token of `{text}`"));
                vec![left]
            }
        }
    }
}

/// The argument that a token of a body names.
fn named<'a>(token: &Token, arguments: &'a [Argument]) -> Option<&'a Argument> {
    let word = token.kind.word()?;
    arguments.iter().find(|argument| argument.name == word)
}

/// As [`named`], if it is the variable arguments.
fn variable<'a>(token: &Token, arguments: &'a [Argument]) -> Option<&'a Argument> {
    named(token, arguments).filter(|argument| argument.name == REST)
}

fn ends_in_comma(out: &[Token], tail: usize) -> bool {
    tail == 1 && out.last().is_some_and(|last| last.kind.is_punct(','))
}

struct Argument {
    name: String,
    raw: Vec<Token>,
    expanded: Vec<Token>,
}

fn marked(body: Vec<Token>, hidden: &Hidden, replaced: &Token) -> Vec<Marked> {
    let mut body: Vec<Marked> = body
        .into_iter()
        .map(|token| (token, hidden.clone()))
        .collect();
    if let Some((first, _)) = body.first_mut() {
        first.glued = replaced.glued;
        first.first_on_line = replaced.first_on_line;
        first.doc.clone_from(&replaced.doc);
    }
    body
}

/// The variable arguments, with the commas between them.
fn joined(arguments: Vec<Vec<Token>>) -> Vec<Token> {
    let mut all: Vec<Token> = Vec::new();
    for argument in arguments {
        if let Some(last) = all.last().cloned() {
            all.push(Token {
                kind: TokenKind::Punct(','),
                ..last
            });
        }
        all.extend(argument);
    }
    all
}

/// The string that `#` makes of an argument: its tokens, with one space for any white
/// space.
fn spelled(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        if !text.is_empty() && !token.glued {
            text.push(' ');
        }
        text.push_str(&token.kind.spelled());
    }
    text
}

fn is_paste(first: &Token, second: Option<&Token>) -> bool {
    first.kind.is_punct('#')
        && second.is_some_and(|second| second.glued && second.kind.is_punct('#'))
}
