//! The methods of a builder for each member.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::Next;
use crate::emit::structure::{Field, Subject};
use crate::emit::{Emitter, member_docs, names};
use crate::mapping;
use crate::model::{Element, Member, Type, TypeId, TypeKind};

/// Makes the methods of one builder.
pub(in crate::emit) struct Methods<'e, 's> {
    emitter: &'e Emitter<'e>,
    subject: &'e Subject<'s>,
    /// By prefix, member and suffix.
    names: BTreeMap<(&'static str, String, &'static str), Ident>,
    /// The method that sets all members.
    all: Ident,
}

/// Prefix and suffix of the name of a member in the names of its methods.
const AFFIXES: &[(&str, &str)] = &[
    ("set_", ""),
    ("", "_with"),
    ("", "_reuse_with"),
    ("", "_from"),
];

impl<'e, 's> Methods<'e, 's> {
    pub(in crate::emit) fn new(emitter: &'e Emitter<'e>, subject: &'e Subject<'s>) -> Self {
        let mut names = BTreeMap::new();
        let plain = subject.fields.iter().map(|field| &field.member.name[..]);
        let plain = names::distinct(plain, mapping::BUILDER_METHODS);
        let mut taken: BTreeSet<String> = plain.iter().map(Ident::to_string).collect();
        for (field, plain) in subject.fields.iter().zip(plain) {
            names.insert(("", field.member.name.clone(), ""), plain);
        }
        for field in &subject.fields {
            for (prefix, suffix) in AFFIXES {
                if (*prefix == "set_") != field.fixed {
                    continue;
                }
                let name = &field.member.name;
                let derived = names::fresh(&mut taken, &format!("{prefix}{name}{suffix}"));
                names.insert((prefix, name.clone(), suffix), names::ident(&derived));
            }
        }
        Self {
            emitter,
            subject,
            names,
            all: names::ident(&names::fresh(&mut taken, "set_all")),
        }
    }

    fn name(&self, prefix: &'static str, field: &Field<'_>, suffix: &'static str) -> Ident {
        let known = self.names.get(&(prefix, field.member.name.clone(), suffix));
        known
            .cloned()
            .unwrap_or_else(|| format_ident!("{prefix}{}{suffix}", field.member.name))
    }

    /// For a structure that is complete from the start.
    pub(super) fn set_all(&self) -> TokenStream {
        let (method, name) = (&self.all, &self.subject.name);
        quote! {
            /// Replaces all members.
            #[inline]
            pub fn #method(&mut self, value: &#name) -> &mut Self {
                self.sample.set_all::<#name>(value);
                self
            }
        }
    }

    /// The methods of a member of fixed size.
    pub(super) fn setter(&self, field: &Field<'_>) -> TokenStream {
        let Field { path, member, .. } = field;
        let doc = member_docs(member);
        let name = self.name("set_", field, "");
        let (ty, value) = self.emitter.taken_member(member, self.subject.scope());
        let inner = self.inner(field).or_else(|| self.elements(field));
        quote! {
            #doc
            #[inline]
            pub fn #name(&mut self, value: #ty) -> &mut Self {
                self.sample.set::<#path>(#value);
                self
            }
            #inner
        }
    }

    /// The builder of a nested structure of fixed size, over its bytes in the sample.
    fn inner(&self, field: &Field<'_>) -> Option<TokenStream> {
        let id = self.composite_of(&field.member.ty)?;
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let name = self.name("", field, "");
        let doc = self.docs_and(member, &[" A builder that changes it in place."]);
        let error = self.error();
        let builder = self.emitter.named_builder(id, self.subject.scope());
        Some(quote! {
            #doc
            #[inline]
            pub fn #name(&mut self) -> #builder<#rt::Part<'_, #error>> {
                self.sample.inner::<#path, #shape>()
            }
        })
    }

    /// The elements of an array of structures of fixed size, each a builder over its bytes
    /// in the sample.
    fn elements(&self, field: &Field<'_>) -> Option<TokenStream> {
        let Type::Array {
            element,
            dimensions,
        } = self.emitter.resolve(&field.member.ty)
        else {
            return None;
        };
        let [_, rows @ ..] = &dimensions[..] else {
            return None;
        };
        self.composite_within(&element.ty)?;
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let name = self.name("", field, "");
        let element = self
            .emitter
            .rows_within(element, rows, &member.range, self.subject.scope());
        let doc = self.docs_and(member, &[" Builders that change its elements in place."]);
        let error = self.error();
        Some(quote! {
            #doc
            pub fn #name(&mut self) -> #rt::Elements<'_, #element, #error> {
                self.sample.elements::<#path, #shape>()
            }
        })
    }

    /// The methods that write a member of varying size.
    pub(in crate::emit) fn appenders(&self, field: &Field<'_>, next: &Next) -> TokenStream {
        let Field { path, member, .. } = field;
        let method = self.name("", field, "");
        let doc = member_docs(member);
        let (ty, value) = self.emitter.taken_member(member, self.subject.scope());
        let (parameters, write) = match member.optional {
            true => (
                quote!(value: ::core::option::Option<#ty>,),
                match self.emitter.is_scalar(&member.ty) {
                    true => quote!(append_optional::<#path, _>(value.as_ref())),
                    false => quote!(append_optional::<#path, _>(value)),
                },
            ),
            false => (quote!(value: #ty,), quote!(append::<#path>(#value))),
        };
        let plain = self.append(next, &doc, &method, parameters, write);
        let more = match self.emitter.resolve(&member.ty) {
            Type::Sequence { element, .. } => match self.emitter.plain_primitive(&element.ty) {
                Some(_) if !member.range.is_empty() => self.list(field, next, element, &[]),
                Some(primitive) if mapping::is_byte(primitive) => self.bytes(field, next),
                Some(primitive) => {
                    let element = self.emitter.primitive(primitive, self.subject.scope());
                    self.numbers(field, next, &element)
                }
                None => self.list(field, next, element, &[]),
            },
            Type::Array {
                element,
                dimensions,
            } => match &dimensions[..] {
                [_] if self.emitter.plain_primitive(&element.ty).is_some() => TokenStream::new(),
                [_, rows @ ..] => self.list(field, next, element, rows),
                [] => TokenStream::new(),
            },
            Type::Map { key, value, .. } => self.entries(field, next, key, value),
            Type::Named(_) => self.composite(field, next),
            _ => TokenStream::new(),
        };
        quote!(#plain #more)
    }

    /// A method that writes a member and returns the builder of the next stage.
    fn append(
        &self,
        next: &Next,
        doc: &TokenStream,
        method: &Ident,
        parameters: TokenStream,
        write: TokenStream,
    ) -> TokenStream {
        let slot = self.emitter.names.parameter("S");
        let builder = &self.emitter.names.companions(self.subject.id).builder;
        let Next {
            parameters: first,
            before,
            stage,
            then,
        } = next;
        quote! {
            #doc
            #[inline]
            pub fn #method(
                self,
                #first
                #parameters
            ) -> ::core::result::Result<#builder<#slot, #stage>, #slot::Error> {
                let mut sample = self.sample;
                #before
                sample.#write?;
                #then
                ::core::result::Result::Ok(#builder {
                    sample,
                    stage: ::core::marker::PhantomData,
                })
            }
        }
    }

    fn bytes(&self, field: &Field<'_>, next: &Next) -> TokenStream {
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let [bytes, usize] = ["u8", "usize"].map(|name| self.emitter.names.primitive(name));
        let fill = |suffix, docs: &[&str], zero: bool| {
            self.append(
                next,
                &self.docs_and(member, docs),
                &self.name("", field, suffix),
                quote!(len: #usize, fill: impl ::core::ops::FnOnce(&mut [#bytes]),),
                quote!(append_bytes::<#path, #shape>(len, #zero, fill)),
            )
        };
        let with = fill(
            "_with",
            &[" `fill` writes `len` bytes in place, without a copy; they are zero before."],
            true,
        );
        let reuse_with = fill(
            "_reuse_with",
            &[
                " `fill` writes `len` bytes in place, without a copy. The bytes have the",
                " previous contents of this process's ring, such as an older sample of its",
                " own: `fill` must write every one of them, for all of them are published.",
            ],
            false,
        );
        quote!(#with #reuse_with)
    }

    fn numbers(&self, field: &Field<'_>, next: &Next, element: &TokenStream) -> TokenStream {
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let usize = self.emitter.names.primitive("usize");
        let with = self.append(
            next,
            &self.docs_and(
                member,
                &[" `fill` writes `len` elements in place, without a copy; they are zero before."],
            ),
            &self.name("", field, "_with"),
            quote!(len: #usize, fill: impl ::core::ops::FnOnce(#rt::SeqMut<'_, #element>),),
            quote!(append_numbers::<#path, #shape>(len, fill)),
        );
        let from = self.append(
            next,
            &self.docs_and(
                member,
                &[" Of `len` elements, each what `element` makes of its index."],
            ),
            &self.name("", field, "_from"),
            quote!(len: #usize, element: impl ::core::ops::FnMut(#usize) -> #element,),
            quote!(append_from::<#path, #shape>(len, element)),
        );
        quote!(#with #from)
    }

    /// For an array, `rows` are the dimensions of an element.
    fn list(&self, field: &Field<'_>, next: &Next, element: &Element, rows: &[u32]) -> TokenStream {
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let range = self.emitter.range_of(&member.ty, &member.range);
        let element = self
            .emitter
            .rows_within(element, rows, range, self.subject.scope());
        let error = self.error();
        self.append(
            next,
            &self.docs_and(
                member,
                &[" `build` writes it in place, element by element."],
            ),
            &self.name("", field, "_with"),
            quote! {
                build: impl ::core::ops::FnOnce(
                    &mut #rt::List<'_, #element, #error>,
                ) -> ::core::result::Result<(), #error>,
            },
            quote!(append_list::<#path, #shape>(build)),
        )
    }

    fn entries(
        &self,
        field: &Field<'_>,
        next: &Next,
        key: &Element,
        value: &Element,
    ) -> TokenStream {
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let scope = self.subject.scope();
        let shape = self.shape(member);
        let range = self.emitter.range_of(&member.ty, &member.range);
        let key = self.emitter.element(key, scope);
        let value = self.emitter.rows_within(value, &[], range, scope);
        let error = self.error();
        self.append(
            next,
            &self.docs_and(member, &[" `build` writes it in place, entry by entry."]),
            &self.name("", field, "_with"),
            quote! {
                build: impl ::core::ops::FnOnce(
                    &mut #rt::Entries<'_, #key, #value, #error>,
                ) -> ::core::result::Result<(), #error>,
            },
            quote!(append_entries::<#path, #shape>(build)),
        )
    }

    fn composite(&self, field: &Field<'_>, next: &Next) -> TokenStream {
        let Some(id) = self.composite_of(&field.member.ty) else {
            return TokenStream::new();
        };
        let Subject { rt, .. } = self.subject;
        let Field { path, member, .. } = field;
        let shape = self.shape(member);
        let error = self.error();
        let builder = self.emitter.named_builder(id, self.subject.scope());
        let part = quote!(#rt::Part<'p, #error>);
        self.append(
            next,
            &self.docs_and(
                member,
                &[" `build` writes it in place, and returns its builder in the last stage."],
            ),
            &self.name("", field, "_with"),
            quote! {
                build: impl for<'p> ::core::ops::FnOnce(
                    #builder<#part>,
                ) -> ::core::result::Result<#builder<#part, #rt::Ready>, #error>,
            },
            quote!(append_composite::<#path, #shape, _>(build)),
        )
    }

    /// The shape of a member's value, without `@optional` and the like around it.
    fn shape(&self, member: &Member) -> TokenStream {
        self.emitter
            .shape_within(&member.ty, &member.range, self.subject.scope())
    }

    /// The error type of the builder.
    fn error(&self) -> TokenStream {
        let slot = self.emitter.names.parameter("S");
        quote!(#slot::Error)
    }

    /// The structure or union that a type is.
    fn composite_of(&self, ty: &Type) -> Option<TypeId> {
        match self.emitter.resolve(ty) {
            Type::Named(id) => match &self.emitter.decl(*id).kind {
                TypeKind::Struct(_) | TypeKind::Union(_) => Some(*id),
                _ => None,
            },
            _ => None,
        }
    }

    /// As [`composite_of`](Self::composite_of), for the innermost element of arrays.
    fn composite_within(&self, ty: &Type) -> Option<TypeId> {
        match self.emitter.resolve(ty) {
            Type::Array { element, .. } => self.composite_within(&element.ty),
            ty => self.composite_of(ty),
        }
    }

    /// The comments of the IDL, followed by those of the method.
    fn docs_and(&self, member: &Member, more: &[&str]) -> TokenStream {
        let doc = member_docs(member);
        let blank = (!doc.is_empty()).then(|| quote!(#[doc = ""]));
        quote!(#doc #blank #(#[doc = #more])*)
    }
}
