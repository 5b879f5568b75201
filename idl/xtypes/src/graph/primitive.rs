//! The primitive types and their properties.

use std::fmt;

/// The primitive types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    /// `boolean`.
    Boolean,
    /// `octet`.
    Byte,
    /// `int8`.
    Int8,
    /// `uint8`.
    UInt8,
    /// `short`, `int16`.
    Int16,
    /// `unsigned short`, `uint16`.
    UInt16,
    /// `long`, `int32`.
    Int32,
    /// `unsigned long`, `uint32`.
    UInt32,
    /// `long long`, `int64`.
    Int64,
    /// `unsigned long long`, `uint64`.
    UInt64,
    /// `float`.
    Float32,
    /// `double`.
    Float64,
    /// `long double`: IEEE 754 binary128.
    Float128,
    /// `char`: one byte.
    Char8,
    /// `wchar`: one UTF-16 unit.
    Char16,
}

impl Primitive {
    const ALL: [(Self, u8, &'static str); 15] = [
        (Self::Boolean, 0x01, "boolean"),
        (Self::Byte, 0x02, "octet"),
        (Self::Int8, 0x0c, "int8"),
        (Self::UInt8, 0x0d, "uint8"),
        (Self::Int16, 0x03, "int16"),
        (Self::UInt16, 0x06, "uint16"),
        (Self::Int32, 0x04, "int32"),
        (Self::UInt32, 0x07, "uint32"),
        (Self::Int64, 0x05, "int64"),
        (Self::UInt64, 0x08, "uint64"),
        (Self::Float32, 0x09, "float"),
        (Self::Float64, 0x0a, "double"),
        (Self::Float128, 0x0b, "long double"),
        (Self::Char8, 0x10, "char"),
        (Self::Char16, 0x11, "wchar"),
    ];

    /// Its `TypeKind`.
    pub fn kind(self) -> u8 {
        let found = Self::ALL.iter().find(|(primitive, ..)| *primitive == self);
        found.map_or(0, |(_, kind, _)| *kind)
    }

    /// The primitive of a `TypeKind`.
    pub fn of_kind(kind: u8) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, other, _)| *other == kind);
        found.map(|(primitive, ..)| *primitive)
    }

    /// Encoded size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Boolean | Self::Byte | Self::Int8 | Self::UInt8 | Self::Char8 => 1,
            Self::Int16 | Self::UInt16 | Self::Char16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
            Self::Float128 => 16,
        }
    }
}

impl Primitive {
    /// Whether bit fields may be of this type.
    pub(crate) const fn holds_bits(self) -> bool {
        !matches!(
            self,
            Self::Float32 | Self::Float64 | Self::Float128 | Self::Char8 | Self::Char16
        )
    }

    /// Whether values have a sign.
    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// Whether discriminators may be of this type.
    pub(crate) const fn selects(self) -> bool {
        !matches!(self, Self::Float32 | Self::Float64 | Self::Float128)
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(primitive, ..)| primitive == self);
        f.write_str(found.map_or("", |(.., name)| name))
    }
}
