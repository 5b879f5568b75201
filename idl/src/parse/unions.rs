//! Unions and bitsets: IDL 4.2 §7.4.1.4.4.4.2, §7.4.13.4.3.

use super::{Parsed, Parser};
use crate::ast::{BitField, Bitset, Branch, DefinitionKind, ForwardKind, Union};

impl Parser<'_> {
    /// The second value says whether the end was found, up to the `;`.
    pub(super) fn union(&mut self) -> Parsed<(DefinitionKind, bool)> {
        self.bump();
        let name = self.declared_name("the name of a union")?;
        if self.at_punct(';') {
            return Ok((DefinitionKind::Forward(ForwardKind::Union, name), true));
        }
        if !self.take_keyword("switch") {
            return self.expected("`switch`");
        }
        self.expect('(')?;
        let discriminator = self.type_spec()?;
        self.expect(')')?;
        let (branches, broken, ended) = self.block("union", &name, Self::branch)?;
        let union = Union {
            name,
            discriminator,
            branches,
            broken,
        };
        Ok((DefinitionKind::Union(union), ended))
    }

    fn branch(&mut self) -> Parsed<Branch> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let before = self.annotations();
        let (mut labels, mut default) = (Vec::new(), None);
        loop {
            if self.at_keyword("default") {
                let span = self.span();
                self.bump();
                if default.replace(span).is_some() {
                    self.sink.error(span, "this branch is the default already");
                }
            } else if self.take_keyword("case") {
                labels.push(self.expression()?);
            } else {
                break;
            }
            self.expect(':')?;
        }
        if labels.is_empty() && default.is_none() {
            return self.expected("`case` or `default`");
        }
        let mut member = self.member()?;
        member.annotations.splice(0..0, before);
        member.doc = doc.or(member.doc);
        Ok(Branch {
            labels,
            default,
            member,
        })
    }

    /// The second value says whether the end was found, up to the `;`.
    pub(super) fn bitset(&mut self) -> Parsed<(DefinitionKind, bool)> {
        self.bump();
        let name = self.declared_name("the name of a bitset")?;
        let base = if self.take(':') {
            Some(self.scoped_name("a bitset")?)
        } else {
            None
        };
        let (fields, broken, ended) = self.block("bitset", &name, Self::bit_field)?;
        let bitset = Bitset {
            name,
            base,
            fields,
            broken,
        };
        Ok((DefinitionKind::Bitset(bitset), ended))
    }

    fn bit_field(&mut self) -> Parsed<BitField> {
        let doc = self.token().and_then(|token| token.doc.clone());
        let annotations = self.annotations();
        if !self.take_keyword("bitfield") {
            return self.expected("`bitfield`");
        }
        self.expect('<')?;
        let bits = self.template_bound()?;
        let ty = if self.take(',') {
            Some(self.type_spec()?)
        } else {
            None
        };
        self.expect('>')?;
        let mut names = Vec::new();
        while !self.at_punct(';') && !self.at_punct('}') {
            names.push(self.declared_name("the name of a bit field")?);
            if self.at_punct(',') {
                let message = "a comma between the names of bit fields is not IDL";
                let hint = "write white space, or a bitfield for each";
                self.sink.warning_hint(self.span(), message, hint);
                self.bump();
            }
        }
        self.semicolon("the bit field")?;
        Ok(BitField {
            doc,
            annotations,
            bits,
            ty,
            names,
        })
    }
}
