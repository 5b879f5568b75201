//! Modules, structs, enums, bitmasks, typedefs and constants.

use std::rc::Rc;

use super::annotations::plain_annotation;
use super::{Abandoned, END, Parsed, Parser};
use crate::ast::{
    Const, Definition, DefinitionKind, Enum, Expr, ForwardKind, Ident, Literal, Member, Module,
    Struct, TypeKind, TypeSpec, Typedef,
};
use crate::lex::{Token, TokenKind};
use crate::source::Span;

impl Parser<'_> {
    /// Definitions up to a closing brace or the end.
    pub(super) fn definitions(&mut self) -> Vec<Definition> {
        let mut all = Vec::new();
        loop {
            self.pragmas_before(&mut all);
            if self.kind() == END || self.at_punct('}') {
                return all;
            }
            let begin = self.at;
            match self.definition() {
                Ok(Some(definition)) => all.push(definition),
                Ok(None) => {}
                Err(Abandoned) => self.recover(begin),
            }
            if self.at == begin {
                self.bump();
            }
        }
    }

    /// The pragmas before this position, including those inside the definition
    /// that ends here.
    fn pragmas_before(&mut self, all: &mut Vec<Definition>) {
        while let Some(((at, token), rest)) = self.pragmas.split_first() {
            if *at > self.at {
                return;
            }
            self.pragmas = rest;
            if let TokenKind::Pragma(pragma) = &token.kind {
                all.push(Definition {
                    doc: None,
                    annotations: Vec::new(),
                    kind: DefinitionKind::Pragma(Rc::clone(pragma), token.span),
                });
            }
        }
    }

    fn definition(&mut self) -> Parsed<Option<Definition>> {
        if self.at_punct(';') {
            self.sink.warning(self.span(), "a `;` alone has no meaning");
            self.bump();
            return Ok(None);
        }
        let doc = self.token().and_then(|token| token.doc.clone());
        let mut annotations = self.annotations();
        let kind = match self.inner_definition()? {
            Some(kind) => kind,
            None if self.at_keyword("module") => self.module()?,
            None if self.at_interface() => self.interface()?,
            None if self.at_annotation_declaration() => self.annotation_declaration()?,
            None => match self.refused_definition() {
                Some(name) => DefinitionKind::Refused(name),
                None => return self.expected("a declaration"),
            },
        };
        annotations.extend(self.trailing_annotations());
        Ok(Some(Definition {
            doc,
            annotations,
            kind,
        }))
    }

    /// Definitions that modules and interfaces may contain.
    pub(super) fn inner_definition(&mut self) -> Parsed<Option<DefinitionKind>> {
        let TokenKind::Keyword(word) = self.kind() else {
            return Ok(None);
        };
        if let Some((kind, ended)) = self.constructed(word)? {
            // A definition whose end was not found has no `;`.
            if ended {
                self.semicolon(&format!("the {word}"))?;
            }
            return Ok(Some(kind));
        }
        Ok(Some(match *word {
            "typedef" => self.typedef()?,
            "const" => self.constant()?,
            "native" => self.native()?,
            _ => return Ok(None),
        }))
    }

    /// The constructed type that begins with this keyword, up to its `;`. The second
    /// value says whether the end was found.
    fn constructed(&mut self, word: &str) -> Parsed<Option<(DefinitionKind, bool)>> {
        Ok(Some(match word {
            "struct" => self.structure("struct")?,
            "exception" => self.structure("exception")?,
            "union" => self.union()?,
            "enum" => self.names("enum", DefinitionKind::Enum)?,
            "bitmask" => self.names("bitmask", DefinitionKind::Bitmask)?,
            "bitset" => self.bitset()?,
            _ => return Ok(None),
        }))
    }

    fn native(&mut self) -> Parsed<DefinitionKind> {
        self.bump();
        let name = self.declared_name("the name of a native type")?;
        self.semicolon("the native type")?;
        Ok(DefinitionKind::Native(name))
    }

    fn module(&mut self) -> Parsed<DefinitionKind> {
        let keyword = self.span();
        self.bump();
        let name = self.declared_name("the name of a module")?;
        if self.at_punct('<') {
            self.refuse_template(keyword.to(name.span));
            self.skip_definition();
            return Ok(DefinitionKind::Refused(Some(name)));
        }
        let opening = self.span();
        self.expect('{')?;
        let items = self.nested(|parser| Ok(parser.definitions()))?;
        if self.at_punct('}') {
            self.bump();
            self.semicolon("the module")?;
        } else {
            self.not_closed(opening, "module", &name);
        }
        Ok(DefinitionKind::Module(Module { name, items }))
    }

    /// The second value says whether the end was found, up to the `;`.
    fn structure(&mut self, word: &str) -> Parsed<(DefinitionKind, bool)> {
        self.bump();
        let name = self.declared_name(&format!("the name of {}", article(word)))?;
        if self.at_punct(';') && word == "struct" {
            return Ok((DefinitionKind::Forward(ForwardKind::Struct, name), true));
        }
        let base = if self.take(':') {
            Some(self.scoped_name("a struct")?)
        } else {
            None
        };
        let (members, broken, ended) = self.block(word, &name, Self::member)?;
        let structure = Struct {
            exception: word == "exception",
            name,
            base,
            members,
            broken,
        };
        Ok((DefinitionKind::Struct(structure), ended))
    }

    /// `{ ... }` around members of one kind. Also returns whether some could not be
    /// read, and whether the end was found.
    pub(super) fn block<T>(
        &mut self,
        word: &str,
        name: &Ident,
        mut member: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<(Vec<T>, bool, bool)> {
        let opening = self.span();
        self.expect('{')?;
        let (mut members, mut broken) = (Vec::new(), false);
        while self.kind() != END && !self.at_punct('}') && !self.leave_block(word) {
            let begin = self.at;
            if self.at_punct(';') {
                self.sink.warning(self.span(), "a `;` alone has no meaning");
                self.bump();
                continue;
            }
            match member(self) {
                Ok(member) => members.push(member),
                Err(Abandoned) => {
                    broken = true;
                    self.recover(begin);
                }
            }
            if self.at == begin {
                self.bump();
            }
        }
        let ended = self.take('}');
        if !ended {
            self.not_closed(opening, word, name);
        }
        Ok((members, broken, ended))
    }

    fn not_closed(&mut self, opening: Span, what: &str, name: &Ident) {
        let message = format!("the `{{` of {what} `{}` is not closed", name.name);
        self.sink.error(opening, message);
    }

    /// Whether a construct begins here, at the start of a line, that such a block
    /// cannot contain: then the closing brace is missing.
    fn leave_block(&self, word: &str) -> bool {
        let starts = self.token().is_some_and(|token| token.first_on_line);
        let keywords: &[&str] = match word {
            "interface" | "annotation" => &["module"],
            _ => &["module", "typedef", "const"],
        };
        starts && keywords.iter().any(|word| self.at_keyword(word))
    }

    pub(super) fn member(&mut self) -> Parsed<Member> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let mut annotations = self.annotations();
        let ty = self.member_type()?;
        let star = self.span();
        if self.take('*') {
            let message = "`*` is not IDL, and is read as `@external`";
            let hint = "write `@external` before the type";
            self.sink.warning_hint(star, message, hint);
            annotations.push(plain_annotation("external", star));
        }
        let declarators = self.declarators("the name of a member")?;
        self.semicolon("the member")?;
        annotations.extend(self.trailing_annotations());
        Ok(Member {
            doc,
            annotations,
            ty,
            declarators,
        })
    }

    /// The type of a member. Before version 4, IDL allowed its declaration there.
    fn member_type(&mut self) -> Parsed<TypeSpec> {
        let word = match self.kind() {
            TokenKind::Keyword(word @ ("struct" | "union" | "enum")) => *word,
            _ => return self.type_spec(),
        };
        let begins = self.kind_at(2);
        if !(begins.is_punct('{') || begins.is_punct(':') || begins.is_keyword("switch")) {
            return self.type_spec();
        }
        let span = self.span();
        let constructed = self.nested(|parser| parser.constructed(word))?;
        match constructed {
            Some((kind, true)) if !self.at_punct(';') => {
                let message = "a type inside another is read as one that stands before it";
                let hint = "declare it before: IDL 4 has types in modules and interfaces only";
                self.sink.warning_hint(span, message, hint);
                Ok(declared(kind, span))
            }
            Some((_, true)) => self.expected("the name of a member"),
            _ => Err(Abandoned),
        }
    }

    /// An enum or a bitmask. The second value says whether the end was found, up
    /// to the `;`.
    fn names(
        &mut self,
        word: &str,
        kind: impl Fn(Enum) -> DefinitionKind,
    ) -> Parsed<(DefinitionKind, bool)> {
        self.bump();
        let name = self.declared_name(&format!("the name of {}", article(word)))?;
        let opening = self.span();
        self.expect('{')?;
        let item = match word {
            "bitmask" => "flag",
            _ => "literal",
        };
        let mut literals = Vec::new();
        let mut broken = false;
        loop {
            if self.at_punct('}') && !literals.is_empty() {
                self.sink
                    .warning(self.previous_span(), "a comma before `}` has no meaning");
                break;
            }
            let begin = self.at;
            match self.literal(item) {
                Ok(literal) if self.at_punct(',') || self.at_punct('}') => literals.push(literal),
                Ok(_) => {
                    let _: Parsed<()> = self.expected(&format!("`,` or `}}` after a {item}"));
                    broken = true;
                }
                Err(Abandoned) => broken = true,
            }
            if broken {
                self.recover(begin);
                break;
            }
            if !self.take(',') {
                break;
            }
        }
        let ended = self.take('}');
        if !ended && !broken {
            self.not_closed(opening, word, &name);
        }
        let names = Enum {
            name,
            literals,
            broken,
        };
        Ok((kind(names), ended))
    }

    /// A literal of an enum or a flag of a bitmask, as `item` says.
    fn literal(&mut self, item: &str) -> Parsed<Literal> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        let name = self.declared_name(&format!("the name of a {item}"))?;
        let mut value = None;
        if self.at_punct('=') {
            // The resolver refuses it on a flag.
            if item == "literal" {
                let message = "`=` after a literal is not IDL, and is read as `@value`";
                let hint = format!("write `@value(...) {}`", name.name);
                self.sink.warning_hint(self.span(), message, hint);
            }
            self.bump();
            value = Some(self.expression()?);
        }
        Ok(Literal {
            doc,
            annotations,
            name,
            value,
        })
    }

    fn typedef(&mut self) -> Parsed<DefinitionKind> {
        let begin = self.at;
        self.bump();
        if let Ok(typedef) = self.typedef_body() {
            return Ok(DefinitionKind::Typedef(typedef));
        }
        // The name is most likely the one before the `;`.
        self.recover(begin);
        let before = self.at.checked_sub(2).and_then(|at| self.tokens.get(at));
        match before {
            Some(Token {
                kind: TokenKind::Identifier(name),
                span,
                ..
            }) if self.previous_is(';') => {
                let ident = Ident {
                    name: name.clone(),
                    span: *span,
                };
                Ok(DefinitionKind::Refused(Some(ident)))
            }
            _ => Ok(DefinitionKind::Refused(None)),
        }
    }

    fn typedef_body(&mut self) -> Parsed<Typedef> {
        let span = self.span();
        let constructed = match self.kind() {
            TokenKind::Keyword(word) if *word != "exception" => self.constructed(word)?,
            _ => None,
        };
        let Some((kind, ended)) = constructed else {
            let ty = self.type_spec()?;
            return self.typedef_names(ty);
        };
        if !ended {
            return Err(Abandoned);
        }
        self.typedef_names(declared(kind, span))
    }

    fn typedef_names(&mut self, ty: TypeSpec) -> Parsed<Typedef> {
        let declarators = self.declarators("the name of a typedef")?;
        self.semicolon("the typedef")?;
        Ok(Typedef { ty, declarators })
    }

    fn constant(&mut self) -> Parsed<DefinitionKind> {
        let begin = self.at;
        self.bump();
        let ty = self.type_spec()?;
        let name = self.declared_name("the name of a constant")?;
        match self.constant_value() {
            Ok(value) => Ok(DefinitionKind::Const(Const { name, ty, value })),
            Err(Abandoned) => {
                // Its name is kept, so that its uses are not reported too.
                self.recover(begin);
                Ok(DefinitionKind::Refused(Some(name)))
            }
        }
    }

    fn constant_value(&mut self) -> Parsed<Expr> {
        self.expect('=')?;
        let value = self.expression()?;
        self.semicolon("the constant")?;
        Ok(value)
    }
}

/// A type that is declared where it is used.
fn declared(kind: DefinitionKind, span: Span) -> TypeSpec {
    let definition = Definition {
        doc: None,
        annotations: Vec::new(),
        kind,
    };
    TypeSpec {
        annotations: Vec::new(),
        kind: TypeKind::Declared(Box::new(definition)),
        span,
    }
}

fn article(word: &str) -> String {
    match word.chars().next() {
        Some('a' | 'e' | 'i' | 'o') => format!("an {word}"),
        _ => format!("a {word}"),
    }
}
