//! Unions as topic types.

use proc_macro2::TokenStream;
use quote::quote;

use super::Cases;
use crate::emit::Emitter;
use crate::emit::structure::Subject;

impl Emitter<'_> {
    pub(super) fn union_topic(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject {
            id, decl, name, rt, ..
        } = cases.subject;
        // Inside other types the discriminator is the key; here only if annotated.
        let mut structure = cases.subject.structure.clone();
        for member in &mut structure.members {
            member.key &= cases.union.discriminator.key;
        }
        let subject = self.subject(*id, decl, &structure);
        let topic = self.topic(&subject);
        let publish = self.publish_impl(&subject);
        let sample = &self.names.companions(*id).topic_view;
        let doc = format!(" Reads a sample that is one [`{name}`] in place.");
        quote! {
            #topic

            #[doc = #doc]
            pub type #sample<'a> = #rt::shape::union::WholeUnion<'a, #name>;

            #publish
        }
    }
}
