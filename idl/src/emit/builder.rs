//! `FooBuilder`: a sample built where it will lie, its order of writing in types.
//!
//! Members are split into runs of fixed size, with one member of varying size
//! between two runs. A stage waits for such a member; the method named after it
//! consumes the builder and returns the next stage. The last stage is
//! `Complete`, the only one that can publish.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::structure::{Field, Subject};
use super::{Emitter, member_docs};
use crate::mapping;
use crate::model::Type;

impl Emitter<'_> {
    pub(super) fn builder(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let runs = runs(&subject.fields);

        let first_stage = self.stage(subject, runs.first().and_then(|run| run.then));
        let start = self.start_fn(subject, &runs);
        let impls = runs.iter().enumerate().map(|(index, run)| {
            let setters = run.fixed.iter().map(|field| self.setter(field, subject));
            let appenders = run
                .then
                .map(|field| self.appenders(field, &runs[index + 1], subject));
            let at = self.stage(subject, run.then);
            // What stands before all that varies stays where it is in every stage.
            let (in_all_stages, in_this_stage) = match index {
                0 => (Some(quote!(#(#setters)*)), quote!(#appenders)),
                _ => (None, quote!(#(#setters)* #appenders)),
            };
            let in_all_stages = in_all_stages.filter(|methods| !methods.is_empty()).map(|methods| {
                quote!(impl<#slot: #rt::Slot, #stage> #builder<#slot, #stage> { #methods })
            });
            let in_this_stage = (!in_this_stage.is_empty())
                .then(|| quote!(impl<#slot: #rt::Slot> #builder<#slot, #at> { #in_this_stage }));
            quote!(#in_all_stages #in_this_stage)
        });
        let keys = subject.key_fields().into_iter().map(|field| {
            let path = &field.path;
            quote!(self.sample.hash::<#path>(hasher)?;)
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
        let doc = format!(" Builds one [`{name}`] in place.");
        quote! {
            #[doc = #doc]
            ///
            /// Members of fixed size have a `set_` method, and their defaults until then;
            /// the others are written in the order of their declaration, each by the
            /// method of its name, which leads to the next stage.
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

    fn stage(&self, subject: &Subject<'_>, waits_for: Option<&Field<'_>>) -> TokenStream {
        let rt = &subject.rt;
        match waits_for {
            Some(Field { path, .. }) => quote!(#rt::Needs<#path>),
            None => quote!(#rt::Complete),
        }
    }

    fn start_fn(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> TokenStream {
        let rt = &subject.rt;
        let slot = self.names.parameter("S");
        let extensibility = subject.extensibility();
        let prefix = runs.first().map(|run| &run.fixed[..]).unwrap_or_default();
        let defaults = defaults(prefix);
        let mutability = (!prefix.is_empty()).then(|| quote!(mut));
        quote! {
            fn start_(
                slot: #slot,
                representation: #rt::Representation,
            ) -> #rt::Result<Self> {
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

    fn setter(&self, field: &Field<'_>, subject: &Subject<'_>) -> TokenStream {
        let Field { path, member, .. } = field;
        let doc = member_docs(member);
        let name = format_ident!("set_{}", member.name);
        let (ty, value) = self.taken(&member.ty, subject.scope());
        quote! {
            #doc
            pub fn #name(&mut self, value: #ty) -> &mut Self {
                self.sample.set::<#path>(#value);
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
        let Field { path, member, .. } = field;
        let name = &field.name;
        let method = mapping::identifier_beside(&name.to_string(), mapping::BUILDER_METHODS);
        let method = format_ident!("{method}");
        let doc = member_docs(member);
        let (ty, value) = self.taken(&member.ty, subject.scope());
        let slot = self.names.parameter("S");
        let builder = &self.names.companions(subject.id).builder;
        let stage = self.stage(subject, next.then);
        let result = quote!(::core::result::Result<#builder<#slot, #stage>, #slot::Error>);
        let defaults = defaults(&next.fixed);
        let go_on = quote! {
            #defaults
            ::core::result::Result::Ok(#builder { sample, stage: ::core::marker::PhantomData })
        };
        let plain = quote! {
            #doc
            pub fn #method(self, value: #ty) -> #result {
                let mut sample = self.sample;
                sample.append::<#path>(#value)?;
                #go_on
            }
        };
        let Type::Sequence { element, .. } = self.resolve(&member.ty) else {
            return plain;
        };
        let Type::Primitive(primitive) = self.resolve(&element.ty) else {
            return plain;
        };
        if !mapping::is_byte(*primitive) {
            return plain;
        }
        let [bytes, usize] = ["u8", "usize"].map(|name| self.names.primitive(name));
        let (with, reuse_with) = (
            format_ident!("{}_with", member.name),
            format_ident!("{}_reuse_with", member.name),
        );
        let fill = |method, docs: &[&str], zero: bool| {
            let blank = (!doc.is_empty()).then(|| quote!(#[doc = ""]));
            quote! {
                #doc
                #blank
                #(#[doc = #docs])*
                pub fn #method(
                    self,
                    len: #usize,
                    fill: impl ::core::ops::FnOnce(&mut [#bytes]),
                ) -> #result {
                    let mut sample = self.sample;
                    sample.append_bytes::<#path>(len, #zero, fill)?;
                    #go_on
                }
            }
        };
        let with = fill(
            with,
            &[" `fill` writes `len` bytes where they lie, without a copy; they are zero before."],
            true,
        );
        let reuse_with = fill(
            reuse_with,
            &[
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

/// Writes a run of fixed members with their defaults to `sample`.
fn defaults(run: &[&Field<'_>]) -> TokenStream {
    let paths = run.iter().map(|field| &field.path);
    quote!(#(sample.append_default::<#paths>()?;)*)
}
