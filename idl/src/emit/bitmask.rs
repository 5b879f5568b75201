//! `bitmask`: a number with a constant per flag, and set operators.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::structure::type_name;
use super::{Emitter, docs, names};
use crate::mapping;
use crate::model::{Bitmask, Extensibility, TypeDecl};

impl Emitter<'_> {
    pub(super) fn bitmask(&self, decl: &TypeDecl, bitmask: &Bitmask) -> TokenStream {
        let rt = self.rt(&decl.scope);
        let doc = docs(&decl.doc);
        let name = self.names.declared_type(decl);
        let word_name = mapping::unsigned_bits(bitmask.bit_bound);
        let word = self.names.primitive(word_name);
        let serde = self.options.serde.then(|| {
            let derive = self.serde_derive(&decl.scope);
            let number = format!("::core::primitive::{word_name}");
            quote!(#derive #[serde(try_from = #number, into = #number)])
        });

        let named = bitmask.flags.iter().map(|flag| &flag.name[..]);
        let named = names::distinct(named, mapping::BITMASK_METHODS);
        let flags: Vec<_> = named.into_iter().zip(&bitmask.flags).collect();
        let constants = flags.iter().map(|(name, flag)| {
            let (doc, position) = (docs(&flag.doc), Literal::u8_unsuffixed(flag.position));
            quote!(#doc pub const #name: Self = Self(1 << #position);)
        });
        let known = flags
            .iter()
            .fold(0_u64, |known, (_, flag)| known | 1 << flag.position);
        let valid = match bitmask.extensibility {
            Extensibility::Final => known,
            _ => u64::MAX >> (64 - u32::from(bitmask.bit_bound.clamp(1, 64))),
        };
        let [known, valid] = [known, valid].map(hexadecimal);
        let names = flags.iter().map(|(name, _)| {
            let text = name.to_string();
            quote!((#text, Self::#name.0 as _))
        });
        let retain = (bitmask.extensibility != Extensibility::Final).then(|| {
            quote! {
                /// The set with these bits, including bits that are not flags in this
                /// version of the type. Bits beyond the bound of the type are dropped.
                pub const fn from_bits_retain(bits: #word) -> Self {
                    Self(bits & #valid)
                }
            }
        });
        let methods = self.bitmask_methods(&word, &known);
        let operators = self.bitmask_operators(&name);
        let bits_doc = format!(
            " Only bits that the type can have are let through: {}.",
            match bitmask.extensibility {
                Extensibility::Final => "those of flags",
                _ => "those below its bound",
            }
        );
        let path = type_name(decl);
        quote! {
            #doc
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
            #serde
            pub struct #name(#word);

            impl #name {
                #(#constants)*
                #methods
                #retain
            }

            #operators

            impl ::core::fmt::Debug for #name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    #rt::shape::debug_flags(f, self.0 as _, &[#(#names),*])
                }
            }

            impl ::core::convert::From<#name> for #word {
                fn from(value: #name) -> Self {
                    value.0
                }
            }

            impl ::core::convert::TryFrom<#word> for #name {
                type Error = #rt::CdrError;

                #[doc = #bits_doc]
                fn try_from(bits: #word) -> #rt::Result<Self> {
                    #rt::shape::bitmask_from(bits, #path)
                }
            }

            impl #rt::shape::Bitmask for #name {
                type Word = #word;
                const VALID: #word = #valid;

                fn from_word(word: #word) -> Self {
                    Self(word)
                }

                fn to_word(self) -> #word {
                    self.0
                }
            }
        }
    }

    fn bitmask_methods(&self, word: &TokenStream, known: &TokenStream) -> TokenStream {
        let bool = self.names.primitive("bool");
        let option = quote!(::core::option::Option);
        quote! {
            /// No flag.
            pub const fn empty() -> Self {
                Self(0)
            }

            /// All flags.
            pub const fn all() -> Self {
                Self(#known)
            }

            /// The bits.
            pub const fn bits(self) -> #word {
                self.0
            }

            /// The set with these bits; `None` if some of them are not flags.
            pub const fn from_bits(bits: #word) -> #option<Self> {
                if bits & !#known == 0 { #option::Some(Self(bits)) } else { #option::None }
            }

            /// The set with these bits, without those that are not flags.
            pub const fn from_bits_truncate(bits: #word) -> Self {
                Self(bits & #known)
            }

            /// Whether no flag is set.
            pub const fn is_empty(self) -> #bool {
                self.0 == 0
            }

            /// Whether all flags of `other` are set.
            pub const fn contains(self, other: Self) -> #bool {
                self.0 & other.0 == other.0
            }

            /// Whether any flag of `other` is set.
            pub const fn intersects(self, other: Self) -> #bool {
                self.0 & other.0 != 0
            }

            /// Sets all flags of `other`.
            pub const fn insert(&mut self, other: Self) {
                self.0 |= other.0;
            }

            /// Clears all flags of `other`.
            pub const fn remove(&mut self, other: Self) {
                self.0 &= !other.0;
            }

            /// Sets or clears all flags of `other`.
            pub const fn set(&mut self, other: Self, value: #bool) {
                if value { self.insert(other) } else { self.remove(other) }
            }
        }
    }

    fn bitmask_operators(&self, name: &proc_macro2::Ident) -> TokenStream {
        let operators = [
            ("BitOr", "bitor", quote!(self.0 | other.0)),
            ("BitAnd", "bitand", quote!(self.0 & other.0)),
            ("BitXor", "bitxor", quote!(self.0 ^ other.0)),
            ("Sub", "sub", quote!(self.0 & !other.0)),
        ];
        let operators = operators.iter().map(|(operator, method, value)| {
            let (by_value, function) = (format_ident!("{operator}"), format_ident!("{method}"));
            let assigning = format_ident!("{operator}Assign");
            let assign_function = format_ident!("{method}_assign");
            quote! {
                impl ::core::ops::#by_value for #name {
                    type Output = Self;

                    fn #function(self, other: Self) -> Self {
                        Self(#value)
                    }
                }

                impl ::core::ops::#assigning for #name {
                    fn #assign_function(&mut self, other: Self) {
                        *self = ::core::ops::#by_value::#function(*self, other);
                    }
                }
            }
        });
        quote! {
            #(#operators)*

            impl ::core::ops::Not for #name {
                type Output = Self;

                /// All other flags.
                fn not(self) -> Self {
                    Self::from_bits_truncate(!self.0)
                }
            }
        }
    }
}

/// A number as a literal that shows its bits.
fn hexadecimal(bits: u64) -> TokenStream {
    format!("{bits:#x}").parse().unwrap_or_default()
}
