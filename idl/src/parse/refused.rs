//! Building blocks that are recognised and refused by name.

use super::{END, Parser};
use crate::ast::Ident;
use crate::lex::TokenKind;

/// What a keyword at the start of a definition begins, if it is not supported.
pub(super) fn construct(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "valuetype" => "`valuetype`",
        "eventtype" => "`eventtype`",
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
        self.sink.refuse(start.to(self.previous_span()), &what);
        self.skip_definition();
        Some(name)
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
