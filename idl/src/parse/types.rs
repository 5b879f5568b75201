//! Type specifiers and declarators: IDL 4.2 §7.4.1.4.4, §7.4.13, §7.4.14.

use super::{Abandoned, Parsed, Parser};
use crate::ast::{Declarator, Expr, TypeKind, TypeSpec};
use crate::lex::TokenKind;
use crate::model::Primitive;

/// Keywords that begin a type in an operation.
const TYPE_WORDS: &[&str] = &[
    "boolean", "char", "double", "fixed", "float", "int16", "int32", "int64", "int8", "long",
    "map", "octet", "sequence", "short", "string", "uint16", "uint32", "uint64", "uint8",
    "unsigned", "wchar", "wstring",
];

/// The template type that a misspelled keyword most likely means.
fn template_keyword(written: &str) -> Option<&'static str> {
    ["sequence", "string", "wstring", "map", "fixed"]
        .into_iter()
        .find(|word| word.eq_ignore_ascii_case(written))
}

impl Parser<'_> {
    pub(super) fn type_spec(&mut self) -> Parsed<TypeSpec> {
        let annotations = self.annotations();
        let start = self.span();
        let kind = match self.kind() {
            TokenKind::Identifier(written) if self.kind_at(1).is_punct('<') => {
                match template_keyword(written) {
                    Some(word) => {
                        let message = format!("`{written}` is read as `{word}`");
                        self.sink
                            .warning_hint(start, message, format!("write `{word}`"));
                        self.keyword_type(word)?
                    }
                    None => TypeKind::Named(self.scoped_name("a type")?),
                }
            }
            TokenKind::Identifier(_) | TokenKind::Scope => {
                TypeKind::Named(self.scoped_name("a type")?)
            }
            TokenKind::Keyword(word) => self.keyword_type(word)?,
            _ => return self.expected("a type"),
        };
        let span = start.to(self.previous_span());
        Ok(TypeSpec {
            annotations,
            kind,
            span,
        })
    }

    /// Whether a type that an operation can use begins here.
    pub(super) fn begins_type(&self) -> bool {
        match self.kind() {
            TokenKind::Identifier(_) | TokenKind::Scope => true,
            TokenKind::Keyword(word) => TYPE_WORDS.contains(word),
            _ => false,
        }
    }

    fn keyword_type(&mut self, word: &str) -> Parsed<TypeKind> {
        let primitive = match word {
            "string" => {
                self.bump();
                return Ok(TypeKind::String(self.bound()?));
            }
            "wstring" => {
                self.bump();
                return Ok(TypeKind::WString(self.bound()?));
            }
            "sequence" => return self.nested(Self::sequence),
            "map" => return self.nested(Self::map),
            "fixed" => return self.fixed(),
            "unsigned" => return self.unsigned(),
            "long" => return Ok(self.long()),
            "short" | "int16" => Primitive::Int16,
            "int32" => Primitive::Int32,
            "int64" => Primitive::Int64,
            "int8" => Primitive::Int8,
            "uint8" => Primitive::UInt8,
            "uint16" => Primitive::UInt16,
            "uint32" => Primitive::UInt32,
            "uint64" => Primitive::UInt64,
            "float" => Primitive::Float32,
            "double" => Primitive::Float64,
            "boolean" => Primitive::Boolean,
            "octet" => Primitive::Octet,
            "char" => Primitive::Char,
            "wchar" => Primitive::WChar,
            "any" | "Object" | "ValueBase" => {
                self.refuse_type(word);
                self.bump();
                self.skip_template();
                return Ok(TypeKind::Refused);
            }
            "struct" | "union" | "enum" | "bitset" | "bitmask" => {
                let message = format!("a type cannot be declared inside this: `{word}`");
                let hint = "declare it before, and use its name here";
                self.sink.error_hint(self.span(), message, hint);
                self.skip_to_declarators();
                let named = matches!(self.kind(), TokenKind::Identifier(_));
                return if named {
                    Ok(TypeKind::Refused)
                } else {
                    Err(Abandoned)
                };
            }
            _ => return self.expected("a type"),
        };
        self.bump();
        Ok(TypeKind::Primitive(primitive))
    }

    /// `long`, `long long`, `long double`.
    fn long(&mut self) -> TypeKind {
        self.bump();
        if self.take_keyword("long") {
            return TypeKind::Primitive(Primitive::Int64);
        }
        if self.take_keyword("double") {
            return TypeKind::Primitive(Primitive::Float128);
        }
        TypeKind::Primitive(Primitive::Int32)
    }

    fn unsigned(&mut self) -> Parsed<TypeKind> {
        self.bump();
        let primitive = if self.take_keyword("short") {
            Primitive::UInt16
        } else if !self.take_keyword("long") {
            return self.expected("`short` or `long` after `unsigned`");
        } else if self.take_keyword("long") {
            Primitive::UInt64
        } else {
            Primitive::UInt32
        };
        Ok(TypeKind::Primitive(primitive))
    }

    fn sequence(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect('<')?;
        let element = Box::new(self.type_spec()?);
        let bound = if self.take(',') {
            Some(self.template_bound()?)
        } else {
            None
        };
        self.expect('>')?;
        Ok(TypeKind::Sequence(element, bound))
    }

    fn map(&mut self) -> Parsed<TypeKind> {
        self.bump();
        self.expect('<')?;
        let key = self.type_spec()?;
        self.expect(',')?;
        let value = self.type_spec()?;
        let bound = if self.take(',') {
            Some(self.template_bound()?)
        } else {
            None
        };
        self.expect('>')?;
        Ok(TypeKind::Map(Box::new((key, value)), bound))
    }

    /// `fixed<D, S>`, or `fixed` of a constant.
    fn fixed(&mut self) -> Parsed<TypeKind> {
        self.bump();
        if !self.take('<') {
            return Ok(TypeKind::Fixed(None));
        }
        let digits = self.template_bound()?;
        self.expect(',')?;
        let scale = self.template_bound()?;
        self.expect('>')?;
        Ok(TypeKind::Fixed(Some(Box::new((digits, scale)))))
    }

    /// `<N>` after `string`.
    fn bound(&mut self) -> Parsed<Option<Expr>> {
        if !self.take('<') {
            return Ok(None);
        }
        let bound = self.template_bound()?;
        self.expect('>')?;
        Ok(Some(bound))
    }

    /// Skips `< ... >` after a refused type.
    fn skip_template(&mut self) {
        let mut depth = 0_usize;
        while !matches!(
            self.kind(),
            TokenKind::End | TokenKind::Punct(';' | '{' | '}')
        ) {
            if self.at_punct('<') {
                depth += 1;
            } else if depth > 0 && self.at_punct('>') {
                depth -= 1;
            } else if depth == 0 {
                return;
            }
            self.bump();
        }
    }

    /// `a, b[2], c[N][M]`
    pub(super) fn declarators(&mut self, what: &str) -> Parsed<Vec<Declarator>> {
        let mut all = Vec::new();
        loop {
            let name = self.declared_name(what)?;
            let annotations = self.annotations();
            let mut dimensions = Vec::new();
            while self.take('[') {
                dimensions.push(self.expression()?);
                self.expect(']')?;
            }
            all.push(Declarator {
                name,
                dimensions,
                annotations,
            });
            if !self.take(',') {
                return Ok(all);
            }
        }
    }
}
