//! Values of dynamic types.

use std::cmp::Ordering;

use spindle_dds_idl_runtime::LongDouble;

/// A value of a [`Type`](crate::graph::Type).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `boolean`.
    Boolean(bool),
    /// `octet`.
    Byte(u8),
    /// `int8`.
    Int8(i8),
    /// `uint8`.
    UInt8(u8),
    /// `int16`.
    Int16(i16),
    /// `uint16`.
    UInt16(u16),
    /// `int32`.
    Int32(i32),
    /// `uint32`.
    UInt32(u32),
    /// `int64`.
    Int64(i64),
    /// `uint64`.
    UInt64(u64),
    /// `float`.
    Float32(f32),
    /// `double`.
    Float64(f64),
    /// `long double`.
    Float128(LongDouble),
    /// `char`.
    Char8(u8),
    /// `wchar`: one UTF-16 unit.
    Char16(u16),
    /// `string` and `wstring`.
    Text(String),
    /// The value of an enumeration, with or without a literal.
    Enum(i32),
    /// The integer of a bitmask or a bitset.
    Bits(u64),
    /// The elements of a sequence or an array; for an array of several dimensions, its rows.
    List(Vec<Self>),
    /// The entries of a map by ascending key, without duplicates.
    Map(Vec<(Self, Self)>),
    /// The members of a structure, those inherited first; `None` for an optional one
    /// that is absent.
    Struct(Vec<Option<Self>>),
    /// A union.
    Union(Box<UnionValue>),
}

/// The value of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct UnionValue {
    /// The discriminator.
    pub discriminator: Value,
    /// Index and value of the selected branch, if any.
    pub branch: Option<(usize, Value)>,
}

impl Value {
    /// The integer of a value, if it is an integer, a character, a boolean or an enumeration.
    pub fn to_integer(&self) -> Option<i128> {
        Some(match self {
            Self::Boolean(value) => i128::from(*value),
            Self::Byte(value) | Self::UInt8(value) | Self::Char8(value) => i128::from(*value),
            Self::Int8(value) => i128::from(*value),
            Self::Int16(value) => i128::from(*value),
            Self::UInt16(value) | Self::Char16(value) => i128::from(*value),
            Self::Int32(value) | Self::Enum(value) => i128::from(*value),
            Self::UInt32(value) => i128::from(*value),
            Self::Int64(value) => i128::from(*value),
            Self::UInt64(value) | Self::Bits(value) => i128::from(*value),
            _ => return None,
        })
    }

    /// The order of keys of maps.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => self.to_integer().cmp(&other.to_integer()),
        }
    }
}

macro_rules! from {
    ($($variant:ident $ty:ty,)*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

from! {
    Boolean bool,
    Int8 i8,
    Int16 i16,
    UInt16 u16,
    Int32 i32,
    UInt32 u32,
    Int64 i64,
    UInt64 u64,
    Float32 f32,
    Float64 f64,
    Text String,
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}
