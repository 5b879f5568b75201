//! `TypeObject`s and `TypeIdentifier`s of the types of a graph: XTypes 1.3 §7.3.4.
//!
//! A type that does not contain itself is identified by the hash of its `TypeObject`,
//! which contains the identifiers of its dependencies: so those are computed first.
//! Types that contain each other (a strongly connected component of the graph) are
//! identified together (§7.3.4.9.2): they are numbered in the order of their names, their
//! objects are made with a hash of zero in all identifiers among them, the hash of the
//! sequence of those objects is the hash of all, and the objects are made again with it.

mod component;
mod objects;

use std::collections::HashSet;

use spindle_dds_idl_runtime::CdrError;

use crate::graph::{Element, Type, TypeGraph, TypeIndex};
use crate::object::{
    Complete, ComponentId, Equivalence, EquivalenceHash, Form, IdentifiedObject, MemberFlags,
    Minimal, PlainElement, SizedIdentifier, TypeDefinition, TypeIdentifier, TypeInformation,
    TypeObject, TypeObjects, WithDependencies,
};
use crate::wire::to_bytes;

pub(crate) use component::strongly_connected;

/// The identifiers and objects of the types of a graph, in both forms.
#[derive(Debug, Clone)]
pub struct Descriptions {
    minimal: Vec<Described>,
    complete: Vec<Described>,
}

/// A type: its identifier and its object.
#[derive(Debug, Clone)]
pub struct Described {
    /// The identifier.
    pub identifier: TypeIdentifier,
    /// The object.
    pub object: TypeObject,
    /// Bytes of the object.
    pub size: u32,
}

/// Describes all types of a graph.
///
/// # Errors
/// A name of more than 256 bytes or with a NUL.
pub fn describe(graph: &TypeGraph) -> Result<Descriptions, CdrError> {
    let wrap_minimal = |definition| TypeObject::Minimal(Box::new(definition));
    let wrap_complete = |definition| TypeObject::Complete(Box::new(definition));
    Ok(Descriptions {
        minimal: describe_form::<Minimal>(graph, wrap_minimal)?,
        complete: describe_form::<Complete>(graph, wrap_complete)?,
    })
}

impl Descriptions {
    /// The minimal form of a type.
    pub fn minimal(&self, index: TypeIndex) -> Option<&Described> {
        self.minimal.get(index.0 as usize)
    }

    /// The complete form of a type.
    pub fn complete(&self, index: TypeIndex) -> Option<&Described> {
        self.complete.get(index.0 as usize)
    }

    /// The type information that discovery announces for a type of the graph.
    pub fn information(&self, graph: &TypeGraph, index: TypeIndex) -> Option<TypeInformation> {
        let minimal = component::reachable::<Minimal>(graph, index);
        let complete = component::reachable::<Complete>(graph, index);
        Some(TypeInformation {
            minimal: with_dependencies(&self.minimal, &minimal)?,
            complete: with_dependencies(&self.complete, &complete)?,
        })
    }

    /// The complete objects of a type and of its dependencies, itself first.
    pub fn objects(&self, graph: &TypeGraph, index: TypeIndex) -> TypeObjects {
        objects(
            &self.complete,
            &component::reachable::<Complete>(graph, index),
        )
    }

    /// The minimal objects of a type and of its dependencies, itself first.
    pub fn minimal_objects(&self, graph: &TypeGraph, index: TypeIndex) -> TypeObjects {
        objects(
            &self.minimal,
            &component::reachable::<Minimal>(graph, index),
        )
    }
}

/// The objects of these types; types that are equal in this form occur once.
fn objects(described: &[Described], reachable: &[TypeIndex]) -> TypeObjects {
    let mut seen = HashSet::new();
    let found = reachable
        .iter()
        .filter_map(|index| described.get(index.0 as usize));
    let objects = found
        .filter(|one| seen.insert(&one.identifier))
        .map(|one| IdentifiedObject {
            identifier: one.identifier.clone(),
            object: one.object.clone(),
        });
    TypeObjects(objects.collect())
}

fn with_dependencies(described: &[Described], reachable: &[TypeIndex]) -> Option<WithDependencies> {
    let sized = |index: &TypeIndex| {
        let one = described.get(index.0 as usize)?;
        Some(SizedIdentifier {
            identifier: one.identifier.clone(),
            object_size: one.size,
        })
    };
    let (first, rest) = reachable.split_first()?;
    let dependents: Vec<_> = rest.iter().filter_map(sized).collect();
    Some(WithDependencies {
        sized: sized(first)?,
        dependent_count: dependents.len() as i32,
        dependents,
    })
}

/// The identifiers found so far, by the index of the type.
struct Identifiers<'g> {
    graph: &'g TypeGraph,
    found: Vec<TypeIdentifier>,
}

fn describe_form<F: Form>(
    graph: &TypeGraph,
    wrap: impl Fn(TypeDefinition<F>) -> TypeObject,
) -> Result<Vec<Described>, CdrError> {
    let mut identifiers = Identifiers {
        graph,
        found: vec![TypeIdentifier::None; graph.len()],
    };
    for component in component::components::<F>(graph) {
        let types = &component.types;
        if !component.recursive {
            for index in types {
                let object = wrap(identifiers.definition::<F>(*index));
                identifiers.set(*index, object.identifier()?);
            }
            continue;
        }
        identifiers.set_component(types, F::EQUIVALENCE, EquivalenceHash::default());
        let objects: Vec<TypeObject> = types
            .iter()
            .map(|index| wrap(identifiers.definition::<F>(*index)))
            .collect();
        let hash = EquivalenceHash::of(&to_bytes(&objects)?);
        identifiers.set_component(types, F::EQUIVALENCE, hash);
    }
    let describe = |index: TypeIndex| {
        let object = wrap(identifiers.definition::<F>(index));
        let size = object.to_bytes()?.len() as u32;
        let identifier = identifiers.get(index);
        Ok(Described {
            identifier,
            object,
            size,
        })
    };
    graph.indices().map(describe).collect()
}

impl Identifiers<'_> {
    fn get(&self, index: TypeIndex) -> TypeIdentifier {
        let found = self.found.get(index.0 as usize).cloned();
        found.unwrap_or(TypeIdentifier::None)
    }

    fn set(&mut self, index: TypeIndex, identifier: TypeIdentifier) {
        if let Some(found) = self.found.get_mut(index.0 as usize) {
            *found = identifier;
        }
    }

    fn set_component(
        &mut self,
        types: &[TypeIndex],
        equivalence: Equivalence,
        hash: EquivalenceHash,
    ) {
        for (number, index) in (1..).zip(types) {
            self.set(
                *index,
                TypeIdentifier::Component(ComponentId {
                    equivalence,
                    hash,
                    length: types.len() as i32,
                    index: number,
                }),
            );
        }
    }

    /// The identifier of a use of a type, whose declared types already have theirs.
    fn identifier<F: Form>(&self, ty: &Type) -> TypeIdentifier {
        match ty {
            Type::Primitive(primitive) => TypeIdentifier::Primitive(*primitive),
            Type::String8(bound) => TypeIdentifier::String8 {
                bound: bound.unwrap_or(0),
            },
            Type::String16(bound) => TypeIdentifier::String16 {
                bound: bound.unwrap_or(0),
            },
            Type::Sequence { element, bound } => {
                let element = self.element::<F>(element);
                TypeIdentifier::Sequence {
                    equivalence: equivalence::<F>(&[&element]),
                    bound: bound.unwrap_or(0),
                    element: Box::new(element),
                }
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let element = self.element::<F>(element);
                TypeIdentifier::Array {
                    equivalence: equivalence::<F>(&[&element]),
                    bounds: dimensions.clone(),
                    element: Box::new(element),
                }
            }
            Type::Map { key, value, bound } => {
                let (key, value) = (self.element::<F>(key), self.element::<F>(value));
                TypeIdentifier::Map {
                    equivalence: equivalence::<F>(&[&key, &value]),
                    bound: bound.unwrap_or(0),
                    key: Box::new(key),
                    value: Box::new(value),
                }
            }
            Type::Declared(index) => self.get(*index),
        }
    }

    fn element<F: Form>(&self, element: &Element) -> PlainElement {
        PlainElement {
            flags: element_flags(element),
            identifier: self.identifier::<F>(&element.ty),
        }
    }
}

/// Whether the identifier of a collection describes it completely.
fn equivalence<F: Form>(elements: &[&PlainElement]) -> Equivalence {
    let full = |element: &&PlainElement| element.identifier.is_fully_descriptive();
    match elements.iter().all(full) {
        true => Equivalence::Both,
        false => F::EQUIVALENCE,
    }
}

fn element_flags(element: &Element) -> MemberFlags {
    MemberFlags::of(element.try_construct).with(MemberFlags::EXTERNAL, element.external)
}

/// The minimal identifiers of all types of a graph. A type without one, because of a name
/// that is too long, equals no other.
pub(crate) fn minimal_identifiers(graph: &TypeGraph) -> Vec<TypeIdentifier> {
    if !graph.minimal().is_empty() {
        return graph.minimal().to_vec();
    }
    let wrap = |definition| TypeObject::Minimal(Box::new(definition));
    match describe_form::<Minimal>(graph, wrap) {
        Ok(described) => described.into_iter().map(|one| one.identifier).collect(),
        Err(_) => Vec::new(),
    }
}
