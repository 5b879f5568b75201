//! `FooView`: the offset of each member, found once; values are read on request.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::structure::{Field, Subject};
use super::{Emitter, member_docs, names};
use crate::mapping;

impl Emitter<'_> {
    pub(super) fn view(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let view = &self.names.companions(subject.id).view;
        let doc = format!(" A view of one [`{name}`] in place, over checked bytes.");
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let (location, absent) = match subject.is_mutable() {
            true => (quote!(#rt::Span), quote!(#rt::Span::ABSENT)),
            false => (self.names.primitive("u32"), quote!(#rt::ABSENT)),
        };
        let named = subject.fields.iter().map(|field| &field.member.name[..]);
        let named = names::distinct(named, mapping::VIEW_METHODS);
        let fields = subject.fields.iter().zip(&named);
        let accessors = fields
            .clone()
            .map(|(field, accessor)| self.accessor(field, accessor, subject));
        let owned = subject.fields.iter().map(|field| {
            let Field { name, path, .. } = field;
            quote!(#name: self.reader.to_owned::<#path>(&self.at)?)
        });
        let hidden = self.hidden_values(subject);
        let key_hash = (!subject.structure.nested).then(|| {
            quote! {
                /// Key hash; all zero for a type without a key.
                pub fn key_hash(&self) -> #rt::KeyHash {
                    #rt::codec::hash::<#name>(|hasher| self.transcribe_key_(hasher))
                        .unwrap_or(#rt::KeyHash::NONE)
                }
            }
        });
        let lent = self.plain_view(subject);
        let parse = self.parse_fn(subject, &absent);
        let encoder = self.names.parameter("E");
        let keys = subject.key_fields().into_iter().map(|field| &field.path);
        let debug_name = name.to_string();
        let debug = fields.map(|(field, accessor)| {
            let text = field.name.to_string();
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
                #(#accessors)*

                /// The owned form. Fails only if the bytes have been altered since
                /// they were checked.
                pub fn to_owned(&self) -> #rt::Result<#name> {
                    ::core::result::Result::Ok(#name { #(#owned,)* #(#hidden,)* })
                }

                #key_hash
                #lent

                const ABSENT: Self =
                    Self { reader: #rt::Reader::empty(), at: [#absent; #count] };

                #parse

                fn transcribe_key_<#encoder: #rt::encode::Encoder>(
                    &self,
                    encoder: &mut #encoder,
                ) -> #rt::Result<()> {
                    #(self.reader.transcribe_key::<#keys, _>(&self.at, encoder)?;)*
                    ::core::result::Result::Ok(())
                }
            }

            impl ::core::fmt::Debug for #view<'_> {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#debug_name) #(#debug)* .finish()
                }
            }
        }
    }

    /// Checks the bytes and finds the members.
    fn parse_fn(&self, subject: &Subject<'_>, absent: &TokenStream) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let at = match subject.is_mutable() {
            true => self.listed_members(subject, absent),
            false => {
                let at = self.check_members(subject);
                quote!(let at = #at;)
            }
        };
        // The compiler removes the unused parts of an inlined view of a small structure.
        let inline = subject.inline().map(|_| quote!(#[inline(always)]));
        let (cursor, moved) = subject.cursor();
        quote! {
            #inline
            fn parse_(reader: &mut #rt::Reader<'a>) -> #rt::Result<Self> {
                #cursor
                let scope = reader.begin(#extensibility)?;
                let inside = *reader;
                #at
                reader.end(scope);
                #moved
                ::core::result::Result::Ok(Self { reader: inside, at })
            }
        }
    }

    /// For [`Shape::check`](spindle_dds_idl_runtime::shape::Shape::check).
    pub(super) fn check_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let inline = subject.inline();
        let body = if subject.is_mutable() {
            let view = &self.names.companions(subject.id).view;
            quote!(#view::parse_(reader).map(|_| ()))
        } else {
            let at = self.check_members(subject);
            let offset = self.names.primitive("u32");
            let count = Literal::usize_unsuffixed(subject.fields.len());
            let (cursor, moved) = subject.cursor();
            quote! {
                #cursor
                let scope = reader.begin(#extensibility)?;
                let _: [#offset; #count] = #at;
                reader.end(scope);
                #moved
                ::core::result::Result::Ok(())
            }
        };
        quote! {
            #inline
            fn check(reader: &mut #rt::Reader<'_>) -> #rt::Result<()> {
                #body
            }
        }
    }

    /// Finds the members of a mutable structure.
    fn listed_members(&self, subject: &Subject<'_>, absent: &TokenStream) -> TokenStream {
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let arms = subject.fields.iter().enumerate().map(|(index, field)| {
            let (path, index) = (&field.path, Literal::usize_unsuffixed(index));
            let id = Literal::u32_unsuffixed(field.member.id);
            quote!(#id => at[#index] = reader.check_value::<#path>()?,)
        });
        quote! {
            #[allow(unused_mut)]
            let mut at = [#absent; #count];
            while let ::core::option::Option::Some(parameter) = reader.next_parameter()? {
                match parameter.id {
                    #(#arms)*
                    _ => reader.unknown(&parameter)?,
                }
                reader.end_parameter(parameter);
            }
        }
    }

    fn accessor(&self, field: &Field<'_>, name: &Ident, subject: &Subject<'_>) -> TokenStream {
        let doc = member_docs(field.member);
        let path = &field.path;
        let ty = self.shown_member(field.member, subject.scope());
        quote! {
            #doc
            #[inline]
            pub fn #name(&self) -> #ty {
                self.reader.show::<#path>(&self.at)
            }
        }
    }
}
