//! The definitions of macros, object-like and function-like.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Options;
use crate::lex::{Token, TokenKind, lex};
use crate::source::FileId;

/// The name of the variable arguments in the body of a macro.
pub(super) const REST: &str = "__VA_ARGS__";
/// Text for the case that there are some: ISO C++20 §15.6.2.
const OPTIONAL: &str = "__VA_OPT__";
/// The operator of conditions that tells whether a file can be included: ISO C++17 §19.1.
pub(super) const HAS_INCLUDE: &str = "__has_include";

#[derive(Debug, Clone)]
pub(super) struct Macro {
    /// `None` for an object-like one.
    pub(super) parameters: Option<Parameters>,
    pub(super) body: Rc<[Token]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) names: Vec<String>,
    /// The last parameter takes all remaining arguments.
    pub(super) variadic: bool,
}

impl Macro {
    pub(super) fn object(body: &[Token]) -> Self {
        Self {
            parameters: None,
            body: body.into(),
        }
    }

    pub(super) fn function(parameters: Parameters, body: &[Token]) -> Self {
        Self {
            parameters: Some(parameters),
            body: body.into(),
        }
    }

    /// Whether two definitions are equivalent.
    fn same(&self, other: &Self) -> bool {
        let kinds = |one: &Self| {
            one.body
                .iter()
                .map(|token| token.kind.clone())
                .collect::<Vec<_>>()
        };
        self.parameters == other.parameters && kinds(self) == kinds(other)
    }
}

#[derive(Debug, Default)]
pub(super) struct Macros {
    by_name: HashMap<String, Rc<Macro>>,
}

impl Macros {
    /// The macros of the options. As with other compilers, one without a value is 1.
    pub(super) fn predefined(options: &Options) -> Self {
        let mut macros = Self::default();
        for (name, value) in &options.defines {
            // Every use of the macro replaces these spans.
            let tokens = lex(FileId(0), value.as_deref().unwrap_or("1"));
            macros
                .by_name
                .insert(name.clone(), Rc::new(Macro::object(&tokens)));
        }
        macros
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || matches!(name, "__FILE__" | "__LINE__" | HAS_INCLUDE)
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Returns whether another definition was replaced.
    pub(super) fn insert(&mut self, name: String, definition: Macro) -> bool {
        let new = Rc::new(definition);
        self.by_name
            .insert(name, Rc::clone(&new))
            .is_some_and(|old| !old.same(&new))
    }

    pub(super) fn get(&self, word: &str) -> Option<Rc<Macro>> {
        self.by_name.get(word).cloned()
    }
}

/// Whether this is `__VA_OPT__`.
pub(super) fn is_optional(token: &Token) -> bool {
    token.kind.word() == Some(OPTIONAL)
}

/// The index of the `)` that closes the `(` with which the tokens begin.
pub(super) fn closing(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Punct('(') => depth += 1,
            TokenKind::Punct(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (at > 0).then_some(at);
        }
    }
    None
}

/// What is wrong with the uses of `__VA_OPT__` in the body of a variadic macro.
pub(super) fn check_optional(body: &[Token]) -> Result<(), &'static str> {
    let mut rest = body;
    while let Some(at) = rest.iter().position(is_optional) {
        let group = rest.get(at + 1..).unwrap_or_default();
        let end = closing(group).ok_or("`__VA_OPT__` without its `(` and `)`")?;
        let (inner, more) = group.split_at(end);
        if inner.iter().any(is_optional) {
            return Err("`__VA_OPT__` inside `__VA_OPT__`");
        }
        rest = more;
    }
    Ok(())
}

/// The parameters of a function-like macro: those behind the `(`, and how many
/// tokens they are with the `)`. The error says what is wrong.
pub(super) fn parameters(tokens: &[Token]) -> Result<(Parameters, usize), String> {
    let mut names: Vec<String> = Vec::new();
    let mut at = 0;
    let closes = |at: usize| tokens.get(at).is_some_and(|token| token.kind.is_punct(')'));
    if closes(0) {
        let variadic = false;
        return Ok((Parameters { names, variadic }, 1));
    }
    loop {
        let dots = tokens.get(at..at + 3).unwrap_or(&[]);
        if dots.len() == 3 && dots.iter().all(|token| token.kind.is_punct('.')) {
            names.push(REST.into());
            if !closes(at + 3) {
                return Err("`...` is the last parameter of a macro".into());
            }
            let variadic = true;
            return Ok((Parameters { names, variadic }, at + 4));
        }
        let name = tokens.get(at).and_then(|token| token.kind.word());
        let name = name.ok_or("expected the name of a parameter of the macro")?;
        if names.iter().any(|other| other == name) {
            return Err(format!("parameter `{name}` occurs twice in this macro"));
        }
        names.push(name.to_owned());
        at += 1;
        if closes(at) {
            let variadic = false;
            return Ok((Parameters { names, variadic }, at + 1));
        }
        if !tokens.get(at).is_some_and(|token| token.kind.is_punct(',')) {
            return Err("expected `,` or `)` after a parameter of the macro".into());
        }
        at += 1;
    }
}
