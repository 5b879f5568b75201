//! Building blocks that are recognised and refused by name, because DDS data types
//! do not use them.

use super::{END, Parser};
use crate::ast::Ident;
use crate::lex::TokenKind;
use crate::source::Span;

const VALUES: &str = "Value Types";
const COMPONENTS: &str = "Components";
const HOMES: &str = "Components - Homes";
const CORBA: &str = "CORBA-Specific";
const TEMPLATES: &str = "Template Modules";

/// The unsupported construct that begins with this keyword, if it begins one, and its
/// building block of IDL 4.2 (§7.4).
pub(super) fn construct(keyword: &str) -> Option<(&'static str, &'static str)> {
    Some(match keyword {
        "valuetype" => ("`valuetype`", VALUES),
        "eventtype" => ("`eventtype`", "CCM-Specific"),
        "component" => ("`component`", COMPONENTS),
        "home" => ("`home`", HOMES),
        "porttype" => ("`porttype`", "Components - Ports and Connectors"),
        "connector" => ("`connector`", "Components - Ports and Connectors"),
        "import" => ("`import`", CORBA),
        "typeid" => ("`typeid`", CORBA),
        "typeprefix" => ("`typeprefix`", CORBA),
        "alias" => ("`alias` of a template module", TEMPLATES),
        "abstract" => ("`abstract`", CORBA),
        "local" => ("`local`", "Interfaces"),
        "custom" => ("`custom`", CORBA),
        _ => return None,
    })
}

impl Parser<'_> {
    /// `any`, `Object`, `ValueBase`.
    pub(super) fn refuse_type(&mut self, word: &str) {
        let block = match word {
            "any" => "Any",
            "Object" => "Interfaces - Full",
            _ => VALUES,
        };
        self.sink.refuse(self.span(), &format!("`{word}`"), block);
    }

    /// `module M<typename T> {`
    pub(super) fn refuse_template(&mut self, span: Span) {
        self.sink.refuse(span, "a template module", TEMPLATES);
    }

    /// Reports and skips an unsupported definition, and returns the name that it
    /// declares; `None` when no such definition begins here.
    pub(super) fn refused_definition(&mut self) -> Option<Option<Ident>> {
        let start = self.span();
        let TokenKind::Keyword(word) = self.kind() else {
            return None;
        };
        let (what, block) = construct(word)?;
        let mut what = what.to_owned();
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
        self.sink
            .refuse(start.to(self.previous_span()), &what, block);
        self.skip_definition();
        Some(name)
    }

    /// Skips past the `;` of this definition, braces in pairs.
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

    /// After `typedef`: skips an unsupported type.
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
