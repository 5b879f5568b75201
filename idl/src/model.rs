//! The checked model: what the front end hands to the back ends.
//!
//! Every name is resolved, every constant evaluated, every bound checked; a
//! back end only prints. Declarations stand in the order of the source, each
//! included file once, so that output is deterministic. Building blocks that
//! are not accepted yet get their variants here when the front end learns them.

use std::path::PathBuf;

/// One compilation: the files named by the user and all that they include.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Every file that was read, in order of first opening.
    pub files: Vec<PathBuf>,
    /// The root of the one module tree of this compilation.
    pub root: Module,
    /// All type declarations; a [`TypeId`] is an index into this list.
    pub types: Vec<TypeDecl>,
    /// All constants; a [`ConstId`] is an index into this list.
    pub constants: Vec<ConstDecl>,
}

/// Index of a declared type in [`Model::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub usize);

/// Index of a constant in [`Model::constants`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstId(pub usize);

/// A module; re-opened modules of IDL are merged into one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// The IDL identifier, without a leading escape underscore; empty for the root.
    pub name: String,
    /// Comment lines that stand before the first opening.
    pub doc: Vec<String>,
    /// What it contains, in source order.
    pub items: Vec<Item>,
}

/// A member of a module.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A nested module.
    Module(Module),
    /// A type.
    Type(TypeId),
    /// A constant.
    Const(ConstId),
}

/// A declared type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeDecl {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Enclosing modules from the outside in, unescaped.
    pub scope: Vec<String>,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// What it is.
    pub kind: TypeKind,
    /// The file it was declared in (index into [`Model::files`]).
    pub file: usize,
}

/// The kinds of declared types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// `struct`.
    Struct(Struct),
    /// `enum`.
    Enum(Enum),
    /// `typedef`.
    Alias(Type),
}

/// XTypes 1.3 §7.2.2.4.1: how a type may evolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extensibility {
    /// `@final`.
    Final,
    /// `@appendable`, the default.
    Appendable,
    /// `@mutable`.
    Mutable,
}

/// A structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Extensibility, [`Extensibility::Appendable`] unless annotated.
    pub extensibility: Extensibility,
    /// `@nested`: not meant as a topic type.
    pub nested: bool,
    /// Members in declaration order.
    pub members: Vec<Member>,
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Its type, array dimensions included.
    pub ty: Type,
    /// Member id by `@autoid(SEQUENTIAL)`, or by `@id`.
    pub id: u32,
    /// Part of the key.
    pub key: bool,
    /// Value of `@default`.
    pub default: Option<Value>,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Number of bits of the wire form (`@bit_bound`), 32 by default.
    pub bit_bound: u8,
    /// Extensibility, [`Extensibility::Appendable`] unless annotated.
    pub extensibility: Extensibility,
    /// Literals in declaration order.
    pub literals: Vec<EnumLiteral>,
    /// Index of the literal that is the default: `@default_literal`, else the first.
    pub default_literal: usize,
}

/// A literal of an enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct EnumLiteral {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Its value: `@value`, else one more than the previous one.
    pub value: i32,
}

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
    /// `sequence<T>` or `sequence<T, N>`.
    Sequence {
        /// Element type.
        element: Box<Self>,
        /// Largest number of elements, `None` when unbounded.
        bound: Option<u32>,
    },
    /// `T name[d0][d1]`: row-major, none of the dimensions is 0.
    Array {
        /// Element type; never an array itself unless through an alias.
        element: Box<Self>,
        /// Dimensions from the outside in.
        dimensions: Vec<u32>,
    },
    /// A declared type.
    Named(TypeId),
}

/// IDL 4.2 §7.4.1.4.4.2 and §7.4.13: the primitive types of today's subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `boolean`, one byte, 0 or 1.
    Boolean,
    /// `octet`.
    Octet,
    /// `char`: one byte, Latin-1 by the standard, a byte in Rust.
    Char,
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
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstDecl {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Enclosing modules from the outside in.
    pub scope: Vec<String>,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Declared type: a primitive, a string or an enum.
    pub ty: Type,
    /// Value, already checked against the type.
    pub value: Value,
}

/// An evaluated constant expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Integers and octets.
    Integer(i128),
    /// `float`, `double`.
    Float(f64),
    /// `boolean`.
    Boolean(bool),
    /// `char`, a byte.
    Char(u8),
    /// `string`.
    String(String),
    /// A literal of an enum: type and index of the literal.
    Enum(TypeId, usize),
}
