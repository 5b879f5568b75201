//! `enum`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::{Emitter, docs, names};
use crate::mapping;
use crate::model::{Enum, Extensibility, TypeDecl, TypeId};

impl Emitter<'_> {
    pub(super) fn enumeration(
        &self,
        id: TypeId,
        decl: &TypeDecl,
        enumeration: &Enum,
    ) -> TokenStream {
        let rt = self.rt(&decl.scope);
        let doc = docs(&decl.doc);
        let serde = self.serde_derive(&decl.scope);
        let name = self.names.declared_type(decl);
        let bits = self
            .names
            .primitive(mapping::enum_bits(enumeration.bit_bound));
        let named = self.names.literals(id);
        let mut taken: BTreeSet<String> = named.iter().map(Ident::to_string).collect();
        let literals: Vec<_> = enumeration
            .literals
            .iter()
            .zip(named)
            .map(|(literal, name)| {
                let value = Literal::u32_unsuffixed(literal.value.unsigned_abs());
                let value = if literal.value < 0 {
                    quote!(-#value)
                } else {
                    quote!(#value)
                };
                (name.clone(), value)
            })
            .collect();
        let variants = literals.iter().zip(&enumeration.literals).enumerate().map(
            |(index, ((name, _), literal))| {
                let doc = docs(&literal.doc);
                let default = (index == enumeration.default_literal).then(|| quote!(#[default]));
                quote!(#doc #default #name)
            },
        );
        let (literal_names, values): (Vec<_>, Vec<_>) = literals.iter().cloned().unzip();

        let closed = enumeration.extensibility == Extensibility::Final;
        let unknown = names::ident(&names::fresh(&mut taken, "Unknown"));
        let unknown_variant = (!closed).then(|| {
            quote! {
                /// A number that is not the value of a literal. It is never read from a sample,
                /// and refused on writing.
                #unknown(#bits),
            }
        });
        let unknown_to_bits = (!closed).then(|| quote!(Self::#unknown(bits) => bits,));
        let from = self.conversion(decl, (!closed).then_some(&unknown), &name, &bits);
        let order = self.order(decl, &name);
        quote! {
            #doc
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
            #serde
            pub enum #name {
                #(#variants,)*
                #unknown_variant
            }

            #order
            #from

            impl ::core::convert::From<#name> for #bits {
                fn from(value: #name) -> Self {
                    #rt::shape::Enumeration::to_bits(value)
                }
            }

            impl #rt::shape::Enumeration for #name {
                type Bits = #bits;

                fn from_bits(bits: #bits) -> ::core::option::Option<Self> {
                    ::core::option::Option::Some(match bits {
                        #(#values => Self::#literal_names,)*
                        _ => return ::core::option::Option::None,
                    })
                }

                fn to_bits(self) -> #bits {
                    match self {
                        #(Self::#literal_names => #values,)*
                        #unknown_to_bits
                    }
                }
            }
        }
    }

    /// By value, independent of the order of the literals and of unknown values: all
    /// versions of the type order the entries of maps alike.
    fn order(&self, decl: &TypeDecl, name: &Ident) -> TokenStream {
        let rt = self.rt(&decl.scope);
        quote! {
            impl ::core::cmp::Ord for #name {
                /// By value.
                fn cmp(&self, other: &Self) -> ::core::cmp::Ordering {
                    let [one, other] = [*self, *other].map(#rt::shape::Enumeration::to_bits);
                    ::core::cmp::Ord::cmp(&one, &other)
                }
            }

            impl ::core::cmp::PartialOrd for #name {
                fn partial_cmp(&self, other: &Self) -> ::core::option::Option<::core::cmp::Ordering> {
                    ::core::option::Option::Some(::core::cmp::Ord::cmp(self, other))
                }
            }
        }
    }

    /// From a number: always, or only from the value of a literal.
    fn conversion(
        &self,
        decl: &TypeDecl,
        unknown: Option<&Ident>,
        name: &Ident,
        bits: &TokenStream,
    ) -> TokenStream {
        let rt = self.rt(&decl.scope);
        match unknown {
            None => quote! {
                impl ::core::convert::TryFrom<#bits> for #name {
                    /// A number that is not the value of a literal.
                    type Error = #bits;

                    fn try_from(bits: #bits) -> ::core::result::Result<Self, #bits> {
                        <Self as #rt::shape::Enumeration>::from_bits(bits).ok_or(bits)
                    }
                }
            },
            Some(unknown) => quote! {
                impl ::core::convert::From<#bits> for #name {
                    fn from(bits: #bits) -> Self {
                        match <Self as #rt::shape::Enumeration>::from_bits(bits) {
                            ::core::option::Option::Some(literal) => literal,
                            ::core::option::Option::None => Self::#unknown(bits),
                        }
                    }
                }
            },
        }
    }
}
