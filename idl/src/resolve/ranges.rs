//! `@range`, `@min` and `@max`: IDL 4.2 §8.3.2.

use std::cmp::Ordering;

use super::annotations::{Applied, argument};
use super::scopes::ScopeId;
use super::targets::Target;
use super::{Resolver, fixed, real};
use crate::ast;
use crate::model::{Range, Type, TypeKind, Value};
use crate::source::Span;

impl Resolver<'_> {
    /// The range of a member or typedef of this type: from its own annotations, and else
    /// from the typedefs in its type.
    pub(super) fn member_range(
        &mut self,
        scope: ScopeId,
        applied: &Applied<'_>,
        ty: &Type,
    ) -> Range {
        let given = ["range", "min", "max"].map(|name| applied.get(name));
        let [range, min, max] = given;
        let mut own = Range::default();
        if let Some(first) = range.or(min).or(max) {
            let target = self.target(ty).filter(|target| {
                matches!(
                    target,
                    Target::Integer { .. } | Target::Float(_) | Target::Fixed(_)
                )
            });
            let Some(target) = target else {
                let message = format!("`@{}` is for numbers", first.name);
                self.sink.error(first.span, message);
                return own;
            };
            if let Some(range) = range {
                if let Some(single) = min.or(max) {
                    let message = format!("`@{}` contradicts `@range`", single.name);
                    self.sink.error(single.span, message);
                }
                own = self.both_bounds(scope, range, &target);
            } else {
                own.min = min.and_then(|min| self.bound_value(scope, min, &target));
                own.max = max.and_then(|max| self.bound_value(scope, max, &target));
            }
            self.check_order(first.span, &own);
        }
        let behind = match ty {
            Type::Named(id) => match self.types.get(id.0).map(|decl| &decl.kind) {
                Some(TypeKind::Alias(alias)) => alias.range.clone(),
                _ => Range::default(),
            },
            _ => Range::default(),
        };
        Range {
            min: own.min.or(behind.min),
            max: own.max.or(behind.max),
        }
    }

    fn both_bounds(
        &mut self,
        scope: ScopeId,
        annotation: &ast::Annotation,
        target: &Target,
    ) -> Range {
        let [min, max] = ["min", "max"].map(|name| argument(annotation, name));
        if matches!(annotation.arguments, ast::Arguments::Positional(_)) {
            return Range::default();
        }
        let (Some(min), Some(max)) = (min, max) else {
            let hint = "write `@range(min = ..., max = ...)`, or `@min` or `@max` alone";
            let message = "`@range` requires a `min` and a `max`";
            self.sink.error_hint(annotation.span, message, hint);
            return Range::default();
        };
        Range {
            min: self.evaluate(scope, min, target),
            max: self.evaluate(scope, max, target),
        }
    }

    fn bound_value(
        &mut self,
        scope: ScopeId,
        annotation: &ast::Annotation,
        target: &Target,
    ) -> Option<Value> {
        let expr = self.required(annotation)?;
        self.evaluate(scope, expr, target)
    }

    fn check_order(&mut self, span: Span, range: &Range) {
        if let (Some(min), Some(max)) = (&range.min, &range.max)
            && compare(min, max) == Some(Ordering::Greater)
        {
            self.sink
                .error(span, "the least value is above the greatest");
        }
    }

    /// A default must be in the range; either of them may come from a typedef.
    pub(super) fn check_default(
        &mut self,
        applied: &Applied<'_>,
        default: Option<&Value>,
        range: &Range,
    ) {
        let mut annotations = ["default", "range", "min", "max"].into_iter();
        let own = annotations.find_map(|name| applied.get(name));
        let (Some(annotation), Some(default)) = (own, default) else {
            return;
        };
        let below = |min: &Value| compare(default, min) == Some(Ordering::Less);
        let above = |max: &Value| compare(default, max) == Some(Ordering::Greater);
        if range.min.as_ref().is_some_and(below) || range.max.as_ref().is_some_and(above) {
            let message = "the default is out of the range";
            self.sink.error(annotation.span, message);
        }
    }
}

/// Compares two numbers of one type.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Float128(left), Value::Float128(right)) => Some(
            match (real::at_most(*left, *right), real::at_most(*right, *left)) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            },
        ),
        (Value::Fixed { .. }, Value::Fixed { .. }) => match fixed::apply('-', left, right) {
            Ok(Value::Fixed { unscaled, .. }) => Some(unscaled.cmp(&0)),
            _ => None,
        },
        _ => None,
    }
}
