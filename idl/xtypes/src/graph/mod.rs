//! The graph of declared types, from which everything else in this crate is derived.
//!
//! A compiler or a program builds a [`TypeGraph`], or a [`Registry`](crate::Registry)
//! resolves one from `TypeObject`s. It yields `TypeObject`s and hashes
//! ([`describe`](crate::describe)), assignability ([`assignable`](crate::assignable)), and
//! dynamic types ([`DynamicType`](crate::DynamicType)).

mod annotation;
mod primitive;
mod type_graph;

pub use annotation::{Annotation, AnnotationParameter, Annotations, Applied};
pub use primitive::Primitive;
pub use type_graph::TypeGraph;

use std::fmt;

pub use spindle_dds_idl_runtime::Extensibility;

use crate::dynamic::Value;
use crate::object::{AnnotationValue, NameHash};

/// XTypes 1.3 §7.3.1.2.1.12: what a reader does with a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TryConstruct {
    /// The value is discarded, and so is every value that contains it.
    #[default]
    Discard,
    /// The default takes its place.
    UseDefault,
    /// A value that is too long is cut.
    Trim,
}

/// A name of a member, literal, flag or field; the minimal form has hashes only.
#[derive(Debug, Clone)]
pub enum Name {
    /// The name.
    Text(String),
    /// Its hash.
    Hash(NameHash),
}

impl Name {
    /// The hash of the name.
    pub fn hash(&self) -> NameHash {
        match self {
            Self::Text(text) => NameHash::of(text),
            Self::Hash(hash) => *hash,
        }
    }

    /// Whether this is a name's text.
    pub fn is(&self, name: &str) -> bool {
        matches!(self, Self::Text(text) if text == name)
    }
}

/// Names are equal when their hashes are, so that the forms can be compared.
impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => self.hash() == other.hash(),
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Hash(hash) => write!(f, "#{hash}"),
        }
    }
}

/// `@min`, `@max` and `@range`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Range {
    /// `@min`.
    pub min: Option<AnnotationValue>,
    /// `@max`.
    pub max: Option<AnnotationValue>,
}

/// Index of a declared type in a [`TypeGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeIndex(pub(crate) u32);

/// A use of a type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A primitive.
    Primitive(Primitive),
    /// `string`, with the largest number of bytes.
    String8(Option<u32>),
    /// `wstring`, with the largest number of UTF-16 units.
    String16(Option<u32>),
    /// A sequence.
    Sequence {
        /// What it consists of.
        element: Box<Element>,
        /// Largest number of elements.
        bound: Option<u32>,
    },
    /// An array.
    Array {
        /// What it consists of.
        element: Box<Element>,
        /// Dimensions from the outside in; none is 0.
        dimensions: Vec<u32>,
    },
    /// A map.
    Map {
        /// Keys.
        key: Box<Element>,
        /// Values.
        value: Box<Element>,
        /// Largest number of entries.
        bound: Option<u32>,
    },
    /// A declared type.
    Declared(TypeIndex),
}

impl Type {
    /// `sequence<element>` or `sequence<element, bound>`.
    pub fn sequence(element: Self, bound: Option<u32>) -> Self {
        Self::Sequence {
            element: Box::new(Element::of(element)),
            bound,
        }
    }

    /// An array of `element`.
    pub fn array(element: Self, dimensions: impl Into<Vec<u32>>) -> Self {
        Self::Array {
            element: Box::new(Element::of(element)),
            dimensions: dimensions.into(),
        }
    }

    /// `map<key, value>` or `map<key, value, bound>`.
    pub fn map(key: Self, value: Self, bound: Option<u32>) -> Self {
        Self::Map {
            key: Box::new(Element::of(key)),
            value: Box::new(Element::of(value)),
            bound,
        }
    }

    /// The declared types that it names.
    pub(crate) fn declared(&self, found: &mut dyn FnMut(TypeIndex)) {
        match self {
            Self::Primitive(_) | Self::String8(_) | Self::String16(_) => {}
            Self::Sequence { element, .. } | Self::Array { element, .. } => {
                element.ty.declared(found);
            }
            Self::Map { key, value, .. } => {
                key.ty.declared(found);
                value.ty.declared(found);
            }
            Self::Declared(index) => found(*index),
        }
    }
}

/// What a collection consists of.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// Its type.
    pub ty: Type,
    /// `@try_construct` on the element.
    pub try_construct: TryConstruct,
    /// `@external` on the element.
    pub external: bool,
}

impl Element {
    /// One without annotations.
    pub fn of(ty: Type) -> Self {
        Self {
            ty,
            try_construct: TryConstruct::Discard,
            external: false,
        }
    }
}

/// A declared type.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Scoped name, `module::Type`; the minimal form has none.
    pub name: Option<String>,
    /// Its annotations.
    pub annotations: Annotations,
    /// What it is.
    pub definition: Definition,
}

/// The kinds of declared types.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// `typedef`.
    Alias(Alias),
    /// `enum`.
    Enum(Enum),
    /// `bitmask`.
    Bitmask(Bitmask),
    /// `bitset`.
    Bitset(Bitset),
    /// `struct`.
    Struct(Struct),
    /// `union`.
    Union(Union),
    /// `@annotation`, which is not a data type.
    Annotation(Annotation),
}

/// A typedef.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// The type that it names.
    pub ty: Type,
    /// `@unit`.
    pub unit: Option<String>,
    /// `@range`, `@min` and `@max`.
    pub range: Range,
    /// Annotations of the use of that type.
    pub custom: Vec<Applied>,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Bits of the wire form, 1 to 32.
    pub bit_bound: u16,
    /// Final or appendable; `None` as some products set neither.
    pub extensibility: Option<Extensibility>,
    /// `@ignore_literal_names`, which is not part of a `TypeObject`.
    pub ignore_literal_names: bool,
    /// Literals.
    pub literals: Vec<Literal>,
}

/// A literal of an enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: i32,
    /// Whether it is the default.
    pub default: bool,
    /// Annotations that the IDL declares.
    pub custom: Vec<Applied>,
}

/// A set of named bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitmask {
    /// Number of bits, 1 to 64.
    pub bit_bound: u16,
    /// Final or appendable; `None` as some products set neither.
    pub extensibility: Option<Extensibility>,
    /// The bits that have names.
    pub flags: Vec<Flag>,
}

/// A named bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// Its name.
    pub name: Name,
    /// Bit position, 0 for the least significant.
    pub position: u16,
    /// Annotations that the IDL declares.
    pub custom: Vec<Applied>,
}

/// Bit fields packed into one integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitset {
    /// Fields, including inherited ones.
    pub fields: Vec<Field>,
}

/// A bit field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its least significant bit.
    pub position: u16,
    /// Number of bits, 1 to 64.
    pub bits: u8,
    /// The type of its value.
    pub holder: Primitive,
    /// Annotations that the IDL declares.
    pub custom: Vec<Applied>,
}

/// A structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// Extensibility.
    pub extensibility: Extensibility,
    /// `@nested`.
    pub nested: bool,
    /// `@autoid(HASH)`.
    pub autoid_hash: bool,
    /// Its base structure.
    pub base: Option<TypeIndex>,
    /// Members in the order of declaration, without those inherited.
    pub members: Vec<Member>,
}

/// A member of a structure, or a branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Name,
    /// Member id.
    pub id: u32,
    /// Its type.
    pub ty: Type,
    /// `@key`.
    pub key: bool,
    /// `@optional`.
    pub optional: bool,
    /// `@must_understand`.
    pub must_understand: bool,
    /// `@external`.
    pub external: bool,
    /// `@try_construct`.
    pub try_construct: TryConstruct,
    /// `@unit`.
    pub unit: Option<String>,
    /// `@range`, `@min` and `@max`.
    pub range: Range,
    /// `@hashid`; an empty text for the member's own name.
    pub hash_id: Option<String>,
    /// Annotations that the IDL declares.
    pub custom: Vec<Applied>,
    /// `@default`, which is not part of a `TypeObject`. A value of another type is ignored.
    pub default: Option<Value>,
}

impl Member {
    /// A member without annotations.
    pub fn new(name: &str, id: u32, ty: Type) -> Self {
        Self {
            name: Name::from(name),
            id,
            ty,
            key: false,
            optional: false,
            must_understand: false,
            external: false,
            try_construct: TryConstruct::Discard,
            unit: None,
            range: Range::default(),
            hash_id: None,
            custom: Vec::new(),
            default: None,
        }
    }

    /// This one with `@key`.
    #[must_use]
    pub fn key(self) -> Self {
        Self { key: true, ..self }
    }

    /// This one with `@optional`.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }
}

/// A union.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// Extensibility.
    pub extensibility: Extensibility,
    /// `@nested`.
    pub nested: bool,
    /// `@autoid(HASH)`.
    pub autoid_hash: bool,
    /// The discriminator.
    pub discriminator: Discriminator,
    /// Branches in the order of their declaration.
    pub branches: Vec<Branch>,
}

/// What selects a branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Discriminator {
    /// Its type.
    pub ty: Type,
    /// `@key`.
    pub key: bool,
    /// `@try_construct`.
    pub try_construct: TryConstruct,
    /// `@default`, as of a [`Member`].
    pub default: Option<Value>,
    /// Its annotations.
    pub annotations: Annotations,
}

/// A branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Values that select it.
    pub labels: Vec<i32>,
    /// Whether it is the default.
    pub default: bool,
    /// Its name and type.
    pub member: Member,
}
