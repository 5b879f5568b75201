//! Uses of types.

use super::{InterfaceId, TryConstruct, TypeId};

/// A use of a type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A primitive.
    Primitive(Primitive),
    /// `string` or `string<N>`; the bound counts bytes without the NUL.
    String {
        /// Largest length in bytes, `None` when unbounded.
        bound: Option<u32>,
    },
    /// `wstring` or `wstring<N>`; the bound counts UTF-16 units.
    WString {
        /// Largest length in units, `None` when unbounded.
        bound: Option<u32>,
    },
    /// `fixed<D, S>`: `digits` decimal digits, `scale` of them after the decimal point.
    Fixed {
        /// 1 to 31.
        digits: u8,
        /// At most `digits`.
        scale: u8,
    },
    /// `sequence<T>` or `sequence<T, N>`.
    Sequence {
        /// Element type.
        element: Box<Element>,
        /// Largest number of elements, `None` when unbounded.
        bound: Option<u32>,
    },
    /// `map<K, V>` or `map<K, V, N>`.
    Map {
        /// Key: an integer type, `octet`, `char`, `wchar`, `boolean`, an enumeration or a
        /// string of either kind; possibly through typedefs.
        key: Box<Element>,
        /// Value type.
        value: Box<Element>,
        /// Largest number of entries, `None` when unbounded.
        bound: Option<u32>,
    },
    /// `T name[d0][d1]`: row-major, none of the dimensions is 0.
    Array {
        /// Element type; never an array itself unless through an alias.
        element: Box<Element>,
        /// Dimensions from the outside in.
        dimensions: Vec<u32>,
    },
    /// A declared type.
    Named(TypeId),
    /// A reference to an object. Never part of a data type: it occurs in typedefs
    /// and operations only.
    Interface(InterfaceId),
}

/// The elements of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Its type.
    pub ty: Type,
    /// `@try_construct` on the element.
    pub try_construct: TryConstruct,
    /// `@external` on the element. Elements are behind a pointer anyway, so this
    /// only matters for the type object.
    pub external: bool,
}

impl Element {
    /// Elements without annotations.
    pub fn of(ty: Type) -> Self {
        Self {
            ty,
            try_construct: TryConstruct::Discard,
            external: false,
        }
    }
}

/// IDL 4.2 §7.4.1.4.4.2 and §7.4.13: the primitive types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `boolean`, one byte, 0 or 1.
    Boolean,
    /// `octet`.
    Octet,
    /// `char`: one byte, Latin-1 by the standard, a byte in Rust.
    Char,
    /// `wchar`: one UTF-16 unit.
    WChar,
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
    /// `long double`: IEEE 754 binary128, 16 bytes.
    Float128,
}
