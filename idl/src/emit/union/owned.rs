//! The enum itself, and its default.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Arm, Cases};
use crate::emit::structure::Subject;
use crate::emit::{Emitter, docs, member_docs};
use crate::model::{Primitive, Type, TypeId, TypeKind, Union, Value};

impl Emitter<'_> {
    pub(super) fn owned_union(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { name, decl, .. } = cases.subject;
        let scope = cases.subject.scope();
        let (doc, serde) = (docs(&decl.doc), self.serde_derive(scope));
        let discriminator = &cases.discriminator;
        let copy = (!self.union_borrows(cases.union)).then(|| quote!(Copy,));
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
                /// No branch: what the discriminator is then.
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
                /// What selects the branch.
                pub fn discriminator(&self) -> #discriminator {
                    match self {
                        #(#kept,)*
                        #(#none,)*
                    }
                }
            }
        }
    }

    /// The default discriminator, and the branch that it selects with its default; unless
    /// that would contain a default of the union again, without end.
    pub(super) fn union_default(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let default = self.default_discriminator(cases.union);
        let selected = cases
            .arms
            .iter()
            .find(|arm| arm.branch.labels.contains(&default))
            .or_else(|| cases.arms.iter().find(|arm| arm.branch.default));
        let ends = |arm: &&Arm<'_>| !self.defaults_to(&arm.branch.member.ty, *id);
        let chosen = match selected {
            None => None,
            Some(arm) if ends(&arm) => Some((arm, default)),
            Some(_) => cases.arms.iter().find(ends).and_then(|arm| {
                let label = arm.branch.labels.first()?;
                Some((arm, label.clone()))
            }),
        };
        let expression =
            |value: &Value| self.value(value, &cases.union.discriminator.ty, cases.subject.scope());
        let value = match (chosen, &cases.empty) {
            (
                Some((
                    Arm {
                        variant,
                        path,
                        label: Some(_),
                        ..
                    },
                    _,
                )),
                _,
            ) => {
                quote!(Self::#variant(<#path as #rt::Member>::initial()))
            }
            (Some((Arm { variant, path, .. }, value)), _) => {
                let value = expression(&value);
                quote!(Self::#variant(#value, <#path as #rt::Member>::initial()))
            }
            (None, empty) => {
                let switch = cases.switch();
                quote!(Self::#empty(<#switch as #rt::Member>::initial()))
            }
        };
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    #value
                }
            }
        }
    }

    fn default_discriminator(&self, union: &Union) -> Value {
        if let Some(value) = &union.discriminator.default {
            return value.clone();
        }
        match self.resolve(&union.discriminator.ty) {
            Type::Primitive(Primitive::Boolean) => Value::Boolean(false),
            Type::Primitive(Primitive::Char) => Value::Char(0),
            Type::Primitive(Primitive::WChar) => Value::WChar(0),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Enum(inner) => Value::Enum(*id, inner.default_literal),
                _ => Value::Integer(0),
            },
            _ => Value::Integer(0),
        }
    }

    /// Whether the default of a type contains the default of `id`.
    fn defaults_to(&self, ty: &Type, id: TypeId) -> bool {
        let mut seen = vec![false; self.model.types.len()];
        self.defaults_to_unseen(ty, id, &mut seen)
    }

    fn defaults_to_unseen(&self, ty: &Type, id: TypeId, seen: &mut [bool]) -> bool {
        match self.resolve(ty) {
            Type::Array { element, .. } => self.defaults_to_unseen(&element.ty, id, seen),
            Type::Named(other) if *other == id => true,
            Type::Named(other) if std::mem::replace(&mut seen[other.0], true) => false,
            Type::Named(other) => match &self.decl(*other).kind {
                TypeKind::Struct(inner) => inner
                    .members
                    .iter()
                    .filter(|member| !member.optional)
                    .any(|member| self.defaults_to_unseen(&member.ty, id, seen)),
                TypeKind::Union(inner) => inner
                    .branches
                    .iter()
                    .any(|branch| self.defaults_to_unseen(&branch.member.ty, id, seen)),
                _ => false,
            },
            _ => false,
        }
    }
}
