//! Defaults of members and structures, and what a structure inherits.

use proc_macro2::TokenStream;
use quote::quote;

use super::structure::{Field, Subject};
use super::{Emitter, Scope, names};
use crate::model::{Member, Primitive, Type, TypeKind, Value};

impl Emitter<'_> {
    /// The items that a member overrides for its `@default`. None for optional members: the
    /// default applies to a new value, not to one that is read without the member.
    pub(super) fn member_default(&self, member: &Member, scope: &Scope) -> Option<TokenStream> {
        let value = member.default.as_ref().filter(|_| !member.optional)?;
        let shown = self.value(value, &member.ty, scope);
        let initial = self.boxed_if(member, self.owned_value(value, shown.clone()));
        let absent = match self.resolve(&member.ty) {
            Type::WString { .. } => quote!(__rt::WideView::from_static(#shown)),
            _ => shown,
        };
        let shape = self.shape_within(&member.ty, &member.range, scope);
        let borrowed = self.value(value, &member.ty, scope);
        let borrowed = match value {
            Value::String(_) => borrowed,
            _ => quote!(&#borrowed),
        };
        let write = quote!(<#shape as __rt::shape::Shape>::write(#borrowed, encoder));
        let written = self.write_initial(&quote!(__rt), &write);
        Some(quote! {
            fn initial() -> __rt::Owned<Self> {
                #initial
            }

            #written

            fn absent<'a>() -> __rt::Shown<'a, Self> {
                #absent
            }
        })
    }

    /// The function that writes a default; `body` has `encoder`.
    pub(super) fn write_initial(&self, rt: &TokenStream, body: &TokenStream) -> TokenStream {
        let encoder = self.names.parameter("E");
        quote! {
            #[inline]
            fn write_initial<#encoder>(encoder: &mut #encoder) -> #rt::Result<()>
            where
                #encoder: #rt::encode::Encoder<Selection = #rt::encode::AllMembers>,
            {
                #body
            }
        }
    }

    fn owned_value(&self, value: &Value, expression: TokenStream) -> TokenStream {
        match value {
            Value::String(_) => quote!(::std::string::String::from(#expression)),
            _ => expression,
        }
    }

    fn boxed_if(&self, member: &Member, value: TokenStream) -> TokenStream {
        match member.boxed {
            true => quote!(::std::boxed::Box::new(#value)),
            false => value,
        }
    }

    /// The shape of a field, as its structure names it.
    pub(super) fn field_shape(&self, field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
        let (rt, path) = (&subject.rt, &field.path);
        match field.member.non_serialized {
            true => self.member_shape(field.member, subject.scope()),
            false => quote!(<#path as #rt::Member>::Shape),
        }
    }

    fn default_value(&self, field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
        let Field { member, path, .. } = field;
        let rt = &subject.rt;
        if let Some(value) = &member.default {
            let expression = self.value(value, &member.ty, subject.scope());
            let value = self.boxed_if(member, self.owned_value(value, expression));
            return match member.optional {
                true => quote!(::core::option::Option::Some(#value)),
                false => value,
            };
        }
        if member.optional {
            return quote!(::core::option::Option::None);
        }
        let plain = !member.boxed && member.range.is_empty();
        match self.resolve(&member.ty) {
            Type::Primitive(primitive) if plain && self.plain_primitive(&member.ty).is_some() => {
                match primitive {
                    Primitive::Boolean => quote!(false),
                    Primitive::Float32 | Primitive::Float64 => quote!(0.0),
                    Primitive::Float128 => quote!(::core::default::Default::default()),
                    _ => quote!(0),
                }
            }
            Type::String { .. } | Type::WString { .. } if plain => {
                quote!(::std::string::String::new())
            }
            Type::Sequence { .. } if plain => quote!(::std::vec::Vec::new()),
            Type::Map { .. } if plain => quote!(::std::collections::BTreeMap::new()),
            _ if member.non_serialized => {
                let shape = self.field_shape(field, subject);
                quote!(<#shape as #rt::shape::Shape>::initial())
            }
            _ => quote!(<#path as #rt::Member>::initial()),
        }
    }

    pub(super) fn default_impl(&self, subject: &Subject<'_>) -> TokenStream {
        let name = &subject.name;
        let fields = subject.in_order().map(|field| {
            let (name, value) = (&field.name, self.default_value(field, subject));
            quote!(#name: #value)
        });
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    Self { #(#fields,)* }
                }
            }
        }
    }

    /// The `@non_serialized` fields, with their defaults.
    pub(super) fn hidden_values(&self, subject: &Subject<'_>) -> Vec<TokenStream> {
        let value = |field: &Field<'_>| {
            let (name, value) = (&field.name, self.default_value(field, subject));
            quote!(#name: #value)
        };
        subject.hidden.iter().map(value).collect()
    }

    /// Conversion of the inherited members to the base structure.
    pub(super) fn upcast(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let base = subject.structure.base?;
        let TypeKind::Struct(inherited) = &self.decl(base).kind else {
            return None;
        };
        let name = &subject.name;
        let path = self.named(base, subject.scope());
        let fields = names::fields(inherited).into_iter().zip(subject.in_order());
        let fields = fields.map(|(theirs, ours)| {
            let ours = &ours.name;
            quote!(#theirs: value.#ours)
        });
        Some(quote! {
            impl ::core::convert::From<#name> for #path {
                /// The inherited members.
                fn from(value: #name) -> Self {
                    Self { #(#fields,)* }
                }
            }
        })
    }
}
