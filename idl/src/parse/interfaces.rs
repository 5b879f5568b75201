//! Interfaces: IDL 4.2 §7.4.3.

use super::{Parsed, Parser};
use crate::ast::{
    Attribute, Definition, DefinitionKind, Export, ForwardKind, Ident, Interface, Operation,
    Parameter, ScopedName,
};
use crate::model::Direction;

impl Parser<'_> {
    /// `interface` or `local interface`.
    pub(super) fn at_interface(&self) -> bool {
        let local = self.at_keyword("local") && self.kind_at(1).is_keyword("interface");
        local || self.at_keyword("interface")
    }

    pub(super) fn interface(&mut self) -> Parsed<DefinitionKind> {
        let local = self.take_keyword("local");
        self.bump();
        let name = self.declared_name("the name of an interface")?;
        if self.take(';') {
            let kind = ForwardKind::Interface { local };
            return Ok(DefinitionKind::Forward(kind, name));
        }
        let mut bases = Vec::new();
        if self.take(':') {
            bases.push(self.scoped_name("an interface")?);
            while self.take(',') {
                bases.push(self.scoped_name("an interface")?);
            }
        }
        let (exports, _, ended) = self.block("interface", &name, Self::export)?;
        if ended {
            self.semicolon("the interface")?;
        }
        Ok(DefinitionKind::Interface(Interface {
            name,
            local,
            bases,
            exports,
        }))
    }

    fn export(&mut self) -> Parsed<Export> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        if let Some(kind) = self.inner_definition()? {
            return Ok(Export::Definition(Definition {
                doc,
                annotations,
                kind,
            }));
        }
        let readonly = self.take_keyword("readonly");
        if readonly || self.at_keyword("attribute") {
            if !self.take_keyword("attribute") {
                return self.expected("`attribute`");
            }
            return self.attribute(readonly).map(|attribute| {
                Export::Attribute(Attribute {
                    doc,
                    annotations,
                    ..attribute
                })
            });
        }
        self.operation().map(|operation| {
            Export::Operation(Operation {
                doc,
                annotations,
                ..operation
            })
        })
    }

    fn attribute(&mut self, readonly: bool) -> Parsed<Attribute> {
        let ty = self.type_spec()?;
        let mut names = vec![self.declared_name("the name of an attribute")?];
        while self.take(',') {
            names.push(self.declared_name("the name of an attribute")?);
        }
        let (mut get_raises, mut set_raises) = (Vec::new(), Vec::new());
        if readonly && self.at_keyword("raises") {
            get_raises = self.raises("raises")?;
        } else if !readonly {
            get_raises = self.raises("getraises")?;
            set_raises = self.raises("setraises")?;
        }
        self.semicolon("the attribute")?;
        Ok(Attribute {
            doc: None,
            annotations: Vec::new(),
            readonly,
            ty,
            names,
            get_raises,
            set_raises,
        })
    }

    fn operation(&mut self) -> Parsed<Operation> {
        let oneway = Some(self.span()).filter(|_| self.take_keyword("oneway"));
        let returns = if self.take_keyword("void") {
            None
        } else {
            Some(self.type_spec()?)
        };
        let name = self.declared_name("the name of an operation")?;
        self.expect('(')?;
        let mut parameters = Vec::new();
        while !self.take(')') {
            if !parameters.is_empty() {
                self.expect(',')?;
            }
            parameters.push(self.parameter()?);
        }
        let raises = self.raises("raises")?;
        if self.at_keyword("context") {
            self.sink.refuse(
                self.span(),
                "`context` of an operation",
                "CORBA-Specific - Interfaces",
            );
            self.bump();
            self.skip_group();
        }
        self.semicolon("the operation")?;
        Ok(Operation {
            doc: None,
            annotations: Vec::new(),
            oneway,
            returns,
            name,
            parameters,
            raises,
        })
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let annotations = self.annotations();
        let direction = if self.take_keyword("in") {
            Direction::In
        } else if self.take_keyword("out") {
            Direction::Out
        } else if self.take_keyword("inout") {
            Direction::InOut
        } else if self.begins_type() {
            let message = "a parameter without `in`, `out` or `inout` is read as an `in`";
            self.sink
                .warning_hint(self.span(), message, "write `in` before its type");
            Direction::In
        } else {
            return self.expected("`in`, `out` or `inout`");
        };
        let ty = self.type_spec()?;
        let name: Ident = self.declared_name("the name of a parameter")?;
        Ok(Parameter {
            annotations,
            direction,
            ty,
            name,
        })
    }

    /// The exceptions of `raises (A, B)`, after this keyword; none if the keyword is absent.
    fn raises(&mut self, keyword: &str) -> Parsed<Vec<ScopedName>> {
        if !self.take_keyword(keyword) {
            return Ok(Vec::new());
        }
        self.expect('(')?;
        let mut all = vec![self.scoped_name("an exception")?];
        while self.take(',') {
            all.push(self.scoped_name("an exception")?);
        }
        self.expect(')')?;
        Ok(all)
    }
}
