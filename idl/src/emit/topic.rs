//! The face of a structure to the middleware.

use proc_macro2::TokenStream;
use quote::quote;

use super::Emitter;
use super::structure::Subject;

impl Emitter<'_> {
    pub(super) fn topic(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let companions = self.names.companions(subject.id);
        let (view, builder) = (&companions.view, &companions.builder);
        let type_name = self.type_name(subject);
        let has_key = subject.structure.members.iter().any(|member| member.key);
        let extensibility = subject.extensibility();
        let slot = self.names.parameter("S");
        let result = quote!(::core::result::Result);
        quote! {
            impl #rt::TopicType for #name {
                const TYPE_NAME: &'static str = #type_name;
                const HAS_KEY: bool = #has_key;
                const EXTENSIBILITY: #rt::Extensibility = #extensibility;
                type Builder<#slot: #rt::Slot> = #builder<#slot>;
                type View<'a> = #view<'a>;

                fn max_size(
                    representation: #rt::Representation,
                ) -> ::core::option::Option<usize> {
                    #rt::codec::max_size::<Self>(representation)
                }

                fn build<#slot: #rt::Slot>(
                    slot: #slot,
                    representation: #rt::Representation,
                ) -> #result<#builder<#slot>, #rt::CdrError> {
                    #builder::start_(slot, representation)
                }

                fn view(
                    bytes: &[u8],
                    encapsulation: #rt::Encapsulation,
                ) -> #result<#view<'_>, #rt::CdrError> {
                    #view::parse_(&mut #rt::codec::reader::<Self>(
                        bytes,
                        encapsulation,
                        #rt::encode::Members::All,
                    )?)
                }

                fn view_to_owned(view: &#view<'_>) -> #result<Self, #rt::CdrError> {
                    view.to_owned()
                }

                fn view_key_hash(view: &#view<'_>) -> #rt::KeyHash {
                    view.key_hash()
                }

                fn size(&self, representation: #rt::Representation) -> usize {
                    #rt::codec::size(self, representation)
                }

                fn encode(
                    &self,
                    representation: #rt::Representation,
                    out: &mut [u8],
                ) -> #result<usize, #rt::CdrError> {
                    #rt::codec::encode(self, representation, out)
                }

                fn decode(
                    bytes: &[u8],
                    encapsulation: #rt::Encapsulation,
                ) -> #result<Self, #rt::CdrError> {
                    #rt::codec::decode(bytes, encapsulation)
                }

                fn key_hash(&self) -> #rt::KeyHash {
                    #rt::codec::key_hash(self)
                }

                fn key_size(&self, representation: #rt::Representation) -> usize {
                    #rt::codec::key_size(self, representation)
                }

                fn encode_key(
                    &self,
                    representation: #rt::Representation,
                    out: &mut [u8],
                ) -> #result<usize, #rt::CdrError> {
                    #rt::codec::encode_key(self, representation, out)
                }

                fn decode_key(
                    bytes: &[u8],
                    encapsulation: #rt::Encapsulation,
                ) -> #result<Self, #rt::CdrError> {
                    #rt::codec::decode_key(bytes, encapsulation)
                }
            }
        }
    }
}
