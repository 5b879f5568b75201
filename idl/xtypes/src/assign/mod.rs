//! Assignability, whether a reader can read the samples of a writer: XTypes 1.3 §7.2.4.
//!
//! The reader's type must be *assignable* from the writer's, and for members that are
//! encoded without lengths, *strongly* assignable: the same type, or assignable and
//! encoded with a length before it. Further rules depend on the extensibility, which must
//! be the same for both. The answer is yes, or the first difference and its path.
//!
//! `leaf` compares strings, enumerations, bits and collections, `structure` and `union`
//! types with members.
//!
//! Types are untrusted input and may have exponentially many paths: two uses of types are
//! compared once per [`View`], and all steps count against a limit.

mod leaf;
mod structure;
#[cfg(test)]
mod tests;
mod union;

use std::collections::HashSet;
use std::fmt;

use spindle_dds_idl_runtime::Representation;

use crate::describe::minimal_identifiers;
use crate::graph::{Definition, Element, Extensibility, Type, TypeGraph, TypeIndex};
use crate::limits::{COMPARE_STEPS_MAX, DEPTH_MAX};
use crate::object::TypeIdentifier;
use crate::registry::Resolved;

/// The options of TYPE_CONSISTENCY_ENFORCEMENT: XTypes 1.3 §7.6.3.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Consistency {
    /// Whether the types may differ at all: ALLOW_TYPE_COERCION.
    pub allow_coercion: bool,
    /// Whether bounds of sequences and maps are ignored.
    pub ignore_sequence_bounds: bool,
    /// Whether bounds of strings are ignored.
    pub ignore_string_bounds: bool,
    /// Whether names of members are ignored.
    pub ignore_member_names: bool,
    /// Whether the reader's type may have no member that the writer's lacks.
    pub prevent_type_widening: bool,
    /// Whether an unknown type is refused.
    pub force_type_validation: bool,
}

impl Default for Consistency {
    fn default() -> Self {
        Self {
            allow_coercion: true,
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: false,
            prevent_type_widening: false,
            force_type_validation: false,
        }
    }
}

/// The first difference between two types, with its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mismatch {
    /// The path from the type: `Track.position.lat`; `[]` is an element of a collection.
    pub path: String,
    /// The difference at that path.
    pub difference: Difference,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.difference)
    }
}

/// A difference between two types; the reader's side is always first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// Coercion is not allowed, and the types are not the same.
    #[error("the types differ, and coercion is not allowed")]
    Coercion,
    /// One of them is unknown, but must be known.
    #[error("the {0} type is not known, and validation is forced")]
    Unknown(&'static str),
    /// Types of different kinds.
    #[error("{reader} cannot be read from {writer}")]
    Kind {
        /// In the reader's type.
        reader: String,
        /// In the writer's type.
        writer: String,
    },
    /// `@final`, `@appendable` or `@mutable`.
    #[error("{reader:?} is not {writer:?}")]
    Extensibility {
        /// In the reader's type.
        reader: Extensibility,
        /// In the writer's type.
        writer: Extensibility,
    },
    /// The writer's bound exceeds the reader's.
    #[error("{what} bound {reader} is less than {writer}")]
    Bound {
        /// `string`, `sequence` or `map`.
        what: &'static str,
        /// In the reader's type.
        reader: u32,
        /// In the writer's type, or `unbounded`.
        writer: String,
    },
    /// Arrays of different dimensions.
    #[error("array {reader:?} is not {writer:?}")]
    Dimensions {
        /// In the reader's type.
        reader: Vec<u32>,
        /// In the writer's type.
        writer: Vec<u32>,
    },
    /// Enumerations or bitmasks of different numbers of bits.
    #[error("{reader} bits are not {writer}")]
    Bits {
        /// In the reader's type.
        reader: u16,
        /// In the writer's type.
        writer: u16,
    },
    /// A literal, flag or field has another value, place or name.
    #[error("{0} is not the same in both types")]
    Literal(String),
    /// A key of the writer may have a literal that the reader's type lacks.
    #[error("the reader does not have {0}, which may be a key")]
    KeyLiteral(String),
    /// Assignable, but different, and encoded without a length.
    #[error("the types differ, and nothing says how long the value is")]
    NotDelimited,
    /// A member has the same id but another name.
    #[error("member id {id} is {reader} to the reader and {writer} to the writer")]
    Name {
        /// The id.
        id: u32,
        /// The reader's name.
        reader: String,
        /// The writer's name.
        writer: String,
    },
    /// A member has the same name but another id.
    #[error("it has id {reader} to the reader and {writer} to the writer")]
    Id {
        /// In the reader's type.
        reader: u32,
        /// In the writer's type.
        writer: u32,
    },
    /// One is `@optional`, the other is not.
    #[error("it is optional to one of them only")]
    Optional,
    /// A member that must be in both types is in one only.
    #[error("the {lacks} lacks it, and it is {why}")]
    Missing {
        /// The side that lacks it.
        lacks: &'static str,
        /// `a key`, `must_understand`, or the like.
        why: &'static str,
    },
    /// The types have no member, or no label, in common.
    #[error("the types have no {0} in common")]
    NothingInCommon(&'static str),
    /// A label of a final union is in one type only.
    #[error("label {0} is not one of both unions, which are final")]
    Label(String),
    /// The discriminator is a key of one union only.
    #[error("the discriminator is a key of one of them only")]
    DiscriminatorKey,
    /// The types nest too deeply to be compared.
    #[error("the types nest deeper than {DEPTH_MAX}")]
    TooDeep,
    /// The types are so large or entangled that the comparison exceeds the limit of steps.
    #[error("the types cannot be compared in {COMPARE_STEPS_MAX} steps")]
    TooLarge,
}

/// The aspect of a type that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum View {
    /// The type as it is.
    Whole,
    /// All members, ignoring which are keys: for members that are not keys.
    KeyErased,
    /// Only the key members: for members that are keys.
    KeyHolder,
    /// The possible values of a key.
    KeyValues,
}

/// The identity of a use of a type: that of a declared type is its index, that of any other
/// its address in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Declared(TypeIndex),
    At(*const Type),
}

/// A use of a type in one of the graphs.
#[derive(Clone, Copy)]
struct Side<'g> {
    graph: &'g TypeGraph,
    ty: &'g Type,
}

impl<'g> Side<'g> {
    fn with(self, ty: &'g Type) -> Self {
        Self {
            graph: self.graph,
            ty: self.graph.resolved(ty),
        }
    }

    fn definition(self) -> Option<&'g Definition> {
        match self.ty {
            Type::Declared(index) => Some(&self.graph.declaration(*index).definition),
            _ => None,
        }
    }

    fn of_use(self) -> Use {
        match self.ty {
            Type::Declared(index) => Use::Declared(*index),
            other => Use::At(other),
        }
    }
}

/// Whether a reader of one type can read the samples of a writer of another type in a
/// representation. `None` is an unknown type: it matches by name alone, unless validation
/// is forced.
///
/// # Errors
/// The first difference between the types.
pub fn assignable(
    reader: Option<&Resolved>,
    writer: Option<&Resolved>,
    representation: Representation,
    consistency: &Consistency,
) -> Result<(), Mismatch> {
    let (Some(reader), Some(writer)) = (reader, writer) else {
        let side = if reader.is_none() {
            "reader's"
        } else {
            "writer's"
        };
        return match consistency.force_type_validation {
            true => Err(Mismatch {
                path: "type".to_owned(),
                difference: Difference::Unknown(side),
            }),
            false => Ok(()),
        };
    };
    compare(reader, writer, representation, consistency).0
}

/// As [`assignable`], for known types; also returns the number of steps.
fn compare(
    reader: &Resolved,
    writer: &Resolved,
    representation: Representation,
    consistency: &Consistency,
) -> (Result<(), Mismatch>, usize) {
    let name = name_of(reader).or_else(|| name_of(writer));
    let mut comparison = Comparison {
        reader_identifiers: minimal_identifiers(&reader.graph),
        writer_identifiers: minimal_identifiers(&writer.graph),
        representation,
        consistency: *consistency,
        assumed: HashSet::new(),
        steps: 0,
        path: vec![name.unwrap_or("type").to_owned()],
    };
    let sides = [reader, writer].map(|resolved| Side {
        graph: &resolved.graph,
        ty: resolved.graph.resolved(&resolved.ty),
    });
    let outcome = match consistency.allow_coercion {
        true => comparison.assignable(sides[0], sides[1], View::Whole),
        false if comparison.equal(sides[0].ty, sides[1].ty) => Ok(()),
        false => Err(Difference::Coercion),
    };
    let outcome = outcome.map_err(|difference| Mismatch {
        path: comparison.path.concat(),
        difference,
    });
    (outcome, comparison.steps)
}

/// The last part of the scoped name.
fn name_of(resolved: &Resolved) -> Option<&str> {
    let name = match &resolved.ty {
        Type::Declared(index) => resolved.graph.declaration(*index).name.as_deref(),
        _ => None,
    };
    name.and_then(|name| name.rsplit("::").next())
}

/// One comparison.
struct Comparison {
    reader_identifiers: Vec<TypeIdentifier>,
    writer_identifiers: Vec<TypeIdentifier>,
    representation: Representation,
    consistency: Consistency,
    /// Pairs that have been compared, or are being compared further out: so the comparison of
    /// recursive types terminates. (A difference ends the comparison.)
    assumed: HashSet<(Use, Use, View)>,
    /// Types, members, labels and literals visited.
    steps: usize,
    /// The path of the current comparison, which stays as it is when a difference is found.
    path: Vec<String>,
}

type Outcome = Result<(), Difference>;

impl Comparison {
    /// Runs a comparison one step further in.
    fn within(&mut self, step: String, compare: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        if self.path.len() > DEPTH_MAX {
            return Err(Difference::TooDeep);
        }
        self.path.push(step);
        compare(self)?;
        self.path.pop();
        Ok(())
    }

    /// Counts members, labels or literals to be visited.
    fn spend(&mut self, steps: usize) -> Outcome {
        self.steps = self.steps.saturating_add(steps);
        match self.steps <= COMPARE_STEPS_MAX {
            true => Ok(()),
            false => Err(Difference::TooLarge),
        }
    }

    /// Whether this pair is compared for the first time in this view.
    fn is_new(&mut self, reader: Side<'_>, writer: Side<'_>, view: View) -> bool {
        let pair = (reader.of_use(), writer.of_use(), view);
        self.assumed.insert(pair)
    }

    /// Whether the minimal identifiers are equal, and so the types apart from names. A type
    /// without an identifier equals no other.
    fn equal(&mut self, reader: &Type, writer: &Type) -> bool {
        self.steps += 1;
        let bound = |bound: &Option<u32>| bound.unwrap_or(0);
        match (reader, writer) {
            (Type::Primitive(one), Type::Primitive(other)) => one == other,
            (Type::String8(one), Type::String8(other))
            | (Type::String16(one), Type::String16(other)) => bound(one) == bound(other),
            (
                Type::Sequence {
                    element,
                    bound: most,
                },
                Type::Sequence {
                    element: other,
                    bound: others,
                },
            ) => bound(most) == bound(others) && self.equal_elements(element, other),
            (
                Type::Array {
                    element,
                    dimensions,
                },
                Type::Array {
                    element: other,
                    dimensions: others,
                },
            ) => dimensions == others && self.equal_elements(element, other),
            (
                Type::Map {
                    key,
                    value,
                    bound: most,
                },
                Type::Map {
                    key: other_key,
                    value: other_value,
                    bound: others,
                },
            ) => {
                bound(most) == bound(others)
                    && self.equal_elements(key, other_key)
                    && self.equal_elements(value, other_value)
            }
            (Type::Declared(one), Type::Declared(other)) => {
                let one = self.reader_identifiers.get(one.0 as usize);
                let other = self.writer_identifiers.get(other.0 as usize);
                one.is_some() && one == other
            }
            _ => false,
        }
    }

    fn equal_elements(&mut self, one: &Element, other: &Element) -> bool {
        one.try_construct == other.try_construct
            && one.external == other.external
            && self.equal(&one.ty, &other.ty)
    }

    /// Whether the types are the same, or assignable and delimited.
    fn strongly(&mut self, reader: Side<'_>, writer: Side<'_>) -> Outcome {
        if self.equal(reader.ty, writer.ty) {
            return Ok(());
        }
        self.assignable(reader, writer, View::Whole)?;
        match self.is_delimited(writer) {
            true => Ok(()),
            false => Err(Difference::NotDelimited),
        }
    }

    /// Whether the reader's type is assignable from the writer's.
    fn assignable(&mut self, reader: Side<'_>, writer: Side<'_>, view: View) -> Outcome {
        self.spend(1)?;
        if self.equal(reader.ty, writer.ty) || !self.is_new(reader, writer, view) {
            return Ok(());
        }
        match (reader.definition(), writer.definition()) {
            (Some(Definition::Struct(one)), Some(Definition::Struct(other))) => {
                self.structure((reader.graph, one), (writer.graph, other), view)
            }
            (Some(Definition::Union(one)), Some(Definition::Union(other))) => {
                self.union((reader.graph, one), (writer.graph, other), view)
            }
            _ => self.leaf(reader, writer),
        }
    }

    /// Whether readers can skip a value without knowing its type: §7.2.4.2.
    fn is_delimited(&mut self, side: Side<'_>) -> bool {
        let mut seen = HashSet::new();
        let mut waiting = vec![side];
        while let Some(side) = waiting.pop() {
            if !seen.insert(side.of_use()) {
                continue;
            }
            self.steps += 1;
            match side.ty {
                Type::Primitive(_) | Type::String8(_) | Type::String16(_) => {}
                Type::Sequence { element, .. } | Type::Array { element, .. } => {
                    waiting.push(side.with(&element.ty));
                }
                Type::Map { key, value, .. } => {
                    waiting.extend([side.with(&key.ty), side.with(&value.ty)]);
                }
                Type::Declared(_) => {
                    let extensibility = match side.definition() {
                        Some(Definition::Struct(structure)) => structure.extensibility,
                        Some(Definition::Union(union)) => union.extensibility,
                        _ => continue,
                    };
                    if !self.delimits(extensibility) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn delimits(&self, extensibility: Extensibility) -> bool {
        match extensibility {
            Extensibility::Final => false,
            Extensibility::Appendable => self.representation == Representation::Xcdr2,
            Extensibility::Mutable => true,
        }
    }
}
