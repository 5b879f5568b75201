//! Enumerations: IDL 4.2 §7.4.1.4.4.4.3, XTypes 1.3 §7.3.1.2.1.5.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use super::annotations::Applied;
use super::scopes::{ScopeId, Symbol};
use super::standard::AnnotationTarget;
use super::targets::Target;
use super::types::Facts;
use crate::ast;
use crate::model::{Enum, EnumLiteral, Primitive, TypeId, TypeKind};

impl Resolver<'_> {
    pub(super) fn enumeration(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        enumeration: &ast::Enum,
    ) -> Option<TypeId> {
        let applied = self.annotate(scope, AnnotationTarget::Enum, &definition.annotations);
        self.check_nested(scope, &applied);
        let errors = self.sink.error_count();
        let extensibility = self.extensibility_of_values(&applied, "an enum");
        let ignore_literal_names = self.is_flagged(scope, &applied, "ignore_literal_names");
        if let Some(annotation) = applied.get("ignore_literal_names")
            && ignore_literal_names
        {
            let message = "`@ignore_literal_names` is not told to others";
            let hint = "the TypeObject of an enum has no place for it: XTypes 1.3 Annex B";
            self.sink.warning_hint(annotation.span, message, hint);
        }
        let bit_bound = self.bit_bound(scope, &applied, 32);
        let (literals, default_literal) = self.literals(scope, enumeration, bit_bound);
        let doc = applied.doc(&definition.doc);
        if enumeration.broken || self.sink.error_count() > errors {
            self.poison(scope, &enumeration.name);
            for literal in &enumeration.literals {
                self.poison(scope, &literal.name);
            }
            return None;
        }
        let kind = TypeKind::Enum(Enum {
            bit_bound,
            extensibility,
            ignore_literal_names,
            literals,
            default_literal,
        });
        let facts = Facts::of_bytes(4);
        let id = self.add_type(scope, &enumeration.name, doc, applied, kind, facts)?;
        let names = enumeration
            .literals
            .iter()
            .map(|literal| literal.name.name.to_string());
        self.literals.insert(id, names.zip(0..).collect());
        for (index, literal) in enumeration.literals.iter().enumerate() {
            self.declare_literal(scope, &literal.name, Symbol::Literal(id, index));
        }
        Some(id)
    }

    /// §7.5: the literals are names in the scope of the enum. Some files repeat a literal in
    /// several enums: it is found where a value of its enum is expected, and with the
    /// name of the enum in front.
    fn declare_literal(&mut self, scope: ScopeId, name: &ast::Ident, symbol: Symbol) {
        let other = self.scopes.local(scope, &name.name).filter(|entry| {
            let literal = matches!(entry.symbol, Symbol::Literal(..) | Symbol::Literals);
            literal && *entry.spelling == *name.name && entry.span != name.span
        });
        let Some(span) = other.map(|entry| entry.span) else {
            self.declare(scope, name, symbol);
            return;
        };
        let message = format!("`{}` is a literal of another enum here too", name.name);
        let place = self.place(span);
        let hint = format!("the other one stands in {place}; other IDL compilers refuse that");
        self.sink.warning_hint(name.span, message, hint);
        self.scopes.replace(scope, name, Symbol::Literals);
    }

    /// `@bit_bound`, by default 32, at most `most`.
    pub(super) fn bit_bound(&mut self, scope: ScopeId, applied: &Applied<'_>, most: u8) -> u8 {
        let Some(annotation) = applied.get("bit_bound") else {
            return 32;
        };
        let Some(expr) = self.required(annotation) else {
            return 32;
        };
        let target = Target::of_primitive(Primitive::UInt16);
        let Some(value) = self.evaluate_integer(scope, expr, &target) else {
            return 32;
        };
        match u8::try_from(value) {
            Ok(bits) if (1..=most).contains(&bits) => bits,
            _ => {
                let what = if most == 32 { "an enum" } else { "a bitmask" };
                let message = format!("`@bit_bound` of {what} is 1 to {most}");
                self.sink.error(expr.span, message);
                32
            }
        }
    }

    fn literals(
        &mut self,
        scope: ScopeId,
        enumeration: &ast::Enum,
        bit_bound: u8,
    ) -> (Vec<EnumLiteral>, usize) {
        let mut literals: Vec<EnumLiteral> = Vec::new();
        let mut names = HashSet::new();
        let mut values = HashMap::new();
        let mut default = None;
        let mut next = 0_i128;
        for literal in &enumeration.literals {
            let applied = self.annotate(scope, AnnotationTarget::Literal, &literal.annotations);
            let name = &literal.name;
            if !names.insert(name.name.to_ascii_lowercase()) {
                let message = format!("literal `{}` occurs twice in this enum", name.name);
                self.sink.error(name.span, message);
            }
            let value = self.literal_value(scope, &applied, literal, next);
            let value = self.checked_value(name, value, bit_bound);
            next = i128::from(value) + 1;
            if let Some(other) = values.insert(value, &name.name) {
                let message = format!("`{}` has the same value as `{other}`: {value}", name.name);
                self.sink.error(name.span, message);
            }
            if let Some(annotation) = applied.get("default_literal")
                && default.replace(literals.len()).is_some()
            {
                self.sink
                    .error(annotation.span, "only one literal can be the default");
            }
            let doc = applied.doc(&literal.doc);
            literals.push(EnumLiteral {
                name: name.name.to_string(),
                doc,
                custom: applied.custom,
                value,
            });
        }
        (literals, default.unwrap_or(0))
    }

    fn literal_value(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
        literal: &ast::Literal,
        next: i128,
    ) -> i128 {
        let annotation = applied.get("value");
        let expr = match (annotation, &literal.value) {
            (Some(annotation), Some(_)) => {
                self.sink
                    .error(annotation.span, "`@value` contradicts the `=`");
                None
            }
            (Some(annotation), None) => self.required(annotation),
            (None, value) => value.as_ref(),
        };
        let target = Target::of_primitive(Primitive::Int32);
        let value = expr.and_then(|expr| self.evaluate_integer(scope, expr, &target));
        value.unwrap_or(next)
    }

    /// A value must fit in the bits, and in the signed integer that holds them.
    fn checked_value(&mut self, name: &ast::Ident, value: i128, bit_bound: u8) -> i32 {
        let holder_bits: u8 = match bit_bound {
            1..=8 => 8,
            9..=16 => 16,
            _ => 32,
        };
        let least = -(1_i128 << (bit_bound - 1));
        let greatest = ((1_i128 << bit_bound) - 1).min((1_i128 << (holder_bits - 1)) - 1);
        match i32::try_from(value) {
            Ok(fits) if (least..=greatest).contains(&value) => fits,
            _ => {
                let message = format!(
                    "the value {value} of `{}` does not fit in {bit_bound} bits, {least} to {greatest}",
                    name.name
                );
                self.sink.error(name.span, message);
                0
            }
        }
    }
}
