//! Unions as topic types, and their builders.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Arm, Cases};
use crate::emit::structure::Subject;
use crate::emit::{Emitter, member_docs};
use crate::mapping;

impl Emitter<'_> {
    /// The face of a union to the middleware.
    pub(super) fn union_topic(&self, cases: &Cases<'_>) -> TokenStream {
        let mut structure = cases.subject.structure.clone();
        for member in &mut structure.members {
            member.key = false;
        }
        if let Some(discriminator) = structure.members.first_mut() {
            discriminator.key = cases.union.discriminator.key;
        }
        let Subject {
            id, decl, name, rt, ..
        } = cases.subject;
        let topic = self.topic(&self.subject(*id, decl, &structure));
        let whole = &self.names.companions(*id).topic_view;
        let doc = format!(" Reads a sample that is one [`{name}`] where it lies.");
        quote! {
            #topic

            #[doc = #doc]
            pub type #whole<'a> = #rt::shape::union::WholeUnion<'a, #name>;
        }
    }

    /// A builder of unions: one method a branch, then it is complete.
    pub(super) fn union_builder(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let scope = cases.subject.scope();
        let builder = &self.names.companions(*id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let count = Literal::usize_unsuffixed(cases.subject.fields.len());
        let (switch, discriminator) = (cases.switch(), &cases.discriminator);
        let extensibility = cases.subject.extensibility();
        let result = quote! {
            ::core::result::Result<#builder<#slot, #rt::Complete>, #slot::Error>
        };
        let complete = quote! {
            ::core::result::Result::Ok(#builder { sample, stage: ::core::marker::PhantomData })
        };
        let branches = cases.arms.iter().map(|arm| {
            let Arm {
                variant,
                path,
                branch,
                index,
                ..
            } = arm;
            let doc = member_docs(&branch.member);
            let method = mapping::identifier_beside(&variant.to_string(), mapping::BUILDER_METHODS);
            let method = format_ident!("{method}");
            let (ty, value) = self.taken_member(&branch.member, scope);
            let (parameter, switch_value, check) = match &arm.label {
                Some(label) => (None, label.clone(), None),
                None => (
                    Some(quote!(discriminator: #discriminator,)),
                    quote!(discriminator),
                    Some(quote! {
                        #rt::shape::union::check_selects::<#name>(
                            discriminator,
                            ::core::option::Option::Some(#index),
                        )?;
                    }),
                ),
            };
            quote! {
                #doc
                pub fn #method(self, #parameter value: #ty) -> #result {
                    let mut sample = self.sample;
                    #check
                    sample.append::<#switch>(&#switch_value)?;
                    sample.append::<#path>(#value)?;
                    #complete
                }
            }
        });
        let none = cases.empty.iter().map(|empty| {
            quote! {
                /// No branch.
                pub fn #empty(self, discriminator: #discriminator) -> #result {
                    let mut sample = self.sample;
                    #rt::shape::union::check_selects::<#name>(
                        discriminator,
                        ::core::option::Option::None,
                    )?;
                    sample.append::<#switch>(&discriminator)?;
                    #complete
                }
            }
        });
        let publish = (!cases.union.nested).then(|| self.union_publish(cases));
        let room = self.names.parameter("R");
        let usize = self.names.primitive("usize");
        let doc = format!(" Builds one [`{name}`] in place: choose a branch, then publish.");
        quote! {
            #[doc = #doc]
            #[derive(Debug)]
            #[must_use]
            pub struct #builder<#slot: #rt::Room, #stage = #rt::Needs<#switch>> {
                sample: #rt::InPlace<#slot, #count>,
                stage: ::core::marker::PhantomData<#stage>,
            }

            impl<#slot: #rt::Room> #builder<#slot> {
                #(#branches)*
                #(#none)*
            }

            #publish

            impl #rt::in_place::Composite for #name {
                type First<#room: #rt::Room> = #builder<#room>;
                type Last<#room: #rt::Room> = #builder<#room, #rt::Complete>;

                fn begin<#room: #rt::Room>(
                    room: #room,
                    site: #rt::Site,
                ) -> #rt::Result<#builder<#room>> {
                    ::core::result::Result::Ok(#builder {
                        sample: #rt::InPlace::start(room, site, #extensibility)?,
                        stage: ::core::marker::PhantomData,
                    })
                }

                fn close<#room: #rt::Room>(
                    last: &mut #builder<#room, #rt::Complete>,
                ) -> #rt::Result<#usize> {
                    last.sample.close()
                }
            }
        }
    }

    fn union_publish(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let builder = &self.names.companions(*id).builder;
        let slot = self.names.parameter("S");
        let switch = cases.switch();
        let key = match cases.union.discriminator.key {
            true => {
                quote!(#rt::codec::hash::<#name>(|hasher| self.sample.hash::<#switch>(hasher))?)
            }
            false => quote!(#rt::KeyHash::NONE),
        };
        quote! {
            impl<#slot: #rt::Slot> #builder<#slot, #rt::Complete> {
                /// Publishes the sample.
                ///
                /// # Errors
                /// Those of the slot.
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
}
