//! Lines that begin with `#`.

use super::Preprocessor;
use super::conditions::Conditions;
use super::macros::{HAS_INCLUDE, Macro, check_optional, parameters};
use crate::lex::{Token, TokenKind};
use crate::source::Span;

impl Preprocessor<'_> {
    /// One directive: `hash` is the position of its `#`, `body` the rest of the line.
    /// A `silent` file contributes only macros.
    pub(super) fn directive(
        &mut self,
        hash: Span,
        body: &[Token],
        conditions: &mut Conditions,
        silent: bool,
    ) {
        // A `#` alone is the null directive.
        let Some((head, arguments)) = body.split_first() else {
            return;
        };
        let span = hash.to(head.span);
        let name = head.kind.word().unwrap_or("");
        if self.conditional(name, span, arguments, conditions) || !conditions.active() {
            return;
        }
        match name {
            "include" => self.include(span, arguments),
            "define" => self.define(span, arguments),
            "undef" => {
                if let Some(name) = self.macro_name(span, arguments) {
                    self.macros.remove(&name);
                }
            }
            "pragma" => self.pragma(span, arguments, silent),
            "error" => {
                let text = self.raw(arguments).to_owned();
                self.sink.error(span, format!("#error {text}"));
            }
            "warning" => {
                let text = self.raw(arguments).to_owned();
                self.sink.warning(span, format!("#warning {text}"));
            }
            "ident" | "sccs" => {
                if !matches!(arguments, [one] if matches!(one.kind, TokenKind::Text(_))) {
                    self.sink.error(span, format!("`#{name}` expects a string"));
                }
            }
            "line" => self.line_marker(span, arguments),
            // `# 3 "a.idl" 1`, the output of other preprocessors.
            "" if matches!(head.kind, TokenKind::Integer(_)) => self.line_marker(span, body),
            _ => self
                .sink
                .error(span, format!("unknown directive `#{name}`")),
        }
    }

    /// The directives that also apply in skipped groups.
    fn conditional(
        &mut self,
        name: &str,
        span: Span,
        arguments: &[Token],
        conditions: &mut Conditions,
    ) -> bool {
        let outcome = match name {
            "if" => {
                let holds = conditions.active() && self.condition(span, arguments);
                conditions.begin(span, holds);
                Ok(())
            }
            "ifdef" | "ifndef" => {
                let wanted = name == "ifdef";
                let name = if conditions.active() {
                    self.macro_name(span, arguments)
                } else {
                    None
                };
                let holds = name.is_some_and(|name| self.macros.contains(&name) == wanted);
                conditions.begin(span, holds);
                Ok(())
            }
            "elif" => {
                let holds = conditions.wants_elif() && self.condition(span, arguments);
                conditions.branch(holds, false)
            }
            "elifdef" | "elifndef" => {
                let wanted = name == "elifdef";
                let holds = conditions.wants_elif()
                    && self
                        .macro_name(span, arguments)
                        .is_some_and(|name| self.macros.contains(&name) == wanted);
                conditions.branch(holds, false)
            }
            "else" => conditions.branch(true, true),
            "endif" => conditions.end(),
            _ => return false,
        };
        if let Err(message) = outcome {
            self.sink.error(span, message);
        }
        true
    }

    /// The rest of a directive as written.
    pub(super) fn raw(&self, arguments: &[Token]) -> &str {
        let (Some(first), Some(last)) = (arguments.first(), arguments.last()) else {
            return "";
        };
        let span = first.span.to(last.span);
        self.sources
            .text(span.file)
            .get(span.start..span.end)
            .unwrap_or("")
    }

    fn macro_name(&mut self, span: Span, arguments: &[Token]) -> Option<String> {
        let name = arguments
            .first()
            .and_then(|token| token.kind.word())
            .map(String::from);
        if name.is_none() {
            self.sink.error(span, "the name of a macro is missing");
        }
        name
    }

    fn define(&mut self, span: Span, arguments: &[Token]) {
        let Some(name) = self.macro_name(span, arguments) else {
            return;
        };
        let body = arguments.get(1..).unwrap_or(&[]);
        let site = arguments.first().map_or(span, |token| token.span);
        let function_like = body
            .first()
            .is_some_and(|next| next.glued && next.kind.is_punct('('));
        if matches!(&*name, "defined" | HAS_INCLUDE) {
            self.sink
                .error(site, format!("`{name}` cannot be the name of a macro"));
            return;
        }
        let definition = if function_like {
            let definition =
                parameters(body.get(1..).unwrap_or(&[])).and_then(|(found, length)| {
                    let body = body.get(1 + length..).unwrap_or(&[]);
                    if found.variadic {
                        check_optional(body)?;
                    }
                    Ok(Macro::function(found, body))
                });
            match definition {
                Ok(definition) => definition,
                Err(message) => {
                    self.sink.error(site, message);
                    return;
                }
            }
        } else {
            Macro::object(body)
        };
        let hint = format!("write `#undef {name}` first if that is what you want");
        let changed = self.macros.insert(name.clone(), definition);
        if changed {
            let message = format!("macro `{name}` is redefined with another value");
            self.sink.warning_hint(site, message, hint);
        }
    }

    /// `3 "a.idl"`: the line number and file of the lines that follow.
    fn line_marker(&mut self, span: Span, arguments: &[Token]) {
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < arguments.len() {
            at += self.expand(arguments.get(at..).unwrap_or(&[]), &mut tokens);
        }
        let line = match tokens.first().map(|token| &token.kind) {
            Some(TokenKind::Integer(line)) => usize::try_from(*line).ok(),
            _ => None,
        };
        let file = match tokens.get(1).map(|token| &token.kind) {
            None => Some(None),
            Some(TokenKind::Text(file)) => Some(Some(file)),
            Some(_) => None,
        };
        let (Some(line), Some(file)) = (line, file) else {
            let message = "a line marker is a number, and the name of a file or none";
            self.sink.error(span, message);
            return;
        };
        let end = arguments.last().map_or(span.end, |token| token.span.end);
        let file = file.map(|file| &**file);
        self.sources.mark(span.file, end, line, file);
    }
}
