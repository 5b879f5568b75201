//! The enum itself, and its default.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Arm, Cases};
use crate::emit::structure::Subject;
use crate::emit::{Emitter, docs, member_docs};

impl Emitter<'_> {
    pub(super) fn owned_union(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { name, decl, .. } = cases.subject;
        let scope = cases.subject.scope();
        let (doc, serde) = (docs(&decl.doc), self.serde_derive(scope));
        let discriminator = &cases.discriminator;
        let copy = (!self.union_looks_different(cases.union)).then(|| quote!(Copy,));
        let variants = cases.arms.iter().map(|arm| {
            let Arm { variant, path, .. } = arm;
            let member = &arm.branch.member;
            let doc = member_docs(member);
            let with = (self.options.serde && self.needs_serde_shape(&member.ty)).then(|| {
                let rt = &cases.subject.rt;
                let path = quote!(#rt::Serde::<<#path as #rt::Member>::Shape>).to_string();
                quote!(#[serde(with = #path)])
            });
            let ty = self.owned_member(member, scope);
            match &arm.label {
                Some(_) => quote!(#doc #variant(#with #ty)),
                None => quote!(#doc #variant(#discriminator, #with #ty)),
            }
        });
        let empty = cases.empty.iter().map(|empty| {
            quote! {
                /// No branch, with the discriminator.
                #empty(#discriminator)
            }
        });
        let kept = cases.arms.iter().map(|arm| {
            let variant = &arm.variant;
            match &arm.label {
                Some(label) => quote!(Self::#variant(_) => #label),
                None => quote!(Self::#variant(discriminator, _) => *discriminator),
            }
        });
        let none = cases
            .empty
            .iter()
            .map(|empty| quote!(Self::#empty(discriminator) => *discriminator));
        quote! {
            #doc
            #[derive(Debug, Clone, #copy PartialEq)]
            #serde
            pub enum #name {
                #(#variants,)*
                #(#empty,)*
            }

            impl #name {
                /// The discriminator.
                pub fn discriminator(&self) -> #discriminator {
                    match self {
                        #(#kept,)*
                        #(#none,)*
                    }
                }
            }
        }
    }

    /// The default discriminator, and the branch that it selects with its default.
    pub(super) fn union_default(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { name, rt, .. } = cases.subject;
        let switch = cases.switch();
        let discriminator = quote!(<#switch as #rt::Member>::initial());
        let arm = cases.initial.and_then(|index| cases.arms.get(index));
        let value = match (arm, &cases.empty) {
            (
                Some(Arm {
                    variant,
                    path,
                    label,
                    ..
                }),
                _,
            ) => {
                let first = label.is_none().then(|| quote!(#discriminator,));
                quote!(#variant(#first <#path as #rt::Member>::initial()))
            }
            (None, empty) => quote!(#empty(#discriminator)),
        };
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    Self::#value
                }
            }
        }
    }
}
