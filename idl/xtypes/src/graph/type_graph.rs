//! The graph of declared types.

use super::{Annotations, Applied, Bitset, Declaration, Definition, Member};
use super::{Struct, Type, TypeIndex};
use crate::object::TypeIdentifier;

/// Declared types, which refer to each other by index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TypeGraph {
    declarations: Vec<Option<Declaration>>,
    /// The minimal identifiers from which the types were resolved, if they were: those of types
    /// that contain each other cannot be computed without names.
    minimal: Vec<TypeIdentifier>,
}

/// The definition of a type that was reserved and never defined.
const MISSING: &Declaration = &Declaration {
    name: None,
    annotations: Annotations {
        verbatim: None,
        custom: Vec::new(),
    },
    definition: Definition::Bitset(Bitset { fields: Vec::new() }),
};

impl TypeGraph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves an index for a type that others name before it is defined, which allows
    /// recursive types.
    pub fn reserve(&mut self) -> TypeIndex {
        self.minimal.clear();
        self.declarations.push(None);
        TypeIndex(self.declarations.len() as u32 - 1)
    }

    /// Defines a reserved type. The types that it names must be of this graph.
    pub fn define(&mut self, index: TypeIndex, name: Option<&str>, definition: Definition) {
        self.minimal.clear();
        if let Some(declaration) = self.declarations.get_mut(index.0 as usize) {
            *declaration = Some(Declaration {
                name: name.map(str::to_owned),
                annotations: Annotations::default(),
                definition,
            });
        }
    }

    /// Sets the annotations of a defined type, which must be annotations of this graph.
    pub fn annotate(&mut self, index: TypeIndex, annotations: Annotations) {
        if let Some(Some(declaration)) = self.declarations.get_mut(index.0 as usize) {
            declaration.annotations = annotations;
        }
    }

    /// Adds a type.
    pub fn add(&mut self, name: &str, definition: Definition) -> TypeIndex {
        let index = self.reserve();
        self.define(index, Some(name), definition);
        index
    }

    /// The declaration of a type. That of a type reserved and not defined is an empty bitset
    /// without a name.
    pub fn declaration(&self, index: TypeIndex) -> &Declaration {
        let found = self.declarations.get(index.0 as usize);
        found.and_then(Option::as_ref).unwrap_or(MISSING)
    }

    /// Sets the minimal identifiers of all types, by their indices.
    pub(crate) fn set_minimal(&mut self, identifiers: Vec<TypeIdentifier>) {
        self.minimal = identifiers;
    }

    /// The minimal identifiers of all types, if they are known.
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

    /// The type of this scoped name. Annotations have names of their own.
    pub fn find(&self, name: &str) -> Option<TypeIndex> {
        self.indices().find(|index| {
            self.declaration(*index).name.as_deref() == Some(name) && !self.is_annotation(*index)
        })
    }

    /// Whether it is an annotation, and not a data type.
    pub fn is_annotation(&self, index: TypeIndex) -> bool {
        matches!(
            self.declaration(index).definition,
            Definition::Annotation(_)
        )
    }

    /// The type behind typedefs.
    pub fn resolved<'g>(&'g self, ty: &'g Type) -> &'g Type {
        let mut ty = ty;
        // Longer chains of typedefs are refused; they may be cyclic.
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

    /// The types of data that a type's declaration names.
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
            Definition::Annotation(annotation) => {
                for parameter in &annotation.parameters {
                    parameter.ty.declared(found);
                }
            }
        }
    }

    /// The annotations that a type's declaration names.
    pub(crate) fn annotations(&self, index: TypeIndex, found: &mut dyn FnMut(TypeIndex)) {
        let declaration = self.declaration(index);
        let mut applied = |all: &[Applied]| all.iter().for_each(|one| found(one.annotation));
        applied(&declaration.annotations.custom);
        match &declaration.definition {
            Definition::Alias(alias) => applied(&alias.custom),
            Definition::Enum(one) => one.literals.iter().for_each(|it| applied(&it.custom)),
            Definition::Bitmask(one) => one.flags.iter().for_each(|it| applied(&it.custom)),
            Definition::Bitset(one) => one.fields.iter().for_each(|it| applied(&it.custom)),
            Definition::Struct(one) => one.members.iter().for_each(|it| applied(&it.custom)),
            Definition::Union(one) => {
                applied(&one.discriminator.annotations.custom);
                let branches = one.branches.iter();
                branches.for_each(|branch| applied(&branch.member.custom));
            }
            Definition::Annotation(_) => {}
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

    /// Whether a parameter of an annotation may be of a type.
    pub(crate) fn has_constants(&self, ty: &Type) -> bool {
        match self.resolved(ty) {
            Type::Primitive(_) | Type::String8(_) | Type::String16(_) => true,
            Type::Declared(index) => {
                matches!(self.declaration(*index).definition, Definition::Enum(_))
            }
            _ => false,
        }
    }

    /// A structure and its bases, ending where that chain is cyclic.
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
