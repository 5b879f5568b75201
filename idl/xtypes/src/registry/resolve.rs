//! From identifiers to a graph: each type once, however often it is named.

use std::collections::{HashMap, HashSet};

use super::{Registry, Resolved, TypeError};
use crate::graph::{Definition, Element, Type, TypeGraph, TypeIndex};
use crate::limits::{DEPTH_MAX, DIMENSIONS_MAX, TYPES_MAX};
use crate::object::{ComponentId, Equivalence, PlainElement, TypeIdentifier, TypeObject};

/// One resolution.
pub(super) struct Resolver {
    graph: TypeGraph,
    known: HashMap<TypeIdentifier, TypeIndex>,
    waiting: Vec<(TypeIdentifier, TypeIndex)>,
}

pub(super) fn resolve(
    registry: &Registry,
    identifier: &TypeIdentifier,
) -> Result<Resolved, TypeError> {
    let mut resolver = Resolver {
        graph: TypeGraph::new(),
        known: HashMap::new(),
        waiting: Vec::new(),
    };
    let mut components = HashSet::new();
    let ty = resolver.ty(identifier)?;
    while let Some((identifier, index)) = resolver.waiting.pop() {
        let Some(object) = registry.object(&identifier) else {
            return Err(TypeError::Unknown { identifier });
        };
        if let TypeIdentifier::Component(id) = identifier
            && components.insert(ComponentId { index: 1, ..id })
        {
            registry.check_component(id)?;
        }
        let (name, annotations, definition) = match object {
            TypeObject::Complete(object) => resolver.definition(object)?,
            TypeObject::Minimal(object) => resolver.definition(object)?,
        };
        resolver.graph.define(index, name.as_deref(), definition);
        resolver.graph.annotate(index, annotations);
    }
    check(&resolver.graph)?;
    resolver.keep_minimal();
    Ok(Resolved {
        graph: resolver.graph,
        ty,
    })
}

impl Resolver {
    /// The graph keeps the identifiers, if all of them are minimal.
    fn keep_minimal(&mut self) {
        let mut identifiers = vec![TypeIdentifier::None; self.graph.len()];
        for (identifier, index) in &self.known {
            if let (true, Some(place)) = (
                identifier.equivalence() == Some(Equivalence::Minimal),
                identifiers.get_mut(index.0 as usize),
            ) {
                *place = identifier.clone();
            }
        }
        if !identifiers.contains(&TypeIdentifier::None) {
            self.graph.set_minimal(identifiers);
        }
    }

    /// A use of a type; the types that it names are queued for resolution.
    pub(super) fn ty(&mut self, identifier: &TypeIdentifier) -> Result<Type, TypeError> {
        self.ty_within(identifier, DEPTH_MAX)
    }

    fn ty_within(&mut self, identifier: &TypeIdentifier, depth: usize) -> Result<Type, TypeError> {
        let depth = depth.checked_sub(1).ok_or(TypeError::TooLarge)?;
        let bounded = |bound: u32| (bound != 0).then_some(bound);
        Ok(match identifier {
            TypeIdentifier::Primitive(primitive) => Type::Primitive(*primitive),
            TypeIdentifier::String8 { bound } => Type::String8(bounded(*bound)),
            TypeIdentifier::String16 { bound } => Type::String16(bounded(*bound)),
            TypeIdentifier::Sequence { bound, element, .. } => Type::Sequence {
                element: self.element(element, depth)?,
                bound: bounded(*bound),
            },
            TypeIdentifier::Array {
                bounds, element, ..
            } => {
                let element = self.element(element, depth)?;
                array(element, bounds.clone()).ok_or_else(|| TypeError::Malformed {
                    name: identifier.to_string(),
                    reason: "an array has no elements, or too many",
                })?
            }
            TypeIdentifier::Map {
                bound, key, value, ..
            } => Type::Map {
                key: self.element(key, depth)?,
                value: self.element(value, depth)?,
                bound: bounded(*bound),
            },
            TypeIdentifier::Component(_) | TypeIdentifier::Hash(..) => {
                Type::Declared(self.declared(identifier)?)
            }
            TypeIdentifier::None | TypeIdentifier::Extended(_) => {
                return Err(TypeError::Unknown {
                    identifier: identifier.clone(),
                });
            }
        })
    }

    fn element(&mut self, element: &PlainElement, depth: usize) -> Result<Box<Element>, TypeError> {
        let ty = self.ty_within(&element.identifier, depth)?;
        Ok(Box::new(super::convert::element(ty, element.flags)))
    }

    /// The index of a declared type in the graph.
    pub(super) fn declared(&mut self, identifier: &TypeIdentifier) -> Result<TypeIndex, TypeError> {
        if let Some(index) = self.known.get(identifier) {
            return Ok(*index);
        }
        if self.graph.len() >= TYPES_MAX {
            return Err(TypeError::TooLarge);
        }
        let index = self.graph.reserve();
        self.known.insert(identifier.clone(), index);
        self.waiting.push((identifier.clone(), index));
        Ok(index)
    }
}

/// An array, if its dimensions are positive and not too many, and its size does not overflow.
pub(super) fn array(element: Box<Element>, dimensions: Vec<u32>) -> Option<Type> {
    let mut count: u32 = 1;
    for dimension in &dimensions {
        count = count.checked_mul(*dimension)?;
    }
    (count > 0 && (1..=DIMENSIONS_MAX).contains(&dimensions.len())).then_some(Type::Array {
        element,
        dimensions,
    })
}

/// Checks that are possible only once all types are resolved.
fn check(graph: &TypeGraph) -> Result<(), TypeError> {
    for index in graph.indices() {
        let declaration = graph.declaration(index);
        let name = declaration.name.clone().unwrap_or_default();
        let malformed = |reason| TypeError::Malformed {
            name: name.clone(),
            reason,
        };
        let (mut is_data, mut are_annotations) = (true, true);
        graph.names(index, &mut |named| is_data &= !graph.is_annotation(named));
        graph.annotations(index, &mut |named| {
            are_annotations &= graph.is_annotation(named)
        });
        if !is_data || !are_annotations {
            return Err(malformed(
                "it takes an annotation for a type, or a type for one",
            ));
        }
        match &declaration.definition {
            Definition::Alias(alias) => {
                if let Type::Declared(inner) = graph.resolved(&alias.ty)
                    && matches!(graph.declaration(*inner).definition, Definition::Alias(_))
                {
                    return Err(malformed(
                        "a typedef stands for itself, or for too many others",
                    ));
                }
            }
            Definition::Struct(structure) => {
                if !graph.inherits_well(structure) {
                    return Err(malformed("it inherits from itself or from no structure"));
                }
                let members = graph.members(structure);
                if !super::convert::distinct(members.iter().map(|member| member.id)) {
                    return Err(malformed("two members have one id"));
                }
            }
            Definition::Union(union) => {
                if !graph.selects(&union.discriminator.ty) {
                    return Err(malformed(
                        "the discriminator is of a type that selects nothing",
                    ));
                }
            }
            Definition::Annotation(annotation) => {
                let mut parameters = annotation.parameters.iter();
                if !parameters.all(|parameter| graph.has_constants(&parameter.ty)) {
                    return Err(malformed("a parameter is of a type that has no constants"));
                }
            }
            Definition::Enum(_) | Definition::Bitmask(_) | Definition::Bitset(_) => {}
        }
    }
    Ok(())
}
