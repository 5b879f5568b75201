//! `exception`: a structure that is an error.

use proc_macro2::TokenStream;
use quote::quote;

use super::Emitter;
use super::structure::{Subject, type_name};

impl Emitter<'_> {
    pub(super) fn exception(&self, subject: &Subject<'_>) -> TokenStream {
        let (name, text) = (&subject.name, type_name(subject.decl));
        let fields = subject.fields.iter().map(|field| {
            let (name, text) = (&field.name, &field.member.name);
            quote!(.field(#text, &self.#name))
        });
        quote! {
            impl ::core::fmt::Display for #name {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#text) #(#fields)* .finish()
                }
            }

            impl ::core::error::Error for #name {}
        }
    }
}
