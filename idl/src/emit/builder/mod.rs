//! `FooBuilder`: a structure built in place, with the order of writing in the types.
//!
//! Members are divided into runs of fixed size, with one member of varying size
//! between two runs. Each stage waits for such a member; the method with its name
//! consumes the builder and returns the next stage. Only the last stage,
//! `Ready`, can publish. Mutable structures have that stage alone: a missing
//! member is detected when they are published.
//!
//! `methods.rs` generates the methods of members.

mod methods;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Emitter;
use super::structure::{Field, Subject};
pub(super) use methods::Methods;

impl Emitter<'_> {
    pub(super) fn builder(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let count = Literal::usize_unsuffixed(subject.fields.len());
        let runs = runs(subject);
        let first_stage = self.stage(subject, runs.first().and_then(|run| run.then));
        let methods = self.stages(subject, &runs);
        let composite = self.composite(subject, &runs);
        let publish = (!subject.structure.nested).then(|| self.publish_impl(subject));
        let doc = format!(" Builds one [`{name}`] in place.");
        let how = match subject.is_mutable() {
            true => {
                "
 Members are written when they are set, in any order. A member that is not set has
 its `@default`; if it has none and is not optional, publishing is an error."
            }
            false => {
                "
 Members of fixed size start with their defaults and have a `set_` method;
 the others are written in the order of their declaration, each by the
 method of its name, which returns the next stage."
            }
        };
        let how = how.lines().map(|line| quote!(#[doc = #line]));
        quote! {
            #[doc = #doc]
            #(#how)*
            #[derive(Debug)]
            #[must_use]
            pub struct #builder<#slot: #rt::Room, #stage = #first_stage> {
                sample: #rt::InPlace<#slot, #count>,
                stage: ::core::marker::PhantomData<#stage>,
            }

            #methods
            #publish
            #composite
        }
    }

    /// The methods of members, stage by stage.
    fn stages(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> TokenStream {
        let rt = &subject.rt;
        let builder = &self.names.companions(subject.id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let methods = Methods::new(self, subject);
        if subject.is_mutable() {
            let goes_on = Next::new(quote!(#rt::Ready), TokenStream::new());
            let all = subject.fields.iter().map(|field| match field.fixed {
                true => methods.setter(field),
                false => methods.appenders(field, &goes_on),
            });
            return quote!(impl<#slot: #rt::Room> #builder<#slot> { #(#all)* });
        }
        let impls = runs.iter().enumerate().map(|(index, run)| {
            let set_all = (runs.len() == 1).then(|| methods.set_all());
            let setters = run.fixed.iter().map(|field| methods.setter(field));
            let setters = setters.chain(set_all);
            let appenders = run.then.map(|field| {
                let next = &runs[index + 1];
                let goes_on = Next::new(self.stage(subject, next.then), defaults(&next.fixed));
                methods.appenders(field, &goes_on)
            });
            let at = self.stage(subject, run.then);
            // Members before the first one of varying size keep their offsets in every stage.
            let (in_all_stages, in_this_stage) = match index {
                0 => (Some(quote!(#(#setters)*)), quote!(#appenders)),
                _ => (None, quote!(#(#setters)* #appenders)),
            };
            let in_all_stages = in_all_stages.filter(|methods| !methods.is_empty()).map(|methods| {
                quote!(impl<#slot: #rt::Room, #stage> #builder<#slot, #stage> { #methods })
            });
            let in_this_stage = (!in_this_stage.is_empty())
                .then(|| quote!(impl<#slot: #rt::Room> #builder<#slot, #at> { #in_this_stage }));
            quote!(#in_all_stages #in_this_stage)
        });
        quote!(#(#impls)*)
    }

    pub(super) fn publish_impl(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let slot = self.names.parameter("S");
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
        let errors = match subject.is_mutable() {
            true => " Those of the slot, or that a member is missing.",
            false => " Those of the slot.",
        };
        quote! {
            impl<#slot: #rt::Slot> #builder<#slot, #rt::Ready> {
                /// Publishes the sample.
                ///
                /// # Errors
                #[doc = #errors]
                pub fn publish(
                    mut self,
                ) -> ::core::result::Result<#slot::Receipt, #slot::Error> {
                    <#name as #rt::in_place::Composite>::close(&mut self)?;
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
            None => quote!(#rt::Ready),
        }
    }

    /// Building the structure by itself and inside others.
    fn composite(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let room = self.names.parameter("R");
        let usize = self.names.primitive("usize");
        let extensibility = subject.extensibility();
        let prefix = runs.first().map(|run| &run.fixed[..]).unwrap_or_default();
        let defaults = defaults(prefix);
        let mutability = (!prefix.is_empty()).then(|| quote!(mut));
        let last = subject.is_mutable().then(|| {
            let members = subject
                .fields
                .iter()
                .filter(|field| !field.member.optional)
                .map(|Field { path, member, .. }| match member.default {
                    Some(_) => quote!(last.sample.supply::<#path>()?;),
                    None => quote!(last.sample.require::<#path>()?;),
                });
            quote!(#(#members)*)
        });
        let fixed = self.fixed_composite(subject, runs);
        // The constructor is inlined into the function that lends the sample: a builder that is
        // returned passes through memory, where loads stall on recent stores.
        quote! {
            impl #rt::in_place::Composite for #name {
                type First<#room: #rt::Room> = #builder<#room>;
                type Last<#room: #rt::Room> = #builder<#room, #rt::Ready>;

                #[inline(always)]
                fn begin<#room: #rt::Room>(
                    room: #room,
                    site: #rt::Site,
                ) -> #rt::Result<#builder<#room>> {
                    let #mutability sample = #rt::InPlace::start(room, site, #extensibility)?;
                    #defaults
                    ::core::result::Result::Ok(#builder {
                        sample,
                        stage: ::core::marker::PhantomData,
                    })
                }

                #[inline]
                fn close<#room: #rt::Room>(
                    last: &mut #builder<#room, #rt::Ready>,
                ) -> #rt::Result<#usize> {
                    #last
                    last.sample.close(#extensibility)
                }
            }

            #fixed
        }
    }

    /// For structures that are complete from the start.
    fn fixed_composite(&self, subject: &Subject<'_>, runs: &[Run<'_, '_>]) -> Option<TokenStream> {
        let [Run { fixed, then: None }] = runs else {
            return None;
        };
        if subject.is_mutable() {
            return None;
        }
        let Subject { name, rt, .. } = subject;
        let builder = &self.names.companions(subject.id).builder;
        let room = self.names.parameter("R");
        let usize = self.names.primitive("usize");
        let extensibility = subject.extensibility();
        let paths = fixed.iter().map(|field| &field.path);
        let mutability = (!fixed.is_empty()).then(|| quote!(mut));
        Some(quote! {
            impl #rt::in_place::FixedComposite for #name {
                type Only<#room: #rt::Room> = #builder<#room>;

                #[inline]
                fn add<#room: #rt::Room>(
                    room: #room,
                    site: #rt::Site,
                ) -> #rt::Result<(#builder<#room>, #usize)> {
                    let mut builder = <Self as #rt::in_place::Composite>::begin(room, site)?;
                    let end = builder.sample.close(#extensibility)?;
                    ::core::result::Result::Ok((builder, end))
                }

                #[inline]
                fn reopen<#room: #rt::Room>(room: #room, site: #rt::Site) -> #builder<#room> {
                    let #mutability sample = #rt::InPlace::reopen(room, site, #extensibility);
                    #(sample.pass::<#paths>();)*
                    #builder { sample, stage: ::core::marker::PhantomData }
                }
            }
        })
    }
}

/// Members of fixed size, and the member of varying size that ends the run.
struct Run<'r, 's> {
    fixed: Vec<&'r Field<'s>>,
    then: Option<&'r Field<'s>>,
}

/// The continuation after a member of varying size.
pub(super) struct Next {
    /// Parameters before the value, and statements on `sample` before it is written.
    pub(super) parameters: Option<TokenStream>,
    pub(super) before: TokenStream,
    pub(super) stage: TokenStream,
    /// Statements that write the next run to `sample`.
    pub(super) then: TokenStream,
}

impl Next {
    fn new(stage: TokenStream, then: TokenStream) -> Self {
        Self {
            parameters: None,
            before: TokenStream::new(),
            stage,
            then,
        }
    }
}

/// A mutable structure has one run, whose members are written only when set.
fn runs<'r, 's>(subject: &'r Subject<'s>) -> Vec<Run<'r, 's>> {
    let mut runs = Vec::new();
    let mut fixed = Vec::new();
    let in_order = subject.fields.iter().filter(|_| !subject.is_mutable());
    for field in in_order {
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
