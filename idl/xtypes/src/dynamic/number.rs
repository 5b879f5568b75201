//! Encoding, decoding and ranges of primitive values.

use std::cmp::Ordering;

use spindle_dds_idl_runtime::encode::Encoder;
use spindle_dds_idl_runtime::{CdrError, LongDouble, NumberOutOfRange, Reader, SamplePosition};

use super::plan::ANY;
use super::value::Value;
use crate::graph::{Primitive, Range};
use crate::object::AnnotationValue;

/// Reads a primitive.
pub(super) fn read(primitive: Primitive, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
    Ok(match primitive {
        Primitive::Boolean => Value::Boolean(reader.primitive()?),
        Primitive::Byte => Value::Byte(reader.primitive()?),
        Primitive::Int8 => Value::Int8(reader.primitive()?),
        Primitive::UInt8 => Value::UInt8(reader.primitive()?),
        Primitive::Int16 => Value::Int16(reader.primitive()?),
        Primitive::UInt16 => Value::UInt16(reader.primitive()?),
        Primitive::Int32 => Value::Int32(reader.primitive()?),
        Primitive::UInt32 => Value::UInt32(reader.primitive()?),
        Primitive::Int64 => Value::Int64(reader.primitive()?),
        Primitive::UInt64 => Value::UInt64(reader.primitive()?),
        Primitive::Float32 => Value::Float32(reader.primitive()?),
        Primitive::Float64 => Value::Float64(reader.primitive()?),
        Primitive::Float128 => Value::Float128(reader.primitive()?),
        Primitive::Char8 => Value::Char8(reader.primitive()?),
        Primitive::Char16 => Value::Char16(reader.primitive()?),
    })
}

/// Writes a primitive; `None` when the value is not one.
pub(super) fn write<E: Encoder>(value: &Value, encoder: &mut E) -> Option<Result<(), CdrError>> {
    Some(match value {
        Value::Boolean(value) => encoder.primitive(*value),
        Value::Byte(value) | Value::UInt8(value) | Value::Char8(value) => encoder.primitive(*value),
        Value::Int8(value) => encoder.primitive(*value),
        Value::Int16(value) => encoder.primitive(*value),
        Value::UInt16(value) | Value::Char16(value) => encoder.primitive(*value),
        Value::Int32(value) => encoder.primitive(*value),
        Value::UInt32(value) => encoder.primitive(*value),
        Value::Int64(value) => encoder.primitive(*value),
        Value::UInt64(value) => encoder.primitive(*value),
        Value::Float32(value) => encoder.primitive(*value),
        Value::Float64(value) => encoder.primitive(*value),
        Value::Float128(value) => encoder.primitive(*value),
        _ => return None,
    })
}

/// Zero, or the number of a range that is nearest to it.
pub(super) fn initial(primitive: Primitive, range: &Range) -> Value {
    let zero = match primitive {
        Primitive::Boolean => Value::Boolean(false),
        Primitive::Byte => Value::Byte(0),
        Primitive::Int8 => Value::Int8(0),
        Primitive::UInt8 => Value::UInt8(0),
        Primitive::Int16 => Value::Int16(0),
        Primitive::UInt16 => Value::UInt16(0),
        Primitive::Int32 => Value::Int32(0),
        Primitive::UInt32 => Value::UInt32(0),
        Primitive::Int64 => Value::Int64(0),
        Primitive::UInt64 => Value::UInt64(0),
        Primitive::Float32 => Value::Float32(0.0),
        Primitive::Float64 => Value::Float64(0.0),
        Primitive::Float128 => Value::Float128(LongDouble::default()),
        Primitive::Char8 => Value::Char8(0),
        Primitive::Char16 => Value::Char16(0),
    };
    let beyond = |limit: &Option<AnnotationValue>, wrong: Ordering| {
        let limit = from_annotation(primitive, limit.as_ref()?)?;
        (compare(&zero, &limit) == Some(wrong)).then_some(limit)
    };
    let limit = beyond(&range.min, Ordering::Less);
    let limit = limit.or_else(|| beyond(&range.max, Ordering::Greater));
    limit.unwrap_or(zero)
}

/// Checks that a number is in a range.
///
/// # Errors
/// [`CdrError::OutOfRange`].
pub(super) fn verify(value: &Value, range: &Range, offset: usize) -> Result<(), CdrError> {
    if *range == *ANY {
        return Ok(());
    }
    let on_side = |limit: &Option<AnnotationValue>, wrong: Ordering| match limit {
        None => true,
        Some(limit) => {
            let limit = primitive_of(value).and_then(|kind| from_annotation(kind, limit));
            match limit {
                // A limit outside the type does not restrict it.
                None => true,
                Some(limit) => compare(value, &limit).is_some_and(|order| order != wrong),
            }
        }
    };
    match on_side(&range.min, Ordering::Less) && on_side(&range.max, Ordering::Greater) {
        true => Ok(()),
        false => Err(CdrError::OutOfRange {
            number: out_of_range(value),
            place: SamplePosition::offset(offset),
        }),
    }
}

fn out_of_range(value: &Value) -> NumberOutOfRange {
    match value {
        Value::Float32(value) => NumberOutOfRange::without_limits(*value),
        Value::Float64(value) => NumberOutOfRange::without_limits(*value),
        Value::Float128(value) => NumberOutOfRange::without_limits(*value),
        Value::UInt64(value) => NumberOutOfRange::without_limits(*value),
        value => {
            let value = value.to_integer().and_then(|it| i64::try_from(it).ok());
            NumberOutOfRange::without_limits(value.unwrap_or_default())
        }
    }
}

/// The primitive type of a value.
pub(super) fn primitive_of(value: &Value) -> Option<Primitive> {
    Some(match value {
        Value::Boolean(_) => Primitive::Boolean,
        Value::Byte(_) => Primitive::Byte,
        Value::Int8(_) => Primitive::Int8,
        Value::UInt8(_) => Primitive::UInt8,
        Value::Int16(_) => Primitive::Int16,
        Value::UInt16(_) => Primitive::UInt16,
        Value::Int32(_) => Primitive::Int32,
        Value::UInt32(_) => Primitive::UInt32,
        Value::Int64(_) => Primitive::Int64,
        Value::UInt64(_) => Primitive::UInt64,
        Value::Float32(_) => Primitive::Float32,
        Value::Float64(_) => Primitive::Float64,
        Value::Float128(_) => Primitive::Float128,
        Value::Char8(_) => Primitive::Char8,
        Value::Char16(_) => Primitive::Char16,
        _ => return None,
    })
}

fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Float32(one), Value::Float32(other)) => one.partial_cmp(other),
        (Value::Float64(one), Value::Float64(other)) => one.partial_cmp(other),
        (Value::Float128(one), Value::Float128(other)) => {
            use spindle_dds_idl_runtime::shape::Limited as _;
            Some(one.to_limit()?.cmp(&other.to_limit()?))
        }
        _ => Some(one.to_integer()?.cmp(&other.to_integer()?)),
    }
}

impl AnnotationValue {
    /// The number as a value of a primitive type, if it has one.
    pub fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Byte(value) => Value::Byte(*value),
            Self::Int8(value) => Value::Int8(*value),
            Self::UInt8(value) => Value::UInt8(*value),
            Self::Int16(value) => Value::Int16(*value),
            Self::UInt16(value) => Value::UInt16(*value),
            Self::Int32(value) => Value::Int32(*value),
            Self::UInt32(value) => Value::UInt32(*value),
            Self::Int64(value) => Value::Int64(*value),
            Self::UInt64(value) => Value::UInt64(*value),
            Self::Float32(bits) => Value::Float32(f32::from_bits(*bits)),
            Self::Float64(bits) => Value::Float64(f64::from_bits(*bits)),
            Self::Float128(bytes) => {
                Value::Float128(LongDouble::from_bits(u128::from_le_bytes(*bytes)))
            }
            Self::Char8(value) => Value::Char8(*value),
            Self::Char16(value) => Value::Char16(*value),
            Self::Enum(_) | Self::String8(_) | Self::String16(_) | Self::Extended(_) => {
                return None;
            }
        })
    }
}

/// The value of an annotation, if it has a type.
fn from_annotation(primitive: Primitive, value: &AnnotationValue) -> Option<Value> {
    let value = value.to_value()?;
    (primitive_of(&value) == Some(primitive)).then_some(value)
}
