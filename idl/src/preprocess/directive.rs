//! Lines that begin with `#`.

use super::Preprocessor;
use super::conditions::Conditions;
use super::macros::Macro;
use crate::lex::{Token, TokenKind};
use crate::source::Span;

impl Preprocessor<'_> {
    /// One directive: `hash` is the place of its `#`, `body` the rest of the line.
    pub(super) fn directive(&mut self, hash: Span, body: &[Token], conditions: &mut Conditions) {
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
            "pragma" => self.pragma(span, arguments),
            "error" => {
                let text = self.raw(arguments).to_owned();
                self.sink.error(span, format!("#error {text}"));
            }
            "warning" => {
                let text = self.raw(arguments).to_owned();
                self.sink.warning(span, format!("#warning {text}"));
            }
            "line" => self.sink.refuse(span, "`#line`"),
            "" => self
                .sink
                .refuse(span, "the line marker of another preprocessor"),
            _ => self
                .sink
                .error(span, format!("unknown directive `#{name}`")),
        }
    }

    /// The directives that are obeyed in skipped groups too.
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
            "else" => conditions.branch(true, true),
            "endif" => conditions.end(),
            _ => return false,
        };
        if let Err(message) = outcome {
            self.sink.error(span, message);
        }
        true
    }

    /// The rest of a directive as it stands in the source.
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
        if name == "defined" {
            self.sink
                .error(site, "`defined` cannot be the name of a macro");
        } else if function_like {
            self.sink
                .refuse(site, &format!("function-like macro `{name}`"));
            self.macros.insert(name, Macro::FunctionLike);
        } else if body.windows(2).any(|pair| is_paste(&pair[0], &pair[1])) {
            self.sink.refuse(site, "`##` in a macro");
            self.macros.insert(name, Macro::Tokens([].into()));
        } else {
            let hint = format!("write `#undef {name}` first if that is what you want");
            let changed = self.macros.insert(name.clone(), Macro::Tokens(body.into()));
            if changed {
                let message = format!("macro `{name}` is defined anew with another value");
                self.sink.warning_hint(site, message, hint);
            }
        }
    }

    fn pragma(&mut self, span: Span, arguments: &[Token]) {
        let text = self.raw(arguments).to_owned();
        let name = arguments
            .first()
            .and_then(|token| token.kind.word())
            .unwrap_or("");
        match name {
            "once" => {
                self.once.insert(span.file);
            }
            "keylist" | "DCPS_DATA_KEY" => {
                let hint = "mark the members of the key with `@key`";
                self.sink
                    .refuse_hint(span, &format!("`#pragma {name}`"), hint);
            }
            "DCPS_DATA_TYPE" => {
                let hint = "every struct without `@nested` is a topic type";
                self.sink
                    .warning_hint(span, "`#pragma DCPS_DATA_TYPE` has no effect", hint);
            }
            _ => self
                .sink
                .warning(span, format!("unknown pragma is ignored: `{text}`")),
        }
    }
}

fn is_paste(first: &Token, second: &Token) -> bool {
    matches!(
        (&first.kind, &second.kind),
        (TokenKind::Punct('#'), TokenKind::Punct('#'))
    ) && second.glued
}
