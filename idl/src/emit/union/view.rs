//! What views show of a union: the same variants, unless its members look the same
//! in views as they do elsewhere.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Arm, Cases};
use crate::emit::structure::Subject;
use crate::emit::{Emitter, member_docs};
use crate::model::{Branch, Type, TypeId, TypeKind, Union};

impl Emitter<'_> {
    pub(super) fn union_view(&self, cases: &Cases<'_>) -> TokenStream {
        if !self.union_borrows(cases.union) {
            return TokenStream::new();
        }
        let Subject { name, id, .. } = cases.subject;
        let scope = cases.subject.scope();
        let view = &self.names.companions(*id).view;
        let doc = format!(" Shows one [`{name}`] where it lies, in bytes that have been checked.");
        let discriminator = &cases.discriminator;
        let variants = cases.arms.iter().map(|arm| {
            let (variant, doc) = (&arm.variant, member_docs(&arm.branch.member));
            let ty = match self.shows_later(arm, *id) {
                true => {
                    let (rt, path) = (&cases.subject.rt, &arm.path);
                    quote!(#rt::shape::union::Later<'a, #path>)
                }
                false => self.shown_member(&arm.branch.member, scope),
            };
            match &arm.label {
                Some(_) => quote!(#doc #variant(#ty)),
                None => quote!(#doc #variant(#discriminator, #ty)),
            }
        });
        let empty = cases.empty.iter().map(|empty| {
            quote! {
                /// No branch: what the discriminator is then.
                #empty(#discriminator)
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(Debug, Clone, Copy)]
            pub enum #view<'a> {
                #(#variants,)*
                #(#empty,)*
            }
        }
    }

    /// Whether a view of the member would contain a view of the union itself.
    pub(super) fn shows_later(&self, arm: &Arm<'_>, id: TypeId) -> bool {
        let member = &arm.branch.member;
        let Type::Named(inner) = self.resolve(&member.ty) else {
            return false;
        };
        matches!(self.decl(*inner).kind, TypeKind::Union(_)) && self.reaches(&member.ty, id)
    }

    /// Whether views of a union refer to the bytes; if not, they are the owned form.
    pub(in crate::emit) fn union_borrows(&self, union: &Union) -> bool {
        let borrows = |branch: &Branch| branch.member.boxed || self.borrows(&branch.member.ty);
        union.branches.iter().any(borrows)
    }

    fn borrows(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => false,
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Enum(_) | TypeKind::Bitmask(_) | TypeKind::Bitset(_) => false,
                TypeKind::Union(inner) => self.union_borrows(inner),
                _ => true,
            },
            _ => true,
        }
    }
}
