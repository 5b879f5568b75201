//! `bitset`: a structure of numbers that are packed into one number on the wire.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::structure::type_name;
use super::{Emitter, docs, names};
use crate::mapping;
use crate::model::{Bitset, Primitive, TypeDecl};

impl Emitter<'_> {
    pub(super) fn bitset(&self, decl: &TypeDecl, bitset: &Bitset) -> TokenStream {
        let rt = self.rt(&decl.scope);
        let doc = docs(&decl.doc);
        let serde = self.serde_derive(&decl.scope);
        let name = self.names.declared_type(decl);
        let word = self.names.primitive(mapping::unsigned_bits(bitset.bits));
        let [u64, i64] = ["u64", "i64"].map(|name| self.names.primitive(name));
        let type_name = type_name(decl);
        let idents = names::distinct(bitset.fields.iter().map(|field| &field.name[..]), &[]);
        let fields: Vec<_> = bitset
            .fields
            .iter()
            .zip(&idents)
            .map(|(field, ident)| {
                let path = format!("{type_name}.{}", field.name);
                let [offset, bits] = [field.offset, field.bits].map(Literal::u8_unsuffixed);
                let place = quote! {
                    #rt::shape::BitField { path: #path, offset: #offset, bits: #bits }
                };
                (field, ident, place)
            })
            .collect();
        let declared = fields.iter().map(|(field, ident, _)| {
            let (doc, ty) = (docs(&field.doc), self.primitive(field.ty, &decl.scope));
            quote!(#doc pub #ident: #ty)
        });
        let packed = fields
            .iter()
            .map(|(field, ident, place)| match is_signed(field.ty) {
                true => quote!(#place.signed(#i64::from(self.#ident))?),
                false => quote!(#place.unsigned(#u64::from(self.#ident))?),
            });
        let unpacked = fields.iter().map(|(field, ident, place)| {
            let ty = self.primitive(field.ty, &decl.scope);
            match field.ty {
                Primitive::Boolean => quote!(#ident: #place.unsigned_of(word) != 0),
                signed if is_signed(signed) => quote!(#ident: #place.signed_of(word) as #ty),
                _ => quote!(#ident: #place.unsigned_of(word) as #ty),
            }
        });
        quote! {
            #doc
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
            #serde
            pub struct #name {
                #(#declared,)*
            }

            impl #rt::shape::Bitset for #name {
                type Word = #word;

                fn to_word(self) -> #rt::Result<#word> {
                    let word: #u64 = 0 #(| #packed)*;
                    ::core::result::Result::Ok(word as #word)
                }

                fn from_word(word: #word) -> Self {
                    let word = #u64::from(word);
                    Self { #(#unpacked,)* }
                }
            }
        }
    }
}

fn is_signed(primitive: Primitive) -> bool {
    matches!(
        primitive,
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64
    )
}
