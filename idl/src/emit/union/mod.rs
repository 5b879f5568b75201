//! `union`: an enum with one variant per branch, another for views, and the
//! implementations that the runtime needs.
//!
//! A branch with one value of the discriminator is `Name(T)`. A branch with several
//! values, such as the default, is `Name(D, T)` and keeps the value. If no branch is
//! selected, the variant is `Empty(D)`.

mod builder;
mod finite;
mod owned;
mod shape;
mod topic;
mod view;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::structure::Subject;
use super::{Emitter, names};
use crate::model::{
    Branch, Extensibility, Member, Primitive, Range, Struct, Type, TypeDecl, TypeId, TypeKind,
    Union,
};

/// Data shared by the parts of a union's code.
struct Cases<'s> {
    union: &'s Union,
    /// Its discriminator and its branches, as members of a structure.
    subject: &'s Subject<'s>,
    arms: Vec<Arm<'s>>,
    /// The variant without a branch, if there is one.
    empty: Option<Ident>,
    /// The branch of the default.
    initial: Option<usize>,
    /// The Rust type of the discriminator.
    discriminator: TokenStream,
}

/// A branch with the expressions that the code repeats.
struct Arm<'s> {
    branch: &'s Branch,
    variant: Ident,
    /// Path of the type that represents the member.
    path: TokenStream,
    /// The one value that selects it, as an expression.
    label: Option<TokenStream>,
    index: Literal,
}

impl Cases<'_> {
    /// The path of the type that represents the discriminator.
    fn switch(&self) -> &TokenStream {
        &self.subject.fields[0].path
    }
}

/// The discriminator and the branches of a union as the members of a structure. The
/// discriminator has id 0, readers must understand it, and it is the whole key if the union
/// is part of one. Its name is unlike that of any branch.
pub(super) fn as_structure(union: &Union) -> Struct {
    let discriminator = Member {
        name: "discriminator".to_owned(),
        doc: Vec::new(),
        custom: Vec::new(),
        ty: union.discriminator.ty.clone(),
        id: 0,
        hash_id: None,
        key: true,
        optional: false,
        external: false,
        boxed: false,
        must_understand: true,
        non_serialized: false,
        try_construct: union.discriminator.try_construct,
        default: union.discriminator.default.clone(),
        range: Range::default(),
        unit: None,
    };
    let branches = union.branches.iter().map(|branch| branch.member.clone());
    Struct {
        extensibility: union.extensibility,
        nested: union.nested,
        exception: false,
        autoid_hash: union.autoid_hash,
        representations: union.representations,
        base: None,
        members: [discriminator].into_iter().chain(branches).collect(),
        inherited: 0,
    }
}

impl Emitter<'_> {
    pub(super) fn union(&self, id: TypeId, decl: &TypeDecl, union: &Union) -> TokenStream {
        let mut structure = as_structure(union);
        let initial = self.initial(id, union);
        if let Some(discriminator) = structure.members.first_mut() {
            discriminator.default = Some(initial.discriminator);
        }
        let mut subject = self.subject(id, decl, &structure);
        for field in &mut subject.fields {
            // A union has no members before a branch is chosen.
            field.fixed = false;
        }
        let cases = self.cases(union, &subject, initial.branch);
        let owned = self.owned_union(&cases);
        let default = self.union_default(&cases);
        let view = self.union_view(&cases);
        let members = self.members(&subject);
        let shape = self.union_impl(&cases);
        let topic = (!union.nested).then(|| self.union_topic(&cases));
        let builder = self.union_builder(&cases);
        quote!(#owned #default #topic #view #builder #members #shape)
    }

    fn cases<'s>(
        &self,
        union: &'s Union,
        subject: &'s Subject<'s>,
        initial: Option<usize>,
    ) -> Cases<'s> {
        let arm = |(index, branch): (usize, &'s Branch)| {
            let field = &subject.fields[index + 1];
            let label = match &branch.labels[..] {
                [label] if !branch.default => {
                    Some(self.value(label, &union.discriminator.ty, subject.scope()))
                }
                _ => None,
            };
            Arm {
                branch,
                variant: field.name.clone(),
                path: field.path.clone(),
                label,
                index: Literal::usize_unsuffixed(index),
            }
        };
        let mut taken = subject.fields[1..]
            .iter()
            .map(|field| field.name.to_string())
            .collect();
        let empty =
            (!self.is_exhaustive(union)).then(|| names::ident(&names::fresh(&mut taken, "Empty")));
        Cases {
            union,
            subject,
            arms: union.branches.iter().enumerate().map(arm).collect(),
            empty,
            initial,
            discriminator: self.owned(&union.discriminator.ty, subject.scope()),
        }
    }

    /// Whether every value of the discriminator selects a branch.
    fn is_exhaustive(&self, union: &Union) -> bool {
        if union.branches.iter().any(|branch| branch.default) {
            return true;
        }
        let labels: usize = union.branches.iter().map(|one| one.labels.len()).sum();
        let values = match self.resolve(&union.discriminator.ty) {
            Type::Primitive(Primitive::Boolean) => 2,
            Type::Primitive(
                Primitive::Int8 | Primitive::UInt8 | Primitive::Octet | Primitive::Char,
            ) => 1 << 8,
            Type::Primitive(Primitive::Int16 | Primitive::UInt16 | Primitive::WChar) => 1 << 16,
            Type::Named(id) => match &self.decl(*id).kind {
                // Another version may have values that this version does not know.
                TypeKind::Enum(inner) if inner.extensibility == Extensibility::Final => {
                    inner.literals.len()
                }
                _ => return false,
            },
            _ => return false,
        };
        labels == values
    }
}
