//! From the model to what describes its types at run time: XTypes 1.3 §7.3.4.
//!
//! A struct, union, enum, bitmask, bitset or typedef becomes a declaration of a
//! [`TypeGraph`], of which `spindle-dds-xtypes` makes `TypeObject`s. Members that are
//! not serialized are no part of it. What XTypes has no words for is not described,
//! nor what contains it:
//!
//! - `fixed`, exceptions, native types and interfaces;
//! - unions with a label beyond 32 bits;
//! - bitsets that are wider than their last named field, in the wire form;
//! - names of more than 256 bytes.
//!
//! `@default` and `@ignore_literal_names` have no place in it, nor have annotations of
//! elements of collections and more than one `@verbatim` of a type. That a key
//! has to be understood is implied and not said, as other products have it; said or not,
//! it is the same to assignability.

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

/// What describes the types of a model.
#[derive(Debug)]
pub struct TypeDescriptions {
    graph: TypeGraph,
    /// Where a declared type is in the graph; `None` when it cannot be described.
    indices: Vec<Option<TypeIndex>>,
    descriptions: Descriptions,
}

impl TypeDescriptions {
    /// Describes all types of a model that can be.
    ///
    /// # Errors
    /// None of a model without errors: names are checked before.
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

    /// All types that are described.
    pub fn graph(&self) -> &TypeGraph {
        &self.graph
    }

    /// Identifiers and objects of all of them.
    pub fn descriptions(&self) -> &Descriptions {
        &self.descriptions
    }

    /// Where a type of the model is among them; `None` when it cannot be described.
    pub fn index(&self, id: TypeId) -> Option<TypeIndex> {
        self.indices.get(id.0).copied().flatten()
    }

    /// What discovery announces of a type.
    pub fn information(&self, id: TypeId) -> Option<TypeInformation> {
        self.descriptions.information(&self.graph, self.index(id)?)
    }

    /// The complete objects of a type and of all that it is made of.
    pub fn objects(&self, id: TypeId) -> Option<TypeObjects> {
        Some(self.descriptions.objects(&self.graph, self.index(id)?))
    }

    /// The type for use at run time.
    pub fn dynamic(&self, id: TypeId) -> Option<DynamicType> {
        let ty = spindle_dds_xtypes::graph::Type::Declared(self.index(id)?);
        Some(DynamicType::new(self.graph.clone(), ty))
    }
}

fn scoped_name(decl: &TypeDecl) -> String {
    let scope = decl.scope.iter().map(|module| format!("{module}::"));
    scope.chain([decl.name.clone()]).collect()
}

/// Of each type whether it can be described: all but those that cannot by themselves,
/// and those that contain such.
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

/// Whether a type can be described as far as it is not made of others.
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

/// Whether all that a type names is described.
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
