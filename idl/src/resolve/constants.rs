//! Constant expressions: IDL 4.2 §7.4.1.4.3.
//!
//! Integers are evaluated in 128 bits and checked against the declared type at
//! the end, so nothing wraps unseen.

use super::Resolver;
use super::scopes::{ScopeId, Symbol};
use crate::ast::{Expr, ExprKind, ScopedName};
use crate::model::{Primitive, TypeId, Value};
use crate::source::Span;

/// The type that a value is wanted for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Integer {
        name: &'static str,
        bits: u32,
        signed: bool,
    },
    Float {
        double: bool,
    },
    Boolean,
    Char,
    String {
        bound: Option<u32>,
    },
    Enum {
        id: TypeId,
        name: String,
    },
}

impl Target {
    pub(super) fn of_primitive(primitive: Primitive) -> Self {
        let integer = |name, bits, signed| Self::Integer { name, bits, signed };
        match primitive {
            Primitive::Boolean => Self::Boolean,
            Primitive::Octet => integer("octet", 8, false),
            Primitive::Char => Self::Char,
            Primitive::Int8 => integer("int8", 8, true),
            Primitive::UInt8 => integer("uint8", 8, false),
            Primitive::Int16 => integer("short", 16, true),
            Primitive::UInt16 | Primitive::WChar => integer("unsigned short", 16, false),
            Primitive::Int32 => integer("long", 32, true),
            Primitive::UInt32 => integer("unsigned long", 32, false),
            Primitive::Int64 => integer("long long", 64, true),
            Primitive::UInt64 => integer("unsigned long long", 64, false),
            Primitive::Float32 => Self::Float { double: false },
            Primitive::Float64 | Primitive::Float128 => Self::Float { double: true },
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Integer { .. } => "an integer".into(),
            Self::Float { .. } => "a number".into(),
            Self::Boolean => "TRUE or FALSE".into(),
            Self::Char => "a character".into(),
            Self::String { .. } => "a string".into(),
            Self::Enum { name, .. } => format!("a literal of `{name}`"),
        }
    }

    /// Least and greatest value of an integer type.
    fn range(bits: u32, signed: bool) -> (i128, i128) {
        if signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "an integer",
        Value::Float(_) | Value::Float128(_) => "a floating-point number",
        Value::Boolean(_) => "a boolean",
        Value::Fixed { .. } => "a fixed-point number",
        Value::Char(_) | Value::WChar(_) => "a character",
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
        match &expr.kind {
            ExprKind::Integer(value) => Some(Value::Integer(i128::from(*value))),
            ExprKind::Float(value) => Some(Value::Float(*value)),
            ExprKind::Boolean(value) => Some(Value::Boolean(*value)),
            ExprKind::Text(text) => Some(Value::String(text.to_string())),
            ExprKind::Char(c) => match u8::try_from(u32::from(*c)) {
                Ok(byte) => Some(Value::Char(byte)),
                Err(_) => {
                    let message = format!("`{c}` does not fit in a `char` of 8 bits");
                    self.sink.error(expr.span, message);
                    None
                }
            },
            ExprKind::Unsupported(construct) => {
                self.sink.refuse(expr.span, construct);
                None
            }
            ExprKind::Name(name) => self.named_value(scope, name, target),
            ExprKind::Unary(operator, operand) => {
                let value = self.raw(scope, operand, target)?;
                self.unary(*operator, value, target, expr.span)
            }
            ExprKind::Binary(operator, left, right) => {
                // Both sides are looked at, to report what is wrong in either.
                let left = self.raw(scope, left, target);
                let right = self.raw(scope, right, target);
                self.binary(*operator, left?, right?, target, expr.span)
            }
        }
    }

    fn named_value(&mut self, scope: ScopeId, name: &ScopedName, target: &Target) -> Option<Value> {
        // A literal of the wanted enum needs no scope in front.
        if let Target::Enum { id, .. } = target
            && name.rest.is_empty()
            && let Some(index) = self.literal(*id, &name.first.name)
        {
            return Some(Value::Enum(*id, index));
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
            Symbol::Literal(id, index) => return Some(Value::Enum(id, index)),
            Symbol::Refused => return None,
            Symbol::Module(_) => "a module",
            Symbol::Type(_) | Symbol::Incomplete => "a type",
        };
        self.sink.error(
            name.span,
            format!("expected a constant, but `{name}` is {what}"),
        );
        None
    }

    fn unary(
        &mut self,
        operator: char,
        value: Value,
        target: &Target,
        span: Span,
    ) -> Option<Value> {
        match (operator, value) {
            ('+', value @ (Value::Integer(_) | Value::Float(_))) => Some(value),
            ('-', Value::Integer(value)) => Some(Value::Integer(value.checked_neg()?)),
            ('-', Value::Float(value)) => Some(Value::Float(-value)),
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
                if operator == '/' && matches!(target, Target::Float { .. }) =>
            {
                let hint = "write one of the numbers with a `.`, as in `1.0`";
                let message = "division of integers in a floating-point expression";
                self.sink.error_hint(span, message, hint);
                return None;
            }
            (Value::Integer(left), Value::Integer(right)) => {
                integers(operator, left, right).map(Value::Integer)
            }
            (Value::Float(left), Value::Float(right)) => reals(operator, left, right),
            (Value::Integer(left), Value::Float(right)) => reals(operator, left as f64, right),
            (Value::Float(left), Value::Integer(right)) => reals(operator, left, right as f64),
            (Value::Integer(_) | Value::Float(_), other) | (other, _) => {
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
    fn fit(&mut self, value: Value, target: &Target, span: Span) -> Option<Value> {
        let fault = match (&value, target) {
            (Value::Integer(value), Target::Integer { name, bits, signed }) => {
                let (least, greatest) = Target::range(*bits, *signed);
                (*value < least || *value > greatest)
                    .then(|| format!("{value} does not fit in `{name}`, {least} to {greatest}"))
            }
            (Value::Integer(value), Target::Float { double }) => {
                return self.fit(
                    Value::Float(*value as f64),
                    &Target::Float { double: *double },
                    span,
                );
            }
            (Value::Float(value), Target::Float { double }) => {
                let greatest = if *double {
                    f64::MAX
                } else {
                    f64::from(f32::MAX)
                };
                let name = if *double { "double" } else { "float" };
                (value.is_nan() || value.abs() > greatest)
                    .then(|| format!("{value:e} does not fit in `{name}`"))
            }
            (Value::String(text), Target::String { bound: Some(bound) }) => (text.len() as u64
                > u64::from(*bound))
            .then(|| format!("{} bytes do not fit in `string<{bound}>`", text.len())),
            (Value::Boolean(_), Target::Boolean)
            | (Value::Char(_), Target::Char)
            | (Value::String(_), Target::String { bound: None }) => None,
            (Value::Enum(of, _), Target::Enum { id, .. }) if of == id => None,
            (value, target) => Some(format!(
                "expected {}, found {}",
                target.describe(),
                describe(value)
            )),
        };
        match fault {
            Some(message) => {
                self.sink.error(span, message);
                None
            }
            None => Some(value),
        }
    }
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
        '<' => return Err("`<<` wants integers".into()),
        '>' => return Err("`>>` wants integers".into()),
        _ => return Err(format!("`{operator}` wants integers")),
    };
    Ok(Value::Float(value))
}
