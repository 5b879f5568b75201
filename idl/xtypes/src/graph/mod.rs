//! Types as they are made of each other: the one picture that all else starts from.
//!
//! A compiler or a program builds a [`TypeGraph`], or a [`Registry`](crate::Registry)
//! puts one together from `TypeObject`s. From it come `TypeObject`s and hashes
//! ([`describe`](crate::describe)), the answer whether a reader can read what a
//! writer writes ([`assignable`](crate::assignable)), and types at run time
//! ([`DynamicType`](crate::DynamicType)).

mod primitive;

pub use primitive::Primitive;

use std::fmt;

pub use spindle_dds_idl_runtime::Extensibility;

use crate::dynamic::Value;
use crate::object::{AnnotationValue, NameHash, TypeIdentifier};

/// XTypes 1.3 §7.3.1.2.1.12: what a reader does with a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TryConstruct {
    /// Whatever contains the value cannot be constructed either.
    #[default]
    Discard,
    /// The default takes its place.
    UseDefault,
    /// What is too long is cut.
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
}

/// A typedef.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// What it stands for.
    pub ty: Type,
    /// `@unit`.
    pub unit: Option<String>,
    /// `@range`, `@min` and `@max`.
    pub range: Range,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Bits of the wire form, 1 to 32.
    pub bit_bound: u16,
    /// Final or appendable; some products say neither.
    pub extensibility: Option<Extensibility>,
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
}

/// A set of named bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitmask {
    /// Number of bits, 1 to 64.
    pub bit_bound: u16,
    /// Final or appendable; some products say neither.
    pub extensibility: Option<Extensibility>,
    /// The bits that have names.
    pub flags: Vec<Flag>,
}

/// A named bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// Its name.
    pub name: Name,
    /// Which bit, 0 for the least significant.
    pub position: u16,
}

/// Bit fields side by side in one integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Bitset {
    /// Fields, inherited ones too.
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
}

/// A structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// `@nested`.
    pub nested: bool,
    /// `@autoid(HASH)`.
    pub autoid_hash: bool,
    /// What it inherits from.
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
    /// `@default`, which is not part of a `TypeObject`. Of a value that is not of the
    /// type, nothing comes.
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
    /// How it may evolve.
    pub extensibility: Extensibility,
    /// `@nested`.
    pub nested: bool,
    /// `@autoid(HASH)`.
    pub autoid_hash: bool,
    /// What selects a branch.
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

/// Declared types that are made of each other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TypeGraph {
    declarations: Vec<Option<Declaration>>,
    /// The minimal identifiers by which the types were put together, if they were: without
    /// names, those of types that contain each other cannot be found again.
    minimal: Vec<TypeIdentifier>,
}

/// Of a graph in which a type was reserved and never defined.
const MISSING: &Declaration = &Declaration {
    name: None,
    definition: Definition::Bitset(Bitset { fields: Vec::new() }),
};

impl TypeGraph {
    /// Without any type.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for a type that others name before it is defined: so types come
    /// to contain themselves.
    pub fn reserve(&mut self) -> TypeIndex {
        self.minimal.clear();
        self.declarations.push(None);
        TypeIndex(self.declarations.len() as u32 - 1)
    }

    /// Defines a type that there is room for. What it names must be of this graph.
    pub fn define(&mut self, index: TypeIndex, name: Option<&str>, definition: Definition) {
        self.minimal.clear();
        if let Some(declaration) = self.declarations.get_mut(index.0 as usize) {
            *declaration = Some(Declaration {
                name: name.map(str::to_owned),
                definition,
            });
        }
    }

    /// Adds a type.
    pub fn add(&mut self, name: &str, definition: Definition) -> TypeIndex {
        let index = self.reserve();
        self.define(index, Some(name), definition);
        index
    }

    /// The declaration of a type. Of a type that was reserved and not defined it is
    /// an empty bitset without a name.
    pub fn declaration(&self, index: TypeIndex) -> &Declaration {
        let found = self.declarations.get(index.0 as usize);
        found.and_then(Option::as_ref).unwrap_or(MISSING)
    }

    /// These are the minimal identifiers of all types, by their indices.
    pub(crate) fn set_minimal(&mut self, identifiers: Vec<TypeIdentifier>) {
        self.minimal = identifiers;
    }

    /// The minimal identifiers of all types, where they are known; else none.
    pub(crate) fn minimal(&self) -> &[TypeIdentifier] {
        &self.minimal
    }

    /// All types, in the order in which they were added.
    pub fn indices(&self) -> impl Iterator<Item = TypeIndex> + use<> {
        (0..self.declarations.len() as u32).map(TypeIndex)
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.declarations.len()
    }

    /// Whether there is no type.
    pub fn is_empty(&self) -> bool {
        self.declarations.is_empty()
    }

    /// The type of this scoped name.
    pub fn find(&self, name: &str) -> Option<TypeIndex> {
        self.indices()
            .find(|index| self.declaration(*index).name.as_deref() == Some(name))
    }

    /// What a type is once typedefs are looked through.
    pub fn resolved<'g>(&'g self, ty: &'g Type) -> &'g Type {
        let mut ty = ty;
        // More typedefs of typedefs are refused, and they may go in a circle.
        for _ in 0..=crate::limits::DEPTH_MAX {
            match ty {
                Type::Declared(index) => match &self.declaration(*index).definition {
                    Definition::Alias(alias) => ty = &alias.ty,
                    _ => return ty,
                },
                _ => return ty,
            }
        }
        ty
    }

    /// The types that a type's declaration names.
    pub(crate) fn names(&self, index: TypeIndex, found: &mut dyn FnMut(TypeIndex)) {
        match &self.declaration(index).definition {
            Definition::Enum(_) | Definition::Bitmask(_) | Definition::Bitset(_) => {}
            Definition::Alias(alias) => alias.ty.declared(found),
            Definition::Struct(structure) => {
                structure.base.into_iter().for_each(&mut *found);
                for member in &structure.members {
                    member.ty.declared(found);
                }
            }
            Definition::Union(union) => {
                union.discriminator.ty.declared(found);
                for branch in &union.branches {
                    branch.member.ty.declared(found);
                }
            }
        }
    }

    /// All members of a structure, those inherited first.
    pub fn members<'g>(&'g self, structure: &'g Struct) -> Vec<&'g Member> {
        let mut levels = Vec::new();
        self.each_level(structure, |level| levels.push(level));
        let members = levels.into_iter().rev();
        members.flat_map(|level| &level.members).collect()
    }

    /// Whether a structure inherits from structures only, not from itself, and not
    /// through too many levels.
    pub(crate) fn inherits_well(&self, structure: &Struct) -> bool {
        let mut level = structure;
        for _ in 0..crate::limits::DEPTH_MAX {
            let Some(base) = level.base else { return true };
            let Definition::Struct(next) = &self.declaration(base).definition else {
                return false;
            };
            level = next;
        }
        level.base.is_none()
    }

    /// Whether values of a type can select a branch of a union.
    pub(crate) fn selects(&self, ty: &Type) -> bool {
        match self.resolved(ty) {
            Type::Primitive(primitive) => primitive.selects(),
            Type::Declared(index) => {
                matches!(self.declaration(*index).definition, Definition::Enum(_))
            }
            _ => false,
        }
    }

    /// A structure and all that it inherits from, ending where that goes in a circle.
    fn each_level<'g>(&'g self, structure: &'g Struct, mut visit: impl FnMut(&'g Struct)) {
        let mut level = structure;
        visit(level);
        for _ in 0..self.declarations.len() {
            let Some(base) = level.base else { return };
            let Definition::Struct(next) = &self.declaration(base).definition else {
                return;
            };
            level = next;
            visit(level);
        }
    }
}
