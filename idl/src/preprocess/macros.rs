//! Object-like macros.

use std::collections::HashMap;
use std::rc::Rc;

use super::Preprocessor;
use crate::Options;
use crate::lex::{Token, TokenKind, lex};
use crate::limits::{MACRO_DEPTH_MAX, TOKENS_MAX};
use crate::source::{FileId, Span};

#[derive(Debug, Clone)]
pub(super) enum Macro {
    Tokens(Rc<[Token]>),
    /// Refused where it was defined; its uses are skipped in silence.
    FunctionLike,
}

#[derive(Debug, Default)]
pub(super) struct Macros {
    by_name: HashMap<String, Macro>,
}

impl Macros {
    /// Those of the options. As for other compilers, a macro without a value is 1.
    pub(super) fn predefined(options: &Options) -> Self {
        let mut macros = Self::default();
        for (name, value) in &options.defines {
            // The spans in here are replaced wherever the macro is used.
            let tokens = lex(FileId(0), value.as_deref().unwrap_or("1"));
            macros
                .by_name
                .insert(name.clone(), Macro::Tokens(tokens.into()));
        }
        macros
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Returns whether another definition was replaced.
    pub(super) fn insert(&mut self, name: String, definition: Macro) -> bool {
        let kinds = |definition: &Macro| match definition {
            Macro::Tokens(body) => body.iter().map(|token| token.kind.clone()).collect(),
            Macro::FunctionLike => Vec::new(),
        };
        let new = kinds(&definition);
        self.by_name
            .insert(name, definition)
            .is_some_and(|old| kinds(&old) != new)
    }

    fn get(&self, token: &Token) -> Option<Macro> {
        token
            .kind
            .word()
            .and_then(|word| self.by_name.get(word))
            .cloned()
    }
}

impl Preprocessor<'_> {
    /// Appends the expansion of the first token and returns how many tokens of
    /// the input it stands for.
    pub(super) fn expand(&mut self, tokens: &[Token], out: &mut Vec<Token>) -> usize {
        let Some(token) = tokens.first() else {
            return 0;
        };
        let consumed = match self.macros.get(token) {
            Some(Macro::FunctionLike) => 1 + arguments_length(&tokens[1..]),
            _ => 1,
        };
        self.expand_one(token, token.span, &mut Vec::new(), out);
        consumed
    }

    /// `active` are the macros being expanded: none is expanded inside itself.
    fn expand_one(
        &mut self,
        token: &Token,
        site: Span,
        active: &mut Vec<String>,
        out: &mut Vec<Token>,
    ) {
        self.tokens += 1;
        if self.tokens > TOKENS_MAX {
            let message = format!("more than {TOKENS_MAX} tokens after preprocessing");
            self.exhaust(site, message);
            return;
        }
        let word = token
            .kind
            .word()
            .filter(|word| !active.iter().any(|name| name == word));
        let (Some(word), Some(definition)) = (word, self.macros.get(token)) else {
            out.push(Token {
                span: site,
                ..token.clone()
            });
            return;
        };
        let Macro::Tokens(body) = definition else {
            let kind = TokenKind::Error("use of a macro that was refused".into());
            out.push(Token {
                kind,
                span: site,
                ..token.clone()
            });
            return;
        };
        if active.len() >= MACRO_DEPTH_MAX {
            self.exhaust(site, format!("macro `{word}` stands in too many others"));
            return;
        }
        active.push(word.to_owned());
        let begin = out.len();
        for inner in body.iter() {
            if self.exhausted {
                break;
            }
            self.expand_one(inner, site, active, out);
        }
        active.pop();
        // What stood before the macro stands before its first token.
        if let Some(first) = out.get_mut(begin) {
            first.first_on_line = token.first_on_line;
            first.glued = token.glued;
            first.doc.clone_from(&token.doc);
        }
    }
}

/// Length of `( ... )` at the start of these tokens, 0 if they start otherwise.
fn arguments_length(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Punct('(') => depth += 1,
            TokenKind::Punct(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if token.kind.is_punct(')') { at + 1 } else { 0 };
        }
    }
    tokens.len()
}
