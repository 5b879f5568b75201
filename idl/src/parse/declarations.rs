//! Modules, structs, enums, typedefs and constants.

use super::{Abandoned, END, Parsed, Parser};
use crate::ast::{
    Const, Definition, DefinitionKind, Enum, Expr, Ident, Literal, Member, Module, Struct,
    TypeKind, TypeSpec, Typedef,
};
use crate::lex::{Token, TokenKind};
use crate::source::Span;

impl Parser<'_> {
    /// Definitions up to a closing brace or the end.
    pub(super) fn definitions(&mut self) -> Vec<Definition> {
        let mut all = Vec::new();
        while self.kind() != END && !self.at_punct('}') {
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
        all
    }

    fn definition(&mut self) -> Parsed<Option<Definition>> {
        if self.at_punct(';') {
            self.sink.warning(self.span(), "a `;` alone has no meaning");
            self.bump();
            return Ok(None);
        }
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        let kind = match self.kind() {
            TokenKind::Keyword("module") => self.module()?,
            TokenKind::Keyword("struct") => self.structure().and_then(|kind| self.end(kind))?,
            TokenKind::Keyword("enum") => self.enumeration().and_then(|kind| self.end(kind))?,
            TokenKind::Keyword("typedef") => self.typedef()?,
            TokenKind::Keyword("const") => self.constant()?,
            _ => match self.refused_definition() {
                Some(name) => DefinitionKind::Refused(name),
                None => return self.expected("a declaration"),
            },
        };
        Ok(Some(Definition {
            doc,
            annotations,
            kind,
        }))
    }

    /// The `;` behind a struct or enum. One whose end was not found has none.
    fn end(&mut self, (kind, ended): (DefinitionKind, bool)) -> Parsed<DefinitionKind> {
        if ended {
            let what = if matches!(kind, DefinitionKind::Enum(_)) {
                "the enum"
            } else {
                "the struct"
            };
            self.semicolon(what)?;
        }
        Ok(kind)
    }

    fn module(&mut self) -> Parsed<DefinitionKind> {
        let keyword = self.span();
        self.bump();
        let name = self.declared_name("the name of a module")?;
        if self.at_punct('<') {
            self.sink.refuse(keyword.to(name.span), "a template module");
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
    fn structure(&mut self) -> Parsed<(DefinitionKind, bool)> {
        let keyword = self.span();
        self.bump();
        let name = self.declared_name("the name of a struct")?;
        if self.at_punct(';') {
            self.refuse_forward(keyword.to(name.span), "struct");
            return Ok((DefinitionKind::Refused(Some(name)), true));
        }
        let base = if self.take(':') {
            Some(self.scoped_name("a struct")?)
        } else {
            None
        };
        let opening = self.span();
        self.expect('{')?;
        let (mut members, mut broken) = (Vec::new(), false);
        while self.kind() != END && !self.at_punct('}') && !self.leave_block() {
            let begin = self.at;
            match self.member() {
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
        let ended = self.at_punct('}');
        if ended {
            self.bump();
        } else {
            self.not_closed(opening, "struct", &name);
        }
        Ok((
            DefinitionKind::Struct(Struct {
                name,
                base,
                members,
                broken,
            }),
            ended,
        ))
    }

    fn not_closed(&mut self, opening: Span, what: &str, name: &Ident) {
        let message = format!("the `{{` of {what} `{}` is not closed", name.name);
        self.sink.error(opening, message);
    }

    /// Whether something begins here, at the start of a line, that cannot stand
    /// in a struct: then the closing brace is missing.
    fn leave_block(&self) -> bool {
        let starts = self.token().is_some_and(|token| token.first_on_line);
        let keywords = ["module", "typedef", "const"];
        starts && keywords.iter().any(|word| self.at_keyword(word))
    }

    fn member(&mut self) -> Parsed<Member> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        let ty = self.type_spec()?;
        let declarators = self.declarators("the name of a member")?;
        self.semicolon("the member")?;
        Ok(Member {
            doc,
            annotations,
            ty,
            declarators,
        })
    }

    /// The second value says whether the end was found, up to the `;`.
    fn enumeration(&mut self) -> Parsed<(DefinitionKind, bool)> {
        self.bump();
        let name = self.declared_name("the name of an enum")?;
        let opening = self.span();
        self.expect('{')?;
        let mut literals = Vec::new();
        let mut broken = false;
        loop {
            if self.at_punct('}') && !literals.is_empty() {
                self.sink
                    .warning(self.previous_span(), "a comma before `}` has no meaning");
                break;
            }
            let begin = self.at;
            match self.literal() {
                Ok(literal) if self.at_punct(',') || self.at_punct('}') => literals.push(literal),
                Ok(_) => {
                    let _: Parsed<()> = self.expected("`,` or `}` after a literal");
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
            self.not_closed(opening, "enum", &name);
        }
        Ok((
            DefinitionKind::Enum(Enum {
                name,
                literals,
                broken,
            }),
            ended,
        ))
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        let name = self.declared_name("the name of a literal")?;
        if self.at_punct('=') {
            let message = "a literal cannot be given a value by `=`";
            let hint = format!("write `@value(...) {}`", name.name);
            self.sink.error_hint(self.span(), message, hint);
            self.bump();
            self.expression()?;
        }
        Ok(Literal {
            doc,
            annotations,
            name,
        })
    }

    fn typedef(&mut self) -> Parsed<DefinitionKind> {
        let begin = self.at;
        self.bump();
        if let Ok(typedef) = self.typedef_body() {
            return Ok(DefinitionKind::Typedef(typedef));
        }
        // The name most likely stands before the `;`.
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
        let kind = match self.kind() {
            TokenKind::Keyword(word @ ("struct" | "enum")) => {
                let declared = if *word == "struct" {
                    self.structure()
                } else {
                    self.enumeration()
                };
                let (kind, ended) = declared?;
                if !ended {
                    return Err(Abandoned);
                }
                let definition = Definition {
                    doc: None,
                    annotations: Vec::new(),
                    kind,
                };
                TypeKind::Declared(Box::new(definition))
            }
            TokenKind::Keyword(word @ ("union" | "bitset" | "bitmask")) => {
                self.sink.refuse(span, &format!("`{word}`"));
                self.skip_to_declarators();
                TypeKind::Refused
            }
            _ => {
                let ty = self.type_spec()?;
                return self.typedef_names(ty);
            }
        };
        self.typedef_names(TypeSpec {
            annotations: Vec::new(),
            kind,
            span,
        })
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
                // Its name is known, so that its uses are not reported too.
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
