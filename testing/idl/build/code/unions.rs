//! Unions: values, views, and calls of their builders.

use std::fmt::{self, Write as _};

use spindle_dds_idl::mapping;
use spindle_dds_idl::model::{Branch, Extensibility, Primitive, Type, TypeDecl, TypeKind, Union};

use super::builders::arms;
use super::types::Types;

impl Types<'_> {
    pub(super) fn union(&self, out: &mut String, decl: &TypeDecl, union: &Union) -> fmt::Result {
        let empty = !self.is_exhaustive(union);
        writeln!(out, "impl {} {{", self.path(decl))?;
        self.any_union(out, decl, union, empty)?;
        self.same_union(out, decl, union, empty)?;
        writeln!(out, "}}")?;
        self.fill_union(out, decl, union, empty)
    }

    fn any_union(
        &self,
        out: &mut String,
        decl: &TypeDecl,
        union: &Union,
        empty: bool,
    ) -> fmt::Result {
        let members = self.beside(decl, "Members");
        writeln!(
            out,
            "fn any_(random: &mut Random) -> Self {{\n\
             random.inside(|random| match random.below({}) {{",
            union.branches.len() + usize::from(empty)
        )?;
        for (index, branch) in union.branches.iter().enumerate() {
            let name = mapping::identifier(&branch.member.name);
            let value = format!("exercise::any::<{members}::{name}>(random)");
            let ends = match self.reaches(&branch.member.ty, decl) {
                true => "if random.present()",
                false => "",
            };
            let labels: Vec<String> = branch.labels.iter().map(|one| self.label(one)).collect();
            let made = match has_label(branch) {
                true => format!("Self::{name}({value})"),
                false => format!(
                    "match exercise::discriminator::<Self>(random, Some({index}), &[{}]) {{\n\
                     Some(discriminator) => Self::{name}(discriminator, {value}),\n\
                     None => Self::default(),\n}}",
                    labels.join(", ")
                ),
            };
            writeln!(out, "{index} {ends} => {made},")?;
        }
        if empty {
            writeln!(
                out,
                "{} => exercise::discriminator::<Self>(random, None, &[])\
                 .map_or_else(Self::default, Self::Empty),",
                union.branches.len()
            )?;
        }
        writeln!(out, "_ => Self::default(),\n}})\n}}")
    }

    fn same_union(
        &self,
        out: &mut String,
        decl: &TypeDecl,
        union: &Union,
        empty: bool,
    ) -> fmt::Result {
        let members = self.beside(decl, "Members");
        let view = match self.union_borrows(union) {
            true => self.beside(decl, "View"),
            false => self.path(decl),
        };
        writeln!(
            out,
            "fn same_(shown: <Self as Shape>::Shown<'_>, owned: &Self) -> bool {{\n\
             match (shown, owned) {{"
        )?;
        for branch in &union.branches {
            let name = mapping::identifier(&branch.member.name);
            let get = match self.shows_later(&branch.member.ty, decl) {
                true => ".get()",
                false => "",
            };
            let same = format!("exercise::same::<{members}::{name}>(shown{get}, owned)");
            match has_label(branch) {
                true => writeln!(
                    out,
                    "({view}::{name}(shown), Self::{name}(owned)) => {same},"
                )?,
                false => writeln!(
                    out,
                    "({view}::{name}(one, shown), Self::{name}(other, owned)) => \
                     one == *other && {same},"
                )?,
            }
        }
        if empty {
            writeln!(
                out,
                "({view}::Empty(one), Self::Empty(other)) => one == *other,"
            )?;
        }
        writeln!(out, "_ => false,\n}}\n}}")
    }

    fn fill_union(
        &self,
        out: &mut String,
        decl: &TypeDecl,
        union: &Union,
        empty: bool,
    ) -> fmt::Result {
        let (path, builder) = (self.path(decl), self.beside(decl, "Builder"));
        writeln!(
            out,
            "impl exercise::Fill for {path} {{\n\
             fn fill<R: Room>(&self, builder: {builder}<R>, random: &mut Random) \
             -> Result<{builder}<R, Ready>, R::Error> {{\nOk(match self {{"
        )?;
        for branch in &union.branches {
            let member = &branch.member;
            let name = mapping::identifier(&member.name);
            let method = mapping::identifier_beside(&name, mapping::BUILDER_METHODS);
            let (pattern, first) = match has_label(branch) {
                true => (format!("Self::{name}(value)"), ""),
                false => (format!("Self::{name}(first, value)"), "*first, "),
            };
            let value = match member.boxed {
                true => "let value = &**value;",
                false => "",
            };
            let deref = if self.is_scalar(&member.ty) { "*" } else { "" };
            let parts = self.in_parts(&member.ty, &format!("builder.{}", member.name), first);
            writeln!(
                out,
                "{pattern} => {{\n{value}\nmatch (Some(value), random.below({})) {{\n{}\
                 (_, _) => builder.{method}({first}{deref}value)?,\n}}\n}}",
                parts.len() + 1,
                arms(&parts)
            )?;
        }
        if empty {
            writeln!(out, "Self::Empty(first) => builder.Empty(*first)?,")?;
        }
        writeln!(out, "}})\n}}\n}}")
    }

    /// Whether a view reads a branch only on request: the branch is a union that may contain this
    /// one.
    fn shows_later(&self, ty: &Type, decl: &TypeDecl) -> bool {
        let Type::Named(inner) = self.resolve(ty) else {
            return false;
        };
        matches!(self.decl(*inner).kind, TypeKind::Union(_)) && self.reaches(ty, decl)
    }

    /// Whether every value of the discriminator selects a branch.
    fn is_exhaustive(&self, union: &Union) -> bool {
        let labels: usize = union.branches.iter().map(|one| one.labels.len()).sum();
        let values = match self.resolve(&union.discriminator.ty) {
            Type::Primitive(Primitive::Boolean) => 2,
            Type::Primitive(
                Primitive::Int8 | Primitive::UInt8 | Primitive::Octet | Primitive::Char,
            ) => 1 << 8,
            Type::Primitive(Primitive::Int16 | Primitive::UInt16 | Primitive::WChar) => 1 << 16,
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Enum(of) if of.extensibility == Extensibility::Final => of.literals.len(),
                _ => usize::MAX,
            },
            _ => usize::MAX,
        };
        union.branches.iter().any(|branch| branch.default) || labels == values
    }
}

/// Whether exactly one value selects the branch, so that its variant has no discriminator.
fn has_label(branch: &Branch) -> bool {
    branch.labels.len() == 1 && !branch.default
}
