//! Unions built in place: one method per branch writes the discriminator and the member,
//! which completes the union.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::{Arm, Cases};
use crate::emit::Emitter;
use crate::emit::builder::{Methods, Next};
use crate::emit::structure::Subject;

impl Emitter<'_> {
    pub(super) fn union_builder(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let builder = &self.names.companions(*id).builder;
        let (slot, stage) = (self.names.parameter("S"), self.names.parameter("Stage"));
        let count = Literal::usize_unsuffixed(cases.subject.fields.len());
        let switch = cases.switch();
        let methods = Methods::new(self, cases.subject);
        let branches = cases.arms.iter().zip(&cases.subject.fields[1..]);
        let branches =
            branches.map(|(arm, field)| methods.appenders(field, &self.next(cases, arm)));
        let none = cases.empty.iter().map(|empty| self.no_branch(cases, empty));
        let composite = self.union_composite(cases);
        let doc = format!(" Builds one [`{name}`] in place: writing a branch completes it.");
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

            #composite
        }
    }

    /// The statements before and after the member of a branch.
    fn next(&self, cases: &Cases<'_>, arm: &Arm<'_>) -> Next {
        let rt = &cases.subject.rt;
        let (switch, discriminator) = (cases.switch(), &cases.discriminator);
        let (parameters, before) = match &arm.label {
            Some(label) => (None, quote!(sample.append::<#switch>(&#label)?;)),
            None => {
                let (name, index) = (&cases.subject.name, &arm.index);
                let before = quote! {
                    #rt::shape::union::check_selects::<#name>(
                        discriminator,
                        ::core::option::Option::Some(#index),
                    )?;
                    sample.append::<#switch>(&discriminator)?;
                };
                (Some(quote!(discriminator: #discriminator,)), before)
            }
        };
        Next {
            parameters,
            before,
            stage: quote!(#rt::Ready),
            then: TokenStream::new(),
        }
    }

    /// The method that leaves the union without a branch.
    fn no_branch(&self, cases: &Cases<'_>, empty: &Ident) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let builder = &self.names.companions(*id).builder;
        let slot = self.names.parameter("S");
        let (switch, discriminator) = (cases.switch(), &cases.discriminator);
        quote! {
            /// No branch.
            pub fn #empty(
                self,
                discriminator: #discriminator,
            ) -> ::core::result::Result<#builder<#slot, #rt::Ready>, #slot::Error> {
                let mut sample = self.sample;
                #rt::shape::union::check_selects::<#name>(
                    discriminator,
                    ::core::option::Option::None,
                )?;
                sample.append::<#switch>(&discriminator)?;
                ::core::result::Result::Ok(#builder {
                    sample,
                    stage: ::core::marker::PhantomData,
                })
            }
        }
    }

    fn union_composite(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { id, name, rt, .. } = cases.subject;
        let builder = &self.names.companions(*id).builder;
        let room = self.names.parameter("R");
        let usize = self.names.primitive("usize");
        let extensibility = cases.subject.extensibility();
        quote! {
            impl #rt::in_place::Composite for #name {
                type First<#room: #rt::Room> = #builder<#room>;
                type Last<#room: #rt::Room> = #builder<#room, #rt::Ready>;

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
                    last: &mut #builder<#room, #rt::Ready>,
                ) -> #rt::Result<#usize> {
                    last.sample.close(#extensibility)
                }
            }
        }
    }
}
