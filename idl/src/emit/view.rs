//! `FooView`: where each member lies, found once; values are read when asked for.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::structure::{Field, Subject};
use super::{Emitter, docs};
use crate::mapping;
use crate::model::Value;

impl Emitter<'_> {
    pub(super) fn view(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let view = &self.names.companions(subject.id).view;
        let doc =
            format!(" Reads a [`{name}`] where it lies; made once the bytes have been checked.");
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let (location, absent) = match subject.is_mutable() {
            true => (quote!(#rt::Span), quote!(#rt::Span::ABSENT)),
            false => (self.names.primitive("u32"), quote!(#rt::ABSENT)),
        };
        let parse = self.parse_fn(subject, &absent);
        let transcribe = self.transcribe_fn(subject);
        let accessors = subject
            .fields
            .iter()
            .map(|field| self.accessor(field, subject));
        let to_owned = self.to_owned_fn(subject);
        let key_hash = (!subject.structure.nested).then(|| {
            quote! {
                /// Key hash; all zero for a type without a key.
                pub fn key_hash(&self) -> #rt::KeyHash {
                    #rt::codec::hash::<#name>(|hasher| self.transcribe_key_(hasher))
                        .unwrap_or(#rt::KeyHash::NONE)
                }
            }
        });
        let debug_name = name.to_string();
        let debug = subject.fields.iter().map(|field| {
            let (text, accessor) = (field.name.to_string(), accessor_name(field));
            quote!(.field(#text, &self.#accessor()))
        });
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy)]
            pub struct #view<'a> {
                reader: #rt::Reader<'a>,
                at: [#location; #count],
            }

            impl<'a> #view<'a> {
                const ABSENT: Self =
                    Self { reader: #rt::Reader::empty(), at: [#absent; #count] };

                #parse
                #transcribe
                #(#accessors)*
                #to_owned
                #key_hash
            }

            impl ::core::fmt::Debug for #view<'_> {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#debug_name) #(#debug)* .finish()
                }
            }
        }
    }

    fn parse_fn(&self, subject: &Subject<'_>, absent: &TokenStream) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let check = |field: &Field<'_>| {
            let Field { shape, path, .. } = field;
            quote! {
                #rt::InMember::in_member(
                    <#shape as #rt::shape::Shape>::check(reader),
                    #path,
                )?;
            }
        };
        let members = if subject.is_mutable() {
            let arms = subject.fields.iter().map(|field| {
                let (id, index, check) = (&field.id, &field.index, check(field));
                quote! {
                    #id => {
                        at[#index] = reader.span();
                        #check
                    }
                }
            });
            quote! {
                while let ::core::option::Option::Some(parameter) = reader.next_parameter()? {
                    match parameter.id {
                        #(#arms)*
                        _ => reader.unknown(&parameter)?,
                    }
                    reader.end_parameter(parameter);
                }
            }
        } else {
            let members = subject.fields.iter().map(|field| {
                let (index, key, check) = (&field.index, field.key, check(field));
                quote! {
                    if !reader.absent(#extensibility, #key) {
                        at[#index] = reader.position();
                        #check
                    }
                }
            });
            quote!(#(#members)*)
        };
        quote! {
            fn parse_(
                reader: &mut #rt::Reader<'a>,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                let scope = reader.begin(#extensibility)?;
                let inside = *reader;
                #[allow(unused_mut)]
                let mut at = [#absent; #count];
                #members
                reader.end(scope);
                ::core::result::Result::Ok(Self { reader: inside, at })
            }
        }
    }

    fn transcribe_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let encoder = self.names.parameter("E");
        let members = subject.key_fields().into_iter().map(|field| {
            let Field { shape, index, .. } = field;
            let initial = self.initial(field.member, shape, subject);
            quote! {
                match self.reader.locate(self.at[#index]) {
                    ::core::option::Option::Some(mut reader) => {
                        <#shape as #rt::shape::Shape>::transcribe_key(&mut reader, encoder)?;
                    }
                    ::core::option::Option::None => {
                        <#shape as #rt::shape::Shape>::write(&#initial, encoder)?;
                    }
                }
            }
        });
        quote! {
            fn transcribe_key_<#encoder: #rt::encode::Encoder>(
                &self,
                encoder: &mut #encoder,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #(#members)*
                ::core::result::Result::Ok(())
            }
        }
    }

    fn accessor(&self, field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let Field {
            shape,
            index,
            member,
            ..
        } = field;
        let doc = docs(&member.doc);
        let name = accessor_name(field);
        let ty = self.shown(&member.ty, subject.scope());
        let or_default = match &member.default {
            Some(value @ Value::String(_)) => {
                let value = self.value(value, &member.ty, subject.scope());
                quote!(.unwrap_or(#value))
            }
            Some(value) => {
                let value = self.value(value, &member.ty, subject.scope());
                quote!(.unwrap_or(#value))
            }
            None => quote!(.unwrap_or_else(<#shape as #rt::shape::Shape>::absent)),
        };
        quote! {
            #doc
            pub fn #name(&self) -> #ty {
                self.reader.show::<#shape>(self.at[#index]) #or_default
            }
        }
    }

    fn to_owned_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let members = subject.fields.iter().map(|field| {
            let Field {
                name,
                shape,
                index,
                path,
                ..
            } = field;
            let initial = self.initial(field.member, shape, subject);
            quote! {
                #name: match self.reader.locate(self.at[#index]) {
                    ::core::option::Option::Some(mut reader) => {
                        #rt::InMember::in_member(
                            <#shape as #rt::shape::Shape>::read(&mut reader),
                            #path,
                        )?
                    }
                    ::core::option::Option::None => #initial,
                }
            }
        });
        quote! {
            /// The owned form. Fails only when the bytes have been altered since
            /// they were checked.
            pub fn to_owned(&self) -> ::core::result::Result<#name, #rt::CdrError> {
                ::core::result::Result::Ok(#name { #(#members,)* })
            }
        }
    }
}

/// The method of a member.
fn accessor_name(field: &Field<'_>) -> proc_macro2::Ident {
    let name = mapping::identifier_beside(&field.name.to_string(), mapping::VIEW_METHODS);
    format_ident!("{name}")
}
