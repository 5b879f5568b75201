//! `@name`, `@name(value)`, `@name(a = 1, b = 2)`, and the declarations of
//! annotations: IDL 4.2 §7.4.15.

use super::{Parsed, Parser};
use crate::ast::{
    Annotation, AnnotationDeclaration, AnnotationItem, Arguments, Definition, DefinitionKind,
    Ident, ScopedName,
};
use crate::diag::Sink;
use crate::lex::TokenKind;
use crate::source::Span;

/// The name of `@key` in files for CoreDX DDS, usually through a macro `DDS_KEY`.
const COREDX_KEY: &str = "__dds_key";

impl Parser<'_> {
    /// All annotations at this position. One that cannot be read is reported and
    /// left out.
    pub(super) fn annotations(&mut self) -> Vec<Annotation> {
        let mut all = Vec::new();
        loop {
            if self.kind().word() == Some(COREDX_KEY) {
                all.push(plain_annotation("key", self.span()));
                self.bump();
            } else if !self.at_punct('@') || self.at_annotation_declaration() {
                return all;
            } else if let Ok(annotation) = self.annotation() {
                all.push(annotation);
            }
        }
    }

    /// The annotations in comments after the `;` that was just consumed. Text that cannot
    /// be read as annotations is an ordinary comment.
    pub(super) fn trailing_annotations(&mut self) -> Vec<Annotation> {
        let Some(last) = self
            .at
            .checked_sub(1)
            .filter(|last| *last >= self.comments_read_to)
        else {
            return Vec::new();
        };
        self.comments_read_to = self.at;
        let Some(tokens) = self
            .tokens
            .get(last)
            .and_then(|it| it.trailing_annotations.as_deref())
        else {
            return Vec::new();
        };
        let mut unread = Sink::default();
        let mut parser = Parser::new(tokens, &[], &mut unread);
        let mut all = parser.annotations();
        if unread.error_count() > 0 {
            return Vec::new();
        }
        for annotation in &mut all {
            annotation.is_in_comment = true;
        }
        all
    }

    /// `@annotation Name {`
    pub(super) fn at_annotation_declaration(&self) -> bool {
        let named = |kind: &TokenKind| matches!(kind, TokenKind::Identifier(_));
        self.at_punct('@')
            && self.kind_at(1).word() == Some("annotation")
            && named(self.kind_at(2))
            && self.kind_at(3).is_punct('{')
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.span();
        self.bump();
        // The name of `@default` is a keyword.
        let glued = self.token().is_some_and(|token| token.glued);
        let name = if let TokenKind::Keyword(word) = self.kind()
            && glued
        {
            let span = self.span();
            self.bump();
            let first = Ident {
                name: (*word).into(),
                span,
            };
            ScopedName {
                absolute: false,
                first,
                rest: Vec::new(),
                span,
            }
        } else {
            self.annotation_name()?
        };
        let mut arguments = Arguments::None;
        if self.at_punct('(') {
            let begin = self.at;
            match self.arguments() {
                Ok(read) => arguments = read,
                Err(abandoned) => {
                    self.at = begin;
                    self.skip_group();
                    return Err(abandoned);
                }
            }
        }
        let span = start.to(self.previous_span());
        Ok(Annotation {
            is_in_comment: false,
            name,
            arguments,
            span,
        })
    }

    /// A scoped name without white space between its parts: in `@key ::T x` the
    /// second name is that of a type.
    fn annotation_name(&mut self) -> Parsed<ScopedName> {
        let start = self.span();
        let absolute = self.kind() == &TokenKind::Scope;
        if absolute {
            self.bump();
        }
        let first = self.identifier("the name of an annotation")?;
        let mut rest = Vec::new();
        while self.kind() == &TokenKind::Scope && self.token().is_some_and(|token| token.glued) {
            self.bump();
            rest.push(self.identifier("a name after `::`")?);
        }
        let span = start.to(self.previous_span());
        Ok(ScopedName {
            absolute,
            first,
            rest,
            span,
        })
    }

    fn arguments(&mut self) -> Parsed<Arguments> {
        self.expect('(')?;
        if self.take(')') {
            return Ok(Arguments::None);
        }
        let arguments = if self.kind_at(1).is_punct('=') {
            let mut named = Vec::new();
            loop {
                let name = self.identifier("the name of an argument")?;
                self.expect('=')?;
                named.push((name, self.expression()?));
                if !self.take(',') {
                    break Arguments::Named(named);
                }
            }
        } else {
            Arguments::Positional(self.expression()?)
        };
        self.expect(')')?;
        Ok(arguments)
    }

    /// `@annotation Name { ... };`
    pub(super) fn annotation_declaration(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        self.bump();
        let name = self.identifier("the name of an annotation")?;
        let (items, broken, ended) = self.block("annotation", &name, Self::annotation_item)?;
        if ended {
            self.semicolon("the annotation")?;
        }
        Ok(DefinitionKind::AnnotationDeclaration(
            AnnotationDeclaration {
                name,
                items,
                broken,
            },
        ))
    }

    fn annotation_item(&mut self) -> Parsed<AnnotationItem> {
        let doc = self.token().and_then(|token| token.doc.clone());
        if ["const", "typedef", "enum", "bitmask"]
            .iter()
            .any(|word| self.at_keyword(word))
            && let Some(kind) = self.inner_definition()?
        {
            return Ok(AnnotationItem::Definition(Definition {
                doc,
                annotations: Vec::new(),
                kind,
            }));
        }
        let ty = if self.take_keyword("any") {
            None
        } else {
            Some(self.type_spec()?)
        };
        let name = self.identifier("the name of a parameter")?;
        let default = if self.take_keyword("default") {
            Some(self.expression()?)
        } else {
            None
        };
        self.semicolon("the parameter")?;
        Ok(AnnotationItem::Parameter { ty, name, default })
    }
}

/// `@name`, spelled in another way.
pub(super) fn plain_annotation(name: &str, span: Span) -> Annotation {
    let first = Ident {
        name: name.into(),
        span,
    };
    Annotation {
        is_in_comment: false,
        name: ScopedName {
            absolute: false,
            first,
            rest: Vec::new(),
            span,
        },
        arguments: Arguments::None,
        span,
    }
}
