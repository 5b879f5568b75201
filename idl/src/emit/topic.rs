//! The interface of a structure to the middleware.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Emitter;
use super::structure::{Subject, type_name};
use crate::model::Representations;

/// Most members of a structure whose `view` is always inlined, so that the view stays in
/// registers. A returned view passes through memory and is loaded in larger pieces than it
/// was stored in, which defeats store forwarding.
const INLINED_FIELDS_MAX: usize = 16;

impl Emitter<'_> {
    /// The announced type information, if the type is representable.
    fn description(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let descriptions = self.descriptions.as_ref()?;
        let information = descriptions.information(subject.id)?.to_bytes().ok()?;
        let objects = descriptions.objects(subject.id)?.to_bytes().ok()?;
        let [information, objects] = [information, objects].map(|it| Literal::byte_string(&it));
        let rt = &subject.rt;
        Some(quote! {
            const DESCRIPTION: ::core::option::Option<#rt::TypeDescription> =
                ::core::option::Option::Some(#rt::TypeDescription {
                    information: #information,
                    objects: #objects,
                });
        })
    }

    /// The representations that the type allows, unless it allows all.
    fn representations(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let Subject { rt, structure, .. } = subject;
        let only = match structure.representations {
            Representations { xcdr2: false, .. } => quote!(Xcdr1),
            Representations { xcdr1: false, .. } => quote!(Xcdr2),
            Representations::ALL => return None,
        };
        Some(quote! {
            const REPRESENTATIONS: &'static [#rt::Representation] =
                &[#rt::Representation::#only];
        })
    }

    pub(super) fn topic(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let companions = self.names.companions(subject.id);
        let (view, builder) = (&companions.topic_view, &companions.builder);
        let type_name = type_name(subject.decl);
        let has_key = subject.structure.members.iter().any(|member| member.key);
        let extensibility = subject.extensibility();
        let [bool, str, byte] = ["bool", "str", "u8"].map(|name| self.names.primitive(name));
        let description = self.description(subject);
        let representations = self.representations(subject);
        let slot = self.names.parameter("S");
        let result = quote!(#rt::Result);
        let inline = match subject.fields.len() <= INLINED_FIELDS_MAX {
            true => quote!(#[inline(always)]),
            false => quote!(#[inline]),
        };
        quote! {
            impl #rt::TopicType for #name {
                const TYPE_NAME: &'static #str = #type_name;
                const HAS_KEY: #bool = #has_key;
                const EXTENSIBILITY: #rt::Extensibility = #extensibility;
                #representations
                #description
                type Builder<#slot: #rt::Slot> = #builder<#slot>;
                type View<'a> = #view<'a>;

                #[inline(always)]
                fn build<#slot: #rt::Slot>(
                    slot: #slot,
                    representation: #rt::Representation,
                ) -> #result<#builder<#slot>> {
                    <Self as #rt::in_place::Composite>::begin(
                        slot,
                        #rt::Site::top(representation),
                    )
                }

                #inline
                fn view(
                    bytes: &[#byte],
                    encapsulation: #rt::Encapsulation,
                ) -> #result<#view<'_>> {
                    #view::parse_(&mut #rt::codec::reader::<Self>(
                        bytes,
                        encapsulation,
                        #rt::encode::Members::All,
                    )?)
                }

                fn view_to_owned(view: &#view<'_>) -> #result<Self> {
                    view.to_owned()
                }

                fn view_key_hash(view: &#view<'_>) -> #rt::KeyHash {
                    view.key_hash()
                }
            }
        }
    }
}
