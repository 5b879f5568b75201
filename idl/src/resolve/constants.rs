//! Constant expressions: IDL 4.2 §7.4.1.4.3.
//!
//! Integers are evaluated in 128 bits, each part of an expression is checked
//! against 32 or 64 bits, and the whole against the declared type: so nothing wraps
//! unseen.

use super::Resolver;
use super::scopes::{ScopeId, Symbol};
use super::{fixed, real};
use crate::ast::{Expr, ExprKind, ScopedName};
use crate::model::{Primitive, TypeId, TypeKind, Value};
use crate::source::Span;

/// The type that a value is wanted for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Integer {
        name: &'static str,
        bits: u32,
        signed: bool,
    },
    Float(Precision),
    /// With digits and scale, unless it takes those of the value.
    Fixed(Option<(u8, u8)>),
    Boolean,
    Char,
    WChar,
    String {
        bound: Option<u32>,
    },
    WString {
        bound: Option<u32>,
    },
    Enum {
        id: TypeId,
        name: String,
    },
    Bitmask {
        id: TypeId,
        name: String,
        bits: u8,
    },
    /// Whatever it is.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Single,
    Double,
    Quadruple,
}

impl Target {
    pub(super) fn of_primitive(primitive: Primitive) -> Self {
        let integer = |name, bits, signed| Self::Integer { name, bits, signed };
        match primitive {
            Primitive::Boolean => Self::Boolean,
            Primitive::Octet => integer("octet", 8, false),
            Primitive::Char => Self::Char,
            Primitive::WChar => Self::WChar,
            Primitive::Int8 => integer("int8", 8, true),
            Primitive::UInt8 => integer("uint8", 8, false),
            Primitive::Int16 => integer("short", 16, true),
            Primitive::UInt16 => integer("unsigned short", 16, false),
            Primitive::Int32 => integer("long", 32, true),
            Primitive::UInt32 => integer("unsigned long", 32, false),
            Primitive::Int64 => integer("long long", 64, true),
            Primitive::UInt64 => integer("unsigned long long", 64, false),
            Primitive::Float32 => Self::Float(Precision::Single),
            Primitive::Float64 => Self::Float(Precision::Double),
            Primitive::Float128 => Self::Float(Precision::Quadruple),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Integer { .. } => "an integer".into(),
            Self::Float(_) => "a number".into(),
            Self::Fixed(_) => "a fixed-point number".into(),
            Self::Boolean => "TRUE or FALSE".into(),
            Self::Char | Self::WChar => "a character".into(),
            Self::String { .. } => "a string".into(),
            Self::WString { .. } => "a wide string".into(),
            Self::Enum { name, .. } => format!("a literal of `{name}`"),
            Self::Bitmask { name, .. } => format!("flags of `{name}`"),
            Self::Any => "a value".into(),
        }
    }

    /// Least and greatest value of an integer type.
    pub(super) fn range(bits: u32, signed: bool) -> (i128, i128) {
        if signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }
}

pub(super) fn describe(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "an integer",
        Value::Float(_) | Value::Float128(_) => "a floating-point number",
        Value::Boolean(_) => "a boolean",
        Value::Fixed { .. } => "a fixed-point number",
        Value::Char(_) => "a character",
        Value::WChar(_) => "a wide character",
        Value::String(_) => "a string",
        Value::Enum(..) => "a literal of an enum",
    }
}

impl Resolver<'_> {
    /// The value of an expression, checked against the type it is for; `None`
    /// when it was reported.
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

    /// Evaluates without the last check. As deep as the parser lets trees be.
    fn raw(&mut self, scope: ScopeId, expr: &Expr, target: &Target) -> Option<Value> {
        let literal = match &expr.kind {
            ExprKind::Name(name) => return self.named_value(scope, name, target),
            ExprKind::Unary(operator, operand) => {
                let value = self.raw(scope, operand, target)?;
                return self.unary(*operator, value, target, expr.span);
            }
            ExprKind::Binary(operator, left, right) => {
                // Both sides are looked at, to report what is wrong in either.
                let left = self.raw(scope, left, target);
                let right = self.raw(scope, right, target);
                return self.binary(*operator, left?, right?, target, expr.span);
            }
            literal => literal_value(literal, target),
        };
        literal
            .map_err(|message| self.sink.error(expr.span, message))
            .ok()
    }

    fn named_value(&mut self, scope: ScopeId, name: &ScopedName, target: &Target) -> Option<Value> {
        // A literal of the wanted enum needs no scope in front.
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
                    let message = format!("`{name}` is taken for `{word}`");
                    self.sink
                        .warning_hint(name.span, message, format!("write `{word}`"));
                    return Some(Value::Boolean(value));
                }
            }
        }
        let what = match self.lookup(scope, name, "constant")? {
            Symbol::Const(id) => return self.constants.get(id.0).map(|decl| decl.value.clone()),
            Symbol::Literal(id, index) => return self.literal_of(id, index),
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
                let message = format!("`{operator}` wants {wants}, not {}", describe(&value));
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
                Err(format!("`{shown}` wants numbers, not {}", describe(&other)))
            }
        };
        outcome
            .map_err(|message| self.sink.error(span, message))
            .ok()
    }

    /// Checks a value against the type it is for.
    pub(super) fn fit(&mut self, value: Value, target: &Target, span: Span) -> Option<Value> {
        // No IDL, but found in the field.
        if let (Value::Integer(code), Target::Char) = (&value, target)
            && let Ok(byte) = u8::try_from(*code)
        {
            let message = format!("{code} is taken for the character of this code");
            self.sink
                .warning_hint(span, message, format!("write `'\\x{byte:02x}'`"));
            return Some(Value::Char(byte));
        }
        fitted(value, target)
            .map_err(|message| self.sink.error(span, message))
            .ok()
    }
}

/// The value of a literal; says what is wrong with it.
fn literal_value(literal: &ExprKind, target: &Target) -> Result<Value, String> {
    match literal {
        ExprKind::Integer(value) => Ok(Value::Integer(i128::from(*value))),
        ExprKind::Float(text) if *target == Target::Float(Precision::Quadruple) => {
            let bits = real::parse(text).filter(|bits| real::is_finite(*bits));
            bits.map(Value::Float128)
                .ok_or_else(|| format!("`{text}` is too large for a `long double`"))
        }
        ExprKind::Float(text) => {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value
                .map(Value::Float)
                .ok_or_else(|| format!("`{text}` is too large for a floating-point literal"))
        }
        ExprKind::Fixed(text) => fixed::parse(text),
        ExprKind::Boolean(value) => Ok(Value::Boolean(*value)),
        ExprKind::Text(text) => Ok(Value::String(text.to_string())),
        ExprKind::WideText(_) if matches!(target, Target::String { .. }) => {
            Err("expected a string, found a wide string".into())
        }
        ExprKind::WideText(text) => Ok(Value::String(text.to_string())),
        ExprKind::Char(c) => match u8::try_from(u32::from(*c)) {
            Ok(byte) => Ok(Value::Char(byte)),
            Err(_) if *target == Target::WChar => wide_char(*c),
            Err(_) => Err(format!("`{c}` does not fit in a `char` of 8 bits")),
        },
        ExprKind::WideChar(c) => wide_char(*c),
        ExprKind::Name(_) | ExprKind::Unary(..) | ExprKind::Binary(..) => {
            Err("this is no literal".into())
        }
    }
}

fn wide_char(c: char) -> Result<Value, String> {
    match u16::try_from(u32::from(c)) {
        Ok(unit) => Ok(Value::WChar(unit)),
        Err(_) => Err(format!("`{c}` does not fit in a `wchar` of 16 bits")),
    }
}

/// A value as one of the type it is for, or why it is none.
fn fitted(value: Value, target: &Target) -> Result<Value, String> {
    let fault = match (&value, target) {
        (Value::Integer(value), Target::Integer { name, bits, signed }) => {
            let (least, greatest) = Target::range(*bits, *signed);
            (*value < least || *value > greatest)
                .then(|| format!("{value} does not fit in `{name}`, {least} to {greatest}"))
        }
        (Value::Integer(value), Target::Bitmask { name, bits, .. }) => {
            let (least, greatest) = Target::range(u32::from(*bits), false);
            (*value < least || *value > greatest)
                .then(|| format!("{value} does not fit in the {bits} bits of `{name}`"))
        }
        (Value::Integer(_) | Value::Float(_), Target::Float(Precision::Quadruple)) => {
            return Ok(Value::Float128(wide(&value).unwrap_or(0)));
        }
        (Value::Float128(bits), Target::Float(Precision::Quadruple)) => (!real::is_finite(*bits))
            .then(|| String::from("the value does not fit in `long double`")),
        (Value::Float128(bits), Target::Float(_)) => {
            return fitted(Value::Float(real::to_double(*bits)), target);
        }
        (Value::Integer(value), Target::Float(_)) => {
            return fitted(Value::Float(*value as f64), target);
        }
        (Value::Float(value), Target::Float(precision)) => {
            let (name, greatest) = match precision {
                Precision::Single => ("float", f64::from(f32::MAX)),
                _ => ("double", f64::MAX),
            };
            (value.is_nan() || value.abs() > greatest)
                .then(|| format!("{value:e} does not fit in `{name}`"))
        }
        (Value::Fixed { .. } | Value::Integer(_), Target::Fixed(size)) => {
            return fixed::fitted(&value, *size);
        }
        (Value::String(text), Target::String { bound: Some(bound) }) => (text.len() as u64
            > u64::from(*bound))
        .then(|| format!("{} bytes do not fit in `string<{bound}>`", text.len())),
        (Value::String(text), Target::WString { bound: Some(bound) }) => {
            let units = text.encode_utf16().count() as u64;
            (units > u64::from(*bound))
                .then(|| format!("{units} units do not fit in `wstring<{bound}>`"))
        }
        (Value::Char(byte), Target::WChar) => return Ok(Value::WChar(u16::from(*byte))),
        (Value::Boolean(_), Target::Boolean)
        | (Value::Char(_), Target::Char)
        | (Value::WChar(_), Target::WChar)
        | (_, Target::Any)
        | (Value::String(_), Target::String { bound: None } | Target::WString { bound: None }) => {
            None
        }
        (Value::Enum(of, _), Target::Enum { id, .. }) if of == id => None,
        (value, target) => Some(format!(
            "expected {}, found {}",
            target.describe(),
            describe(value)
        )),
    };
    fault.map_or(Ok(value), Err)
}

/// A number as a `long double`.
fn wide(value: &Value) -> Option<u128> {
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
        '<' => "`<<` wants integers".into(),
        '>' => "`>>` wants integers".into(),
        _ => format!("`{operator}` wants integers"),
    }
}

/// §7.4.1.4.3: the parts of an integer expression are of 32 bits, or of 64 where
/// the type that it is for has more than 32.
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
