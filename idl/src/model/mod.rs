//! The checked model: the output of the front end and the input of the back ends.
//!
//! Every name is resolved, every constant evaluated, every bound checked; a
//! back end only prints. Declarations are in the order of the source, each
//! included file once, so that output is deterministic. A type may contain
//! itself through a sequence, a map or a boxed member: code that follows the
//! members of a type must expect cycles.

mod annotation;
mod interface;
mod types;

pub use annotation::{
    AnnotationDecl, AnnotationId, AnnotationParameter, CustomAnnotation, Placement, Verbatim,
};
pub use interface::{Attribute, Direction, InterfaceDecl, Operation, Parameter};
pub use types::{Element, Primitive, Type};

use std::path::PathBuf;

/// One compilation: the files named by the user and all files that they include.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Every file that was read, in order of first opening. Files
    /// of other compilers' libraries that are built in have paths that begin with
    /// `<built-in>`.
    pub files: Vec<PathBuf>,
    /// The root of the one module tree of this compilation.
    pub root: Module,
    /// All type declarations; a [`TypeId`] is an index into this list.
    pub types: Vec<TypeDecl>,
    /// All constants; a [`ConstId`] is an index into this list.
    pub constants: Vec<ConstDecl>,
    /// All interfaces; an [`InterfaceId`] is an index into this list.
    pub interfaces: Vec<InterfaceDecl>,
    /// All annotations that are declared; an [`AnnotationId`] is an index into this list.
    pub annotations: Vec<AnnotationDecl>,
}

/// Index of a declared type in [`Model::types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub usize);

/// Index of a constant in [`Model::constants`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstId(pub usize);

/// Index of an interface in [`Model::interfaces`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceId(pub usize);

/// A module; re-opened modules of IDL are merged into one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// The IDL identifier, without a leading escape underscore; empty for the root.
    pub name: String,
    /// Comment lines that stand before the first opening.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// What it contains, in source order.
    pub items: Vec<Item>,
}

/// A member of a module or an interface.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A nested module.
    Module(Module),
    /// A type; where it is defined, not where it is declared forward.
    Type(TypeId),
    /// A constant.
    Const(ConstId),
    /// An interface.
    Interface(InterfaceId),
}

/// A declared type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeDecl {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Enclosing modules and interfaces from the outside in, unescaped.
    pub scope: Vec<String>,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// `@verbatim` in the order of the text, for all languages.
    pub verbatim: Vec<Verbatim>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its kind, with the details.
    pub kind: TypeKind,
    /// The file it was declared in (index into [`Model::files`]).
    pub file: usize,
}

/// The kinds of declared types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// `struct` and `exception`.
    Struct(Struct),
    /// `union`.
    Union(Union),
    /// `enum`.
    Enum(Enum),
    /// `bitmask`.
    Bitmask(Bitmask),
    /// `bitset`.
    Bitset(Bitset),
    /// `typedef`.
    Alias(Alias),
    /// `native`: a type of the target language. Never part of a data type.
    Native,
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

/// The representations that `@data_representation` allows: XTypes 1.3 §7.3.1.2.1.10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Representations {
    /// `XCDR1`.
    pub xcdr1: bool,
    /// `XCDR2`.
    pub xcdr2: bool,
}

impl Representations {
    /// The representations of a type without the annotation.
    pub const ALL: Self = Self {
        xcdr1: true,
        xcdr2: true,
    };
}

/// A structure, or an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Extensibility, [`Extensibility::Appendable`] unless annotated or inherited.
    pub extensibility: Extensibility,
    /// Not meant as a topic type: `@nested`, `@default_nested` without `@topic`, or
    /// an exception.
    pub nested: bool,
    /// Whether it is an `exception`.
    pub exception: bool,
    /// `@autoid(HASH)`, its own or that of the modules around it.
    pub autoid_hash: bool,
    /// `@data_representation`.
    pub representations: Representations,
    /// The structure it inherits from.
    pub base: Option<TypeId>,
    /// Members in the order of their declaration, all those inherited first.
    pub members: Vec<Member>,
    /// How many of the members are inherited.
    pub inherited: usize,
}

/// XTypes 1.3 §7.3.1.2.1.12: what a reader does with a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TryConstruct {
    /// The value is discarded, and so is every value that contains it.
    #[default]
    Discard,
    /// The default takes its place.
    UseDefault,
    /// A value that is too long is cut.
    Trim,
}

/// A member of a structure, or a branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its type, array dimensions included.
    pub ty: Type,
    /// Member id by `@autoid`, `@hashid` or `@id`.
    pub id: u32,
    /// The text of `@hashid`; empty if the name of the member is hashed.
    pub hash_id: Option<String>,
    /// Part of the key.
    pub key: bool,
    /// `@optional`. Never set for key members and branches of unions.
    pub optional: bool,
    /// `@external`.
    pub external: bool,
    /// Whether its value is behind a pointer: because it is external, or
    /// because its type would contain itself otherwise.
    pub boxed: bool,
    /// `@must_understand`, or implied by `@key`.
    pub must_understand: bool,
    /// `@non_serialized`.
    pub non_serialized: bool,
    /// `@try_construct`.
    pub try_construct: TryConstruct,
    /// Value of `@default`.
    pub default: Option<Value>,
    /// `@range`, `@min` and `@max` of the member, or else of the typedefs in its
    /// type.
    pub range: Range,
    /// `@unit` of the member, or else of the typedefs in its type.
    pub unit: Option<String>,
}

/// Least and greatest value allowed, both included; checked against the type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Range {
    /// `@min`.
    pub min: Option<Value>,
    /// `@max`.
    pub max: Option<Value>,
}

impl Range {
    /// Whether every value is allowed.
    pub const fn is_empty(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }
}

/// A union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// Extensibility, [`Extensibility::Appendable`] unless annotated.
    pub extensibility: Extensibility,
    /// Not meant as a topic type, as for a [`Struct`].
    pub nested: bool,
    /// `@autoid(HASH)`, its own or that of the modules around it.
    pub autoid_hash: bool,
    /// `@data_representation`.
    pub representations: Representations,
    /// The discriminator.
    pub discriminator: Discriminator,
    /// Branches in the order of their declaration.
    pub branches: Vec<Branch>,
}

/// The discriminator of a union, whose value selects the branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Discriminator {
    /// An integer type of at most 64 bits, `octet`, `char`, `wchar`, `boolean`, or an
    /// enumeration; possibly through typedefs.
    pub ty: Type,
    /// `@key`: the key of the union.
    pub key: bool,
    /// Value of `@default`.
    pub default: Option<Value>,
    /// `@try_construct`.
    pub try_construct: TryConstruct,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
}

/// A branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Values of the discriminator that select it, in the order of the source, each
    /// of them once in the union; may be empty when it is the default.
    pub labels: Vec<Value>,
    /// Whether it has `default:`; at most one branch does.
    pub default: bool,
    /// Its name, type and annotations.
    pub member: Member,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Number of bits of the wire form (`@bit_bound`), 1 to 32, 32 by default.
    pub bit_bound: u8,
    /// Extensibility, [`Extensibility::Appendable`] unless annotated.
    pub extensibility: Extensibility,
    /// `@ignore_literal_names`.
    pub ignore_literal_names: bool,
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
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its value: `@value`, else one more than the previous one.
    pub value: i32,
}

/// A set of named bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitmask {
    /// Number of bits (`@bit_bound`), 1 to 64, 32 by default. The wire form has 8,
    /// 16, 32 or 64 bits.
    pub bit_bound: u8,
    /// Extensibility, [`Extensibility::Appendable`] unless annotated.
    pub extensibility: Extensibility,
    /// Flags in declaration order.
    pub flags: Vec<Flag>,
}

/// A bit of a [`Bitmask`].
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Bit position, 0 for the least significant: `@position`, else one more than the
    /// previous one. Less than the bound, and unique in the bitmask.
    pub position: u8,
}

/// Bit fields packed into one integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitset {
    /// The bitset it inherits from.
    pub base: Option<TypeId>,
    /// Named fields from the least significant bit on, all those inherited first.
    /// Unnamed ones are the gaps between them.
    pub fields: Vec<BitField>,
    /// How many of the fields are inherited.
    pub inherited: usize,
    /// Bits in all, gaps included, 1 to 64. The wire form has 8, 16, 32 or 64 bits.
    pub bits: u8,
}

/// A field of a [`Bitset`].
#[derive(Debug, Clone, PartialEq)]
pub struct BitField {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Its least significant bit.
    pub offset: u8,
    /// Number of bits, 1 to 64.
    pub bits: u8,
    /// The type of its value: as declared, or else the smallest of `boolean`, and
    /// unsigned of 8 to 64 bits, that holds it.
    pub ty: Primitive,
}

/// A typedef of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// The type that it names.
    pub ty: Type,
    /// `@range`, `@min` and `@max`: its own, or those of the typedef that it names.
    pub range: Range,
    /// `@unit`: its own, or that of the typedef that it names.
    pub unit: Option<String>,
    /// `@default`: its own, or that of the typedef that it names. Applies to members of
    /// this type without a default of their own.
    pub default: Option<Value>,
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstDecl {
    /// IDL identifier, unescaped.
    pub name: String,
    /// Enclosing modules and interfaces from the outside in.
    pub scope: Vec<String>,
    /// Comment lines that stand before it.
    pub doc: Vec<String>,
    /// Annotations that the IDL declares itself.
    pub custom: Vec<CustomAnnotation>,
    /// Declared type: a primitive, a string of either kind, fixed, an enum or a
    /// bitmask; possibly through typedefs.
    pub ty: Type,
    /// Value, already checked against the type.
    pub value: Value,
}

/// An evaluated constant expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Integers, octets, and bitmasks.
    Integer(i128),
    /// `float`, `double`.
    Float(f64),
    /// `long double`: the bits of the binary128.
    Float128(u128),
    /// `fixed`: the number times ten to the power of `scale`.
    Fixed {
        /// All digits.
        unscaled: i128,
        /// How many of the digits follow the decimal point.
        scale: u8,
    },
    /// `boolean`.
    Boolean(bool),
    /// `char`, a byte.
    Char(u8),
    /// `wchar`, a UTF-16 unit.
    WChar(u16),
    /// `string` and `wstring`.
    String(String),
    /// A literal of an enum: type and index of the literal.
    Enum(TypeId, usize),
}
