//! Constant expressions: IDL 4.2 §7.4.1.4.3.
//!
//! Integers are evaluated in 128 bits. Each part of an expression is checked against
//! 32 or 64 bits, and the result against the declared type, so that no overflow goes
//! unnoticed.

use super::Resolver;
use super::scopes::{ScopeId, Symbol};
use super::targets::{Target, describe, fitted, literal_value};
use super::{copies, fixed, real};
use crate::ast::{Expr, ExprKind, ScopedName};
use crate::model::{TypeId, TypeKind, Value};
use crate::source::Span;

impl Resolver<'_> {
    /// The value of an expression, checked against its type; `None` when a fault was
    /// reported.
    pub(super) fn evaluate(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        target: &Target,
    ) -> Option<Value> {
        let value = self.raw(scope, expr, target)?;
        self.fit(value, target, expr.span)
    }

    pub(super) fn evaluate_integer(
        &mut self,
        scope: ScopeId,
        expr: &Expr,
        target: &Target,
    ) -> Option<i128> {
        match self.evaluate(scope, expr, target)? {
            Value::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Evaluates without the check against the type. The parser bounds the recursion.
    fn raw(&mut self, scope: ScopeId, expr: &Expr, target: &Target) -> Option<Value> {
        let literal = match &expr.kind {
            ExprKind::Name(name) => return self.named_value(scope, name, target),
            ExprKind::Unary(operator, operand) => {
                let value = self.raw(scope, operand, target)?;
                return self.unary(*operator, value, target, expr.span);
            }
            ExprKind::Binary(operator, left, right) => {
                // Both sides are evaluated, to report the faults of both.
                let left = self.raw(scope, left, target);
                let right = self.raw(scope, right, target);
                return self.binary(*operator, left?, right?, target, expr.span);
            }
            ExprKind::Float(text) if matches!(target, Target::Fixed(_)) && is_decimal(text) => {
                let message = format!("`{text}` is read as a fixed-point number");
                self.sink
                    .warning_hint(expr.span, message, format!("write `{text}d`"));
                fixed::parse(text)
            }
            literal => literal_value(literal, target),
        };
        literal
            .map_err(|message| self.sink.error(expr.span, message))
            .ok()
    }

    fn named_value(&mut self, scope: ScopeId, name: &ScopedName, target: &Target) -> Option<Value> {
        // A literal of the expected enum needs no scope.
        if let Target::Enum { id, .. } | Target::Bitmask { id, .. } = target
            && name.rest.is_empty()
            && let Some(index) = self.literal(*id, &name.first.name)
        {
            return self.literal_of(*id, index);
        }
        let plain = name.rest.is_empty() && !name.absolute;
        if plain && self.scopes.visible(scope, &name.first.name).is_none() {
            for (word, value) in [("TRUE", true), ("FALSE", false)] {
                if name.first.name.eq_ignore_ascii_case(word) {
                    let message = format!("`{name}` is read as `{word}`");
                    self.sink
                        .warning_hint(name.span, message, format!("write `{word}`"));
                    return Some(Value::Boolean(value));
                }
            }
        }
        let what = match self.lookup(scope, name, "constant")? {
            Symbol::Const(id) => {
                let value = &self.constants.get(id.0)?.value;
                let bytes = copies::of_value(value);
                if !self.may_copy(bytes, name.span) {
                    return None;
                }
                return self.constants.get(id.0).map(|decl| decl.value.clone());
            }
            Symbol::Literal(id, index) => return self.literal_of(id, index),
            Symbol::Literals => {
                if let Target::Enum { id, .. } = target
                    && let Some(part) = name.parts().last()
                    && let Some(index) = self.literal(*id, &part.name)
                {
                    return self.literal_of(*id, index);
                }
                let message = format!("several enums have a literal `{name}`");
                let hint = "write it with the name of its enum in front, as in `Enum::LITERAL`";
                self.sink.error_hint(name.span, message, hint);
                return None;
            }
            Symbol::Refused => return None,
            other => other.describe(),
        };
        self.sink.error(
            name.span,
            format!("expected a constant, but `{name}` is {what}"),
        );
        None
    }

    /// The value of a literal of an enum or a flag of a bitmask.
    fn literal_of(&self, id: TypeId, index: usize) -> Option<Value> {
        match &self.types.get(id.0)?.kind {
            TypeKind::Bitmask(mask) => {
                let position = mask.flags.get(index)?.position;
                Some(Value::Integer(1 << position))
            }
            _ => Some(Value::Enum(id, index)),
        }
    }

    fn unary(
        &mut self,
        operator: char,
        value: Value,
        target: &Target,
        span: Span,
    ) -> Option<Value> {
        match (operator, value) {
            (
                '+',
                value @ (Value::Integer(_)
                | Value::Float(_)
                | Value::Float128(_)
                | Value::Fixed { .. }),
            ) => Some(value),
            ('-', Value::Integer(value)) => Some(Value::Integer(value.checked_neg()?)),
            ('-', Value::Float(value)) => Some(Value::Float(-value)),
            ('-', Value::Float128(bits)) => Some(Value::Float128(real::negated(bits))),
            ('-', Value::Fixed { unscaled, scale }) => Some(Value::Fixed {
                unscaled: -unscaled,
                scale,
            }),
            ('~', Value::Integer(value)) => Some(Value::Integer(match target {
                // §7.4.1.4.3: the complement in the bits of an unsigned type.
                Target::Integer {
                    bits,
                    signed: false,
                    ..
                } => {
                    let (_, all_ones) = Target::range(*bits, false);
                    if value >= 0 { value ^ all_ones } else { !value }
                }
                Target::Bitmask { bits, .. } => {
                    let (_, all_ones) = Target::range(u32::from(*bits), false);
                    if value >= 0 { value ^ all_ones } else { !value }
                }
                _ => !value,
            })),
            (_, value) => {
                let wants = if operator == '~' {
                    "an integer"
                } else {
                    "a number"
                };
                let message = format!("`{operator}` expects {wants}, not {}", describe(&value));
                self.sink.error(span, message);
                None
            }
        }
    }

    fn binary(
        &mut self,
        operator: char,
        left: Value,
        right: Value,
        target: &Target,
        span: Span,
    ) -> Option<Value> {
        let outcome = match (left, right) {
            (Value::Integer(_), Value::Integer(_))
                if operator == '/' && matches!(target, Target::Float(_)) =>
            {
                let hint = "write one of the numbers with a `.`, as in `1.0`";
                let message = "division of integers in a floating-point expression";
                self.sink.error_hint(span, message, hint);
                return None;
            }
            (Value::Integer(left), Value::Integer(right)) => {
                let value = integers(operator, left, right);
                value.and_then(|value| within(value, target).map(Value::Integer))
            }
            (Value::Float(left), Value::Float(right)) => reals(operator, left, right),
            (Value::Integer(left), Value::Float(right)) => reals(operator, left as f64, right),
            (Value::Float(left), Value::Integer(right)) => reals(operator, left, right as f64),
            (Value::Float128(left), right) if wide(&right).is_some() => {
                wide_reals(operator, left, wide(&right).unwrap_or(0))
            }
            (left, Value::Float128(right)) if wide(&left).is_some() => {
                wide_reals(operator, wide(&left).unwrap_or(0), right)
            }
            (left @ Value::Fixed { .. }, right) if fixed::of(&right).is_some() => {
                fixed::apply(operator, &left, &right)
            }
            (left, right @ Value::Fixed { .. }) if fixed::of(&left).is_some() => {
                fixed::apply(operator, &left, &right)
            }
            (
                Value::Integer(_) | Value::Float(_) | Value::Float128(_) | Value::Fixed { .. },
                other,
            )
            | (other, _) => {
                let shown = match operator {
                    '<' => "<<".into(),
                    '>' => ">>".into(),
                    other => String::from(other),
                };
                Err(format!(
                    "`{shown}` expects numbers, not {}",
                    describe(&other)
                ))
            }
        };
        outcome
            .map_err(|message| self.sink.error(span, message))
            .ok()
    }

    /// Checks a value against the type it is for.
    pub(super) fn fit(&mut self, value: Value, target: &Target, span: Span) -> Option<Value> {
        // Not valid IDL, but found in existing files.
        if let (Value::Integer(code), Target::Char) = (&value, target)
            && let Ok(byte) = u8::try_from(*code)
        {
            let message = format!("{code} is read as the character of this code");
            self.sink
                .warning_hint(span, message, format!("write `'\\x{byte:02x}'`"));
            return Some(Value::Char(byte));
        }
        if let (Value::Integer(code), Target::WChar) = (&value, target)
            && let Ok(unit) = u16::try_from(*code)
        {
            let message = format!("{code} is read as the character of this code");
            let hint = format!("write `L'\\u{unit:04x}'`");
            self.sink.warning_hint(span, message, hint);
            return Some(Value::WChar(unit));
        }
        if let (Value::Fixed { .. }, Target::Float(_)) = (&value, target) {
            let text = fixed::shown(&value);
            let message = format!("`{text}d` is read as a floating-point number");
            self.sink
                .warning_hint(span, message, "write it without the `d`");
            let literal = ExprKind::Float(text.into());
            let value = literal_value(&literal, target);
            return value
                .and_then(|value| fitted(value, target))
                .map_err(|message| self.sink.error(span, message))
                .ok();
        }
        if let (Value::Enum(id, index), Target::Integer { .. }) = (&value, target)
            && let Some(TypeKind::Enum(of)) = self.types.get(id.0).map(|decl| &decl.kind)
            && let Some(literal) = of.literals.get(*index)
        {
            let number = i128::from(literal.value);
            let message = format!("`{}` is read as its value, {number}", literal.name);
            self.sink.warning_hint(span, message, "write the number");
            return self.fit(Value::Integer(number), target, span);
        }
        fitted(value, target)
            .map_err(|message| self.sink.error(span, message))
            .ok()
    }
}

/// Whether a floating-point literal is digits and a point, without an exponent.
fn is_decimal(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// A number as a `long double`.
pub(super) fn wide(value: &Value) -> Option<u128> {
    match value {
        Value::Integer(value) => Some(real::of_integer(*value)),
        Value::Float(value) => Some(real::of_double(*value)),
        Value::Float128(bits) => Some(*bits),
        _ => None,
    }
}

fn wide_reals(operator: char, left: u128, right: u128) -> Result<Value, String> {
    if operator == '/' && real::is_zero(right) {
        return Err("division by zero".into());
    }
    match real::apply(operator, left, right) {
        Some(bits) => Ok(Value::Float128(bits)),
        None => Err(wants_integers(operator)),
    }
}

fn wants_integers(operator: char) -> String {
    match operator {
        '<' => "`<<` expects integers".into(),
        '>' => "`>>` expects integers".into(),
        _ => format!("`{operator}` expects integers"),
    }
}

/// §7.4.1.4.3: the parts of an integer expression have 32 bits, or 64 where the
/// declared type has more than 32.
fn within(value: i128, target: &Target) -> Result<i128, String> {
    let bits = match target {
        Target::Integer { bits: 0..=32, .. } | Target::Char | Target::WChar => 32,
        Target::Bitmask { bits: 0..=32, .. } => 32,
        _ => 64,
    };
    let (least, _) = Target::range(bits, true);
    let (_, greatest) = Target::range(bits, false);
    if value < least || value > greatest {
        let hint = if bits == 32 {
            " for a type of 32 bits"
        } else {
            ""
        };
        return Err(format!(
            "{value} in the middle of an expression{hint} is out of range, {least} to {greatest}"
        ));
    }
    Ok(value)
}

fn integers(operator: char, left: i128, right: i128) -> Result<i128, String> {
    let shift = || u32::try_from(right).ok().filter(|count| *count < 64);
    let value = match operator {
        '|' => Some(left | right),
        '^' => Some(left ^ right),
        '&' => Some(left & right),
        '<' | '>' => {
            let count =
                shift().ok_or_else(|| format!("shift by {right}: only 0 to 63 makes sense"))?;
            if operator == '>' {
                Some(left >> count)
            } else {
                left.checked_mul(1 << count)
            }
        }
        '+' => left.checked_add(right),
        '-' => left.checked_sub(right),
        '*' => left.checked_mul(right),
        _ if right == 0 => return Err("division by zero".into()),
        '/' => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    value.ok_or_else(|| "the value does not fit in any integer type".into())
}

fn reals(operator: char, left: f64, right: f64) -> Result<Value, String> {
    let value = match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' if right == 0.0 => return Err("division by zero".into()),
        '/' => left / right,
        _ => return Err(wants_integers(operator)),
    };
    Ok(Value::Float(value))
}
