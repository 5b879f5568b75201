//! Unions in views: an enum of the same variants, unless the members have the same types in
//! views as in the owned form.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Arm, Cases};
use crate::emit::structure::Subject;
use crate::emit::{Emitter, member_docs};
use crate::model::{Branch, Member, Type, TypeId, TypeKind, Union};

impl Emitter<'_> {
    pub(super) fn union_view(&self, cases: &Cases<'_>) -> TokenStream {
        if !self.union_looks_different(cases.union) {
            return TokenStream::new();
        }
        let Subject { name, id, .. } = cases.subject;
        let scope = cases.subject.scope();
        let view = &self.names.companions(*id).view;
        let doc = format!(" A view of one [`{name}`] in place, over checked bytes.");
        let discriminator = &cases.discriminator;
        let lifetime = self.union_lifetime(*id);
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
                /// No branch, with the discriminator.
                #empty(#discriminator)
            }
        });
        quote! {
            #[doc = #doc]
            #[derive(Debug, Clone, Copy)]
            pub enum #view #lifetime {
                #(#variants,)*
                #(#empty,)*
            }
        }
    }

    /// Whether a view of the member would contain a view of the union itself.
    pub(super) fn shows_later(&self, arm: &Arm<'_>, id: TypeId) -> bool {
        let member = &arm.branch.member;
        self.union_in(member).is_some() && self.reaches(&member.ty, id)
    }

    /// Whether views of a union differ from the owned form: they refer to the bytes, or have a
    /// value instead of a pointer.
    pub(in crate::emit) fn union_looks_different(&self, union: &Union) -> bool {
        let looks_different = |branch: &Branch| {
            branch.member.boxed
                || match self.union_in(&branch.member) {
                    Some((_, inner)) => self.union_looks_different(inner),
                    None => !self.is_scalar(&branch.member.ty),
                }
        };
        union.branches.iter().any(looks_different)
    }

    /// `<'a>` where views of a union refer to the bytes.
    pub(in crate::emit) fn union_lifetime(&self, id: TypeId) -> Option<TokenStream> {
        self.union_borrows(id).then(|| quote!(<'a>))
    }

    fn union_borrows(&self, id: TypeId) -> bool {
        let TypeKind::Union(union) = &self.decl(id).kind else {
            return true;
        };
        // A member that contains the union itself is read later, from the bytes.
        let borrows = |branch: &Branch| match self.union_in(&branch.member) {
            Some((inner, _)) => self.reaches(&branch.member.ty, id) || self.union_borrows(inner),
            None => !self.is_scalar(&branch.member.ty),
        };
        union.branches.iter().any(borrows)
    }

    /// The union that a member is.
    fn union_in(&self, member: &Member) -> Option<(TypeId, &Union)> {
        let Type::Named(id) = self.resolve(&member.ty) else {
            return None;
        };
        match &self.decl(*id).kind {
            TypeKind::Union(union) => Some((*id, union)),
            _ => None,
        }
    }
}
