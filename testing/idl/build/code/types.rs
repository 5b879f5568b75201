//! The mapping of types.

use std::fmt::{self, Write as _};

use spindle_dds_idl::mapping;
use spindle_dds_idl::model::{
    Extensibility, Member, Model, Primitive, Struct, Type, TypeDecl, TypeId, TypeKind, Union, Value,
};

/// The types of a model, with the path of their Rust.
pub(super) struct Types<'m> {
    pub(super) model: &'m Model,
    pub(super) root: String,
}

impl Types<'_> {
    pub(super) fn decl(&self, id: TypeId) -> &TypeDecl {
        &self.model.types[id.0]
    }

    /// The Rust type.
    pub(super) fn path(&self, decl: &TypeDecl) -> String {
        self.beside(decl, "")
    }

    /// A generated item beside it.
    pub(super) fn beside(&self, decl: &TypeDecl, suffix: &str) -> String {
        let mut path = self.root.clone();
        for module in &decl.scope {
            path.push_str("::");
            path.push_str(&mapping::identifier(module));
        }
        let name = match suffix {
            "" => mapping::identifier(&decl.name),
            _ => format!("{}{suffix}", decl.name),
        };
        format!("{path}::{name}")
    }

    /// The type behind all typedefs.
    pub(super) fn resolve<'t>(&'t self, ty: &'t Type) -> &'t Type {
        match ty {
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) => self.resolve(&alias.ty),
                _ => ty,
            },
            _ => ty,
        }
    }

    /// The primitive of a type, if all of its values are allowed.
    pub(super) fn plain_primitive(&self, ty: &Type) -> Option<Primitive> {
        match ty {
            Type::Primitive(primitive) => Some(*primitive),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) if alias.range.is_empty() => self.plain_primitive(&alias.ty),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether builders take it by value.
    pub(super) fn is_scalar(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => true,
            Type::Named(id) => matches!(
                self.decl(*id).kind,
                TypeKind::Enum(_) | TypeKind::Bitmask(_) | TypeKind::Bitset(_)
            ),
            _ => false,
        }
    }

    /// Whether it is a structure or a union.
    pub(super) fn is_composite(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Named(id) => matches!(
                self.decl(*id).kind,
                TypeKind::Struct(_) | TypeKind::Union(_)
            ),
            _ => false,
        }
    }

    /// Whether the type has a fixed size, so that members are set in any order.
    fn is_fixed(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => true,
            Type::Array { element, .. } => self.is_fixed(&element.ty),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(inner) => self.is_fixed_struct(inner),
                TypeKind::Enum(_) | TypeKind::Bitmask(_) | TypeKind::Bitset(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn is_fixed_struct(&self, structure: &Struct) -> bool {
        let fixed = |member: &Member| member.non_serialized || self.is_fixed_member(member);
        structure.extensibility != Extensibility::Mutable && structure.members.iter().all(fixed)
    }

    pub(super) fn is_fixed_member(&self, member: &Member) -> bool {
        !member.optional && self.is_fixed(&member.ty)
    }

    /// Whether views of a union are another type than the union.
    pub(super) fn union_borrows(&self, union: &Union) -> bool {
        let borrows = |member: &Member| member.boxed || self.borrows(&member.ty);
        union.branches.iter().any(|branch| borrows(&branch.member))
    }

    fn borrows(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Union(inner) => self.union_borrows(inner),
                _ => !self.is_scalar(ty),
            },
            _ => !self.is_scalar(ty),
        }
    }

    /// Whether a value of the type may contain one of `other`.
    pub(super) fn reaches(&self, ty: &Type, other: &TypeDecl) -> bool {
        let mut found = false;
        let mut seen = vec![false; self.model.types.len()];
        self.walk(ty, &mut seen, &mut |decl| {
            found |= std::ptr::eq(decl, other)
        });
        found
    }

    /// Whether the type contains a `@default`.
    pub(super) fn has_defaults(&self, decl: &TypeDecl) -> bool {
        let mut found = false;
        let mut seen = vec![false; self.model.types.len()];
        let mut look = |decl: &TypeDecl| {
            found |= match &decl.kind {
                TypeKind::Struct(of) => of.members.iter().any(|member| member.default.is_some()),
                TypeKind::Union(of) => {
                    let branch = of.branches.iter().any(|one| one.member.default.is_some());
                    branch || of.discriminator.default.is_some()
                }
                _ => false,
            };
        };
        look(decl);
        self.walk_members(decl, &mut seen, &mut look);
        found
    }

    fn walk(&self, ty: &Type, seen: &mut [bool], look: &mut impl FnMut(&TypeDecl)) {
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.walk(&element.ty, seen, look);
            }
            Type::Map { value, .. } => self.walk(&value.ty, seen, look),
            Type::Named(id) if !std::mem::replace(&mut seen[id.0], true) => {
                look(self.decl(*id));
                self.walk_members(self.decl(*id), seen, look);
            }
            _ => {}
        }
    }

    fn walk_members(&self, decl: &TypeDecl, seen: &mut [bool], look: &mut impl FnMut(&TypeDecl)) {
        match &decl.kind {
            TypeKind::Struct(of) => {
                for member in &of.members {
                    self.walk(&member.ty, seen, look);
                }
            }
            TypeKind::Union(of) => {
                for branch in &of.branches {
                    self.walk(&branch.member.ty, seen, look);
                }
            }
            TypeKind::Alias(alias) => self.walk(&alias.ty, seen, look),
            _ => {}
        }
    }

    /// A label of a union.
    pub(super) fn label(&self, value: &Value) -> String {
        match value {
            Value::Integer(number) => number.to_string(),
            Value::Boolean(value) => value.to_string(),
            Value::Char(byte) => byte.to_string(),
            Value::WChar(unit) => unit.to_string(),
            Value::Enum(id, index) => match &self.decl(*id).kind {
                TypeKind::Enum(of) => {
                    let name = mapping::identifier(&of.literals[*index].name);
                    format!("{}::{name}", self.path(self.decl(*id)))
                }
                _ => String::new(),
            },
            _ => String::new(),
        }
    }

    /// A structure: values, views, and calls of its builder.
    pub(super) fn structure(
        &self,
        out: &mut String,
        decl: &TypeDecl,
        structure: &Struct,
    ) -> fmt::Result {
        let (path, view) = (self.path(decl), self.beside(decl, "View"));
        let members = self.beside(decl, "Members");
        let (sent, hidden): (Vec<&Member>, Vec<_>) = structure
            .members
            .iter()
            .partition(|member| !member.non_serialized);
        writeln!(
            out,
            "impl {path} {{\nfn any_(random: &mut Random) -> Self {{\nrandom.inside(|random| Self {{"
        )?;
        for member in &sent {
            let name = mapping::identifier(&member.name);
            writeln!(out, "{name}: exercise::any::<{members}::{name}>(random),")?;
        }
        if !hidden.is_empty() {
            writeln!(out, "..Self::default()")?;
        }
        writeln!(
            out,
            "}})\n}}\nfn same_(shown: {view}<'_>, owned: &Self) -> bool {{\nlet mut same = true;"
        )?;
        for member in &sent {
            let name = mapping::identifier(&member.name);
            let shows = mapping::identifier_beside(&name, mapping::VIEW_METHODS);
            writeln!(
                out,
                "same &= exercise::same::<{members}::{name}>(shown.{shows}(), &owned.{name});"
            )?;
        }
        writeln!(out, "same\n}}\n}}")?;
        self.fill_structure(out, decl, structure, &sent)
    }
}
