//! The types that constants are evaluated for, and which values fit in them.

use super::constants::wide;
use super::{fixed, real};
use crate::ast::ExprKind;
use crate::model::{Primitive, TypeId, Value};

/// The type for which a value is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Integer {
        name: &'static str,
        bits: u32,
        signed: bool,
    },
    Float(Precision),
    /// With digits and scale; `None` if it takes those of the value.
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
    /// Any value.
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

/// The value of a literal, or its fault.
pub(super) fn literal_value(literal: &ExprKind, target: &Target) -> Result<Value, String> {
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
            Err("this is not a literal".into())
        }
    }
}

fn wide_char(c: char) -> Result<Value, String> {
    match u16::try_from(u32::from(c)) {
        Ok(unit) => Ok(Value::WChar(unit)),
        Err(_) => Err(format!("`{c}` does not fit in a `wchar` of 16 bits")),
    }
}

/// A value converted to its target type, or the reason why that is impossible.
pub(super) fn fitted(value: Value, target: &Target) -> Result<Value, String> {
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
        (Value::Enum(..), Target::Enum { .. }) => Some(format!(
            "expected {}, found one of another enum",
            target.describe()
        )),
        (value, target) => Some(format!(
            "expected {}, found {}",
            target.describe(),
            describe(value)
        )),
    };
    fault.map_or(Ok(value), Err)
}
