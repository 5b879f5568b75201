//! Building blocks that are recognised and refused by name.

use super::{END, Parser};
use crate::ast::Ident;
use crate::lex::TokenKind;
use crate::source::Span;

/// What a keyword at the start of a definition begins, if it is not supported.
pub(super) fn construct(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "union" => "`union`",
        "bitset" => "`bitset`",
        "bitmask" => "`bitmask`",
        "interface" => "`interface`",
        "valuetype" => "`valuetype`",
        "eventtype" => "`eventtype`",
        "exception" => "`exception`",
        "native" => "`native`",
        "component" => "`component`",
        "home" => "`home`",
        "porttype" => "`porttype`",
        "connector" => "`connector`",
        "import" => "`import`",
        "typeid" => "`typeid`",
        "typeprefix" => "`typeprefix`",
        "alias" => "`alias` of a template module",
        "abstract" => "`abstract`",
        "local" => "`local`",
        "custom" => "`custom`",
        _ => return None,
    })
}

impl Parser<'_> {
    /// Reports and skips a definition that is not supported, with the name that
    /// it declares; `None` when no such thing begins here.
    pub(super) fn refused_definition(&mut self) -> Option<Option<Ident>> {
        let start = self.span();
        if self.at_annotation_declaration() {
            self.bump();
            self.bump();
            let span = start.to(self.span());
            self.sink.refuse(span, "the declaration of an annotation");
            self.skip_definition();
            // Annotations have names of their own kind.
            return Some(None);
        }
        let TokenKind::Keyword(word) = self.kind() else {
            return None;
        };
        let mut what = construct(word)?.to_owned();
        self.bump();
        // `abstract valuetype`, `local interface`, `custom valuetype`.
        if matches!(*word, "abstract" | "local" | "custom")
            && let TokenKind::Keyword(second @ ("interface" | "valuetype" | "eventtype")) =
                self.kind()
        {
            what = format!("`{word} {second}`");
            self.bump();
        }
        let named = !matches!(*word, "import" | "typeid" | "typeprefix" | "alias");
        let name = match self.kind() {
            TokenKind::Identifier(written) if named => {
                let name = written.strip_prefix('_').unwrap_or(written).into();
                let span = self.span();
                self.bump();
                Some(Ident { name, span })
            }
            _ => None,
        };
        let forward = matches!(
            *word,
            "union" | "interface" | "valuetype" | "abstract" | "local"
        );
        if forward && self.at_punct(';') {
            self.refuse_forward(start.to(self.previous_span()), what.trim_matches('`'));
        } else {
            self.sink.refuse(start.to(self.previous_span()), &what);
        }
        self.skip_definition();
        Some(name)
    }

    /// `struct S;`
    pub(super) fn refuse_forward(&mut self, span: Span, keyword: &str) {
        self.sink
            .refuse(span, &format!("the forward declaration of `{keyword}`"));
    }

    /// Skips to behind the `;` of this definition, braces in pairs.
    pub(super) fn skip_definition(&mut self) {
        while self.kind() != END && !self.at_punct('}') {
            if self.take(';') {
                return;
            }
            let brace = self.at_punct('{');
            if !self.skip_group() {
                self.bump();
            }
            if brace {
                if !self.take(';') {
                    let place = self.previous_span().after();
                    self.sink.error(place, "expected `;` after `}`");
                }
                return;
            }
        }
    }

    /// Behind `typedef`: skips a type that is declared there.
    pub(super) fn skip_to_declarators(&mut self) {
        while !matches!(self.kind(), TokenKind::End | TokenKind::Punct(';' | '}')) {
            let brace = self.at_punct('{');
            if !self.skip_group() {
                self.bump();
            }
            if brace {
                return;
            }
        }
    }
}
