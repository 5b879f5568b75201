//! `FooBuilder`: a sample built where it will lie, its order of writing in types.
//!
//! Members are split into runs of fixed size, with one member of varying size
//! between two runs. A stage waits for such a member; the method named after it
//! consumes the builder and returns the next stage. The last stage is
//! `Complete`, the only one that can publish.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::structure::{Field, Subject};
use super::{Emitter, docs};
use crate::mapping;
use crate::model::Type;

impl Emitter<'_> {
    pub(super) fn builder(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let runs = runs(&subject.fields);

        let markers = self.markers(subject, &runs);
        let first_stage = self.stage(subject, runs.first().and_then(|run| run.then));
        let start = self.start_fn(subject, &runs);
        let mut impls = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            let setters = run.fixed.iter().map(|field| self.setter(field, subject));
            // What stands before all that varies stays where it is in every stage.
            let (generics, at) = match index {
                0 => (quote!(<#slot: #rt::Slot, #stage>), quote!(#stage)),
                _ => (quote!(<#slot: #rt::Slot>), self.stage(subject, run.then)),
            };
            impls.push(quote!(impl #generics #builder<#slot, #at> { #(#setters)* }));
            if let Some(field) = run.then {
                let next = &runs[index + 1];
                let at = self.stage(subject, Some(field));
                let methods = self.appenders(field, next, subject);
                impls.push(quote!(impl<#slot: #rt::Slot> #builder<#slot, #at> { #methods }));
            }
        }
        let keys = subject.key_fields().into_iter().map(|field| {
            let Field { shape, index, .. } = field;
            quote!(self.sample.hash::<#shape>(#index, hasher)?;)
        });
        let keyed = subject.structure.members.iter().any(|member| member.key);
        let key = match keyed {
            true => quote! {
                #rt::codec::hash::<#name>(|hasher| {
                    #(#keys)*
                    ::core::result::Result::Ok(())
                })?
            },
            false => quote!(#rt::KeyHash::NONE),
        };
        let mutability = keyed.then(|| quote!(mut));
        let doc = format!(
            " Builds a [`{name}`] in place. Members of fixed size have a `set_` method and\n \
             their defaults until then; the others are written in the order of their\n \
             declaration, each by the method of its name, which leads to the next stage."
        );
        quote! {
            #markers

            #[doc = #doc]
            #[derive(Debug)]
            #[must_use]
            pub struct #builder<#slot: #rt::Slot, #stage = #first_stage> {
                sample: #rt::InPlace<#slot, #count>,
                stage: ::core::marker::PhantomData<#stage>,
            }

            impl<#slot: #rt::Slot> #builder<#slot> {
                #start
            }

            #(#impls)*

            impl<#slot: #rt::Slot> #builder<#slot, #rt::Complete> {
                /// Publishes the sample.
                ///
                /// # Errors
                /// Those of the slot.
                pub fn publish(
                    #mutability self,
                ) -> ::core::result::Result<#slot::Receipt, #slot::Error> {
                    let key = #key;
                    self.sample.publish(key)
                }
            }
        }
    }

    /// One empty type a member that a stage waits for.
    fn markers(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> TokenStream {
        let waited: Vec<_> = runs.iter().filter_map(|run| run.then).collect();
        if waited.is_empty() {
            return TokenStream::new();
        }
        let companions = self.names.companions(subject.id);
        let (builder, needs) = (&companions.builder, &companions.needs);
        let doc = format!(" Stages of [`{builder}`]: the member that is to be written next.");
        let markers = waited.iter().map(|field| {
            let name = &field.name;
            quote! {
                #[derive(Debug)]
                pub enum #name {}
            }
        });
        quote! {
            #[doc = #doc]
            pub mod #needs {
                #(#markers)*
            }
        }
    }

    fn stage(&self, subject: &Subject<'_>, waits_for: Option<&Field<'_>>) -> TokenStream {
        let rt = &subject.rt;
        let needs = &self.names.companions(subject.id).needs;
        match waits_for {
            Some(field) => {
                let name = &field.name;
                quote!(#needs::#name)
            }
            None => quote!(#rt::Complete),
        }
    }

    fn start_fn(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> TokenStream {
        let rt = &subject.rt;
        let slot = self.names.parameter("S");
        let extensibility = subject.extensibility();
        let prefix = runs.first().map(|run| &run.fixed[..]).unwrap_or_default();
        let defaults = self.defaults(prefix, subject);
        let mutability = (!prefix.is_empty()).then(|| quote!(mut));
        quote! {
            fn start_(
                slot: #slot,
                representation: #rt::Representation,
            ) -> ::core::result::Result<Self, #rt::CdrError> {
                let #mutability sample =
                    #rt::InPlace::start(slot, representation, #extensibility)?;
                #defaults
                ::core::result::Result::Ok(Self {
                    sample,
                    stage: ::core::marker::PhantomData,
                })
            }
        }
    }

    /// Writes a run of fixed members with their defaults to `sample`.
    fn defaults(&self, run: &[&Field<'_>], subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let members = run.iter().map(|field| {
            let Field {
                shape, index, path, ..
            } = field;
            let frame = frame(field, subject);
            let initial = self.initial(field.member, shape, subject);
            quote! {
                #rt::InMember::in_member(
                    sample.append::<#shape>(#index, #frame, &#initial),
                    #path,
                )?;
            }
        });
        quote!(#(#members)*)
    }

    fn setter(&self, field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
        let Field {
            shape,
            index,
            member,
            ..
        } = field;
        let doc = docs(&member.doc);
        let name = format_ident!("set_{}", member.name);
        let (ty, value) = self.taken(&member.ty, subject.scope());
        quote! {
            #doc
            pub fn #name(&mut self, value: #ty) -> &mut Self {
                self.sample.set::<#shape>(#index, #value);
                self
            }
        }
    }

    /// The methods that write a member of varying size.
    fn appenders(
        &self,
        field: &Field<'_>,
        next: &Run<'_, '_>,
        subject: &Subject<'_>,
    ) -> TokenStream {
        let rt = &subject.rt;
        let Field {
            shape,
            index,
            path,
            member,
            ..
        } = field;
        let name = &field.name;
        let method = mapping::identifier_beside(&name.to_string(), mapping::BUILDER_METHODS);
        let method = format_ident!("{method}");
        let doc = docs(&member.doc);
        let frame = frame(field, subject);
        let (ty, value) = self.taken(&member.ty, subject.scope());
        let slot = self.names.parameter("S");
        let builder = &self.names.companions(subject.id).builder;
        let stage = self.stage(subject, next.then);
        let result = quote!(::core::result::Result<#builder<#slot, #stage>, #slot::Error>);
        let defaults = self.defaults(&next.fixed, subject);
        let go_on = quote! {
            #defaults
            ::core::result::Result::Ok(#builder { sample, stage: ::core::marker::PhantomData })
        };
        let plain = quote! {
            #doc
            pub fn #method(self, value: #ty) -> #result {
                let mut sample = self.sample;
                #rt::InMember::in_member(
                    sample.append::<#shape>(#index, #frame, #value),
                    #path,
                )?;
                #go_on
            }
        };
        let Type::Sequence { element, bound } = self.resolve(&member.ty) else {
            return plain;
        };
        let Type::Primitive(primitive) = self.resolve(element) else {
            return plain;
        };
        if !mapping::is_byte(*primitive) {
            return plain;
        }
        let bound = match bound {
            Some(bound) => {
                let bound = Literal::u32_unsuffixed(*bound);
                quote!(#bound)
            }
            None => quote!({ #rt::shape::UNBOUNDED }),
        };
        let bytes = self.names.primitive("u8");
        let (with, reuse_with) = (
            format_ident!("{}_with", member.name),
            format_ident!("{}_reuse_with", member.name),
        );
        let fill = |method, docs: &[&str], zero: bool| {
            quote! {
                #doc
                #(#[doc = #docs])*
                pub fn #method(
                    self,
                    len: usize,
                    fill: impl ::core::ops::FnOnce(&mut [#bytes]),
                ) -> #result {
                    let mut sample = self.sample;
                    #rt::InMember::in_member(
                        sample.append_bytes::<#bound>(#index, #frame, len, #zero, fill),
                        #path,
                    )?;
                    #go_on
                }
            }
        };
        let with = fill(
            with,
            &[
                "",
                " `fill` writes `len` bytes where they lie, without a copy; they are zero before.",
            ],
            true,
        );
        let reuse_with = fill(
            reuse_with,
            &[
                "",
                " `fill` writes `len` bytes where they lie, without a copy. The bytes hold",
                " whatever this process's ring held before, such as an older sample of its",
                " own: `fill` must write every one of them, for all of them are published.",
            ],
            false,
        );
        quote!(#plain #with #reuse_with)
    }
}

/// Members of fixed size, and the member of varying size that ends the run.
struct Run<'r, 's> {
    fixed: Vec<&'r Field<'s>>,
    then: Option<&'r Field<'s>>,
}

fn runs<'r, 's>(fields: &'r [Field<'s>]) -> Vec<Run<'r, 's>> {
    let mut runs = Vec::new();
    let mut fixed = Vec::new();
    for field in fields {
        if field.fixed {
            fixed.push(field);
        } else {
            runs.push(Run {
                fixed: std::mem::take(&mut fixed),
                then: Some(field),
            });
        }
    }
    runs.push(Run { fixed, then: None });
    runs
}

fn frame(field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
    let rt = &subject.rt;
    if !subject.is_mutable() {
        return quote!(#rt::Frame::Bare);
    }
    let (id, must_understand) = (&field.id, field.member.key);
    quote!(#rt::Frame::Parameter { id: #id, must_understand: #must_understand })
}
