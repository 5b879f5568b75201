//! From the model to type objects: XTypes 1.3 §7.3.4.
//!
//! A struct, union, enum, bitmask, bitset or typedef becomes a declaration of a
//! [`TypeGraph`], from which `spindle-dds-xtypes` makes `TypeObject`s. It omits members that
//! are not serialized. These types are not representable in XTypes, nor are types that
//! contain them:
//!
//! - `fixed`, exceptions, native types and interfaces;
//! - unions with a label beyond 32 bits;
//! - bitsets whose wire form is wider than their last named field requires;
//! - names of more than 256 bytes.
//!
//! A type object has no form for `@default`, `@ignore_literal_names`, annotations of
//! collection elements, or a second `@verbatim` of a type. The flag that a key member must
//! be understood is implied and not set, as in other products; assignability does not
//! depend on it.

mod annotations;
mod convert;

use spindle_dds_idl_runtime::CdrError;
use spindle_dds_xtypes::graph::Definition;
use spindle_dds_xtypes::object::{TypeInformation, TypeObjects};
use spindle_dds_xtypes::{Descriptions, DynamicType, TypeGraph, TypeIndex, describe};

use crate::model::{
    AnnotationDecl, Element, Member, Model, Type, TypeDecl, TypeId, TypeKind, Value,
};

/// Longest name in bytes: Annex B.
const NAME_BYTES_MAX: usize = 256;

/// The type objects of a model.
#[derive(Debug)]
pub struct TypeDescriptions {
    graph: TypeGraph,
    /// The index of each declared type in the graph; `None` if it is not representable.
    indices: Vec<Option<TypeIndex>>,
    descriptions: Descriptions,
}

impl TypeDescriptions {
    /// Describes all representable types of a model.
    ///
    /// # Errors
    /// Never for a model without errors: names were checked before.
    pub fn of(model: &Model) -> Result<Self, CdrError> {
        let mut graph = TypeGraph::new();
        let describable = describable(model);
        let place = |describable: &bool| describable.then(|| graph.reserve());
        let indices: Vec<Option<TypeIndex>> = describable.iter().map(place).collect();
        let mut converter = convert::Converter {
            model,
            indices: &indices,
            annotations: &[],
        };
        let annotation = |declared: &AnnotationDecl| {
            let definition = Definition::Annotation(converter.annotation(declared)?);
            Some(graph.add(&declared.name, definition))
        };
        let annotations: Vec<_> = model.annotations.iter().map(annotation).collect();
        converter.annotations = &annotations;
        for (decl, index) in model.types.iter().zip(&indices) {
            let Some(index) = index else { continue };
            if let Some(definition) = converter.definition(decl) {
                graph.define(*index, Some(&scoped_name(decl)), definition);
                graph.annotate(*index, converter.annotations(decl));
            }
        }
        let descriptions = describe(&graph)?;
        Ok(Self {
            graph,
            indices,
            descriptions,
        })
    }

    /// All representable types.
    pub fn graph(&self) -> &TypeGraph {
        &self.graph
    }

    /// Identifiers and objects of all of them.
    pub fn descriptions(&self) -> &Descriptions {
        &self.descriptions
    }

    /// The index of a type of the model in the graph; `None` if it is not representable.
    pub fn index(&self, id: TypeId) -> Option<TypeIndex> {
        self.indices.get(id.0).copied().flatten()
    }

    /// The type information that discovery announces.
    pub fn information(&self, id: TypeId) -> Option<TypeInformation> {
        self.descriptions.information(&self.graph, self.index(id)?)
    }

    /// The complete type objects of a type and of its dependencies.
    pub fn objects(&self, id: TypeId) -> Option<TypeObjects> {
        Some(self.descriptions.objects(&self.graph, self.index(id)?))
    }

    /// The dynamic type.
    pub fn dynamic(&self, id: TypeId) -> Option<DynamicType> {
        let ty = spindle_dds_xtypes::graph::Type::Declared(self.index(id)?);
        Some(DynamicType::new(self.graph.clone(), ty))
    }
}

fn scoped_name(decl: &TypeDecl) -> String {
    let scope = decl.scope.iter().map(|module| format!("{module}::"));
    scope.chain([decl.name.clone()]).collect()
}

/// For each type, whether it is representable: neither it nor a type that it contains is
/// excluded.
fn describable(model: &Model) -> Vec<bool> {
    let mut found: Vec<bool> = model.types.iter().map(|decl| alone(model, decl)).collect();
    loop {
        let mut changed = false;
        for (at, decl) in model.types.iter().enumerate() {
            if found[at] && !contents(decl).iter().all(|ty| known(ty, &found)) {
                found[at] = false;
                changed = true;
            }
        }
        if !changed {
            return found;
        }
    }
}

/// Whether a type is representable, apart from the types that it contains.
fn alone(model: &Model, decl: &TypeDecl) -> bool {
    let short = |name: &str| name.len() <= NAME_BYTES_MAX;
    short(&scoped_name(decl))
        && match &decl.kind {
            TypeKind::Struct(structure) => {
                !structure.exception && structure.members.iter().all(|one| short(&one.name))
            }
            TypeKind::Union(union) => union.branches.iter().all(|branch| {
                let fits = |label: &Value| convert::label(model, label).is_some();
                short(&branch.member.name) && branch.labels.iter().all(fits)
            }),
            TypeKind::Enum(enumeration) => enumeration.literals.iter().all(|one| short(&one.name)),
            TypeKind::Bitmask(mask) => mask.flags.iter().all(|one| short(&one.name)),
            TypeKind::Bitset(bitset) => {
                let ends = bitset.fields.iter().map(|field| field.offset + field.bits);
                let end = ends.max().unwrap_or(1);
                bitset.fields.iter().all(|one| short(&one.name))
                    && crate::mapping::unsigned_bits(end)
                        == crate::mapping::unsigned_bits(bitset.bits)
            }
            TypeKind::Alias(_) => true,
            TypeKind::Native => false,
        }
}

/// The types that a declaration uses.
fn contents(decl: &TypeDecl) -> Vec<Type> {
    match &decl.kind {
        TypeKind::Struct(structure) => {
            let serialized = |member: &&Member| !member.non_serialized;
            let members = structure.members.iter().filter(serialized);
            let base = structure.base.map(Type::Named);
            base.into_iter()
                .chain(members.map(|member| member.ty.clone()))
                .collect()
        }
        TypeKind::Union(union) => {
            let branches = union.branches.iter().map(|branch| branch.member.ty.clone());
            branches.chain([union.discriminator.ty.clone()]).collect()
        }
        TypeKind::Alias(alias) => vec![alias.ty.clone()],
        TypeKind::Enum(_) | TypeKind::Bitmask(_) | TypeKind::Bitset(_) | TypeKind::Native => {
            Vec::new()
        }
    }
}

/// Whether all types that a use names are representable.
fn known(ty: &Type, found: &[bool]) -> bool {
    let element = |element: &Element| known(&element.ty, found);
    match ty {
        Type::Primitive(_) | Type::String { .. } | Type::WString { .. } => true,
        Type::Fixed { .. } | Type::Interface(_) => false,
        Type::Sequence { element: inner, .. } | Type::Array { element: inner, .. } => {
            element(inner)
        }
        Type::Map { key, value, .. } => element(key) && element(value),
        Type::Named(id) => found.get(id.0).copied().unwrap_or(false),
    }
}
