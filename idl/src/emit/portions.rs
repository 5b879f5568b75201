//! Reading the members of structures that are not mutable: one by one, or several together
//! where their relative offsets are constant.

use std::ops::Range;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::Emitter;
use super::plain::Layout;
use super::structure::{Field, Subject};

/// Most members of a structure in which some are read together, unless reading is a plain
/// copy: the code exists twice.
const TOGETHER_FIELDS_MAX: usize = 64;

/// Consecutive members, with their layout if they are read together.
struct Portion<'s> {
    /// Position of the first one.
    first: usize,
    fields: &'s [Field<'s>],
    layout: Option<Layout>,
}

impl Emitter<'_> {
    /// Reads the members in order into `value`.
    pub(super) fn read_members(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let names = subject.fields.iter().map(|field| &field.name);
        let hidden = self.hidden_values(subject);
        let Some(portions) = self.portions(subject) else {
            // Rust evaluates fields in the order of this expression.
            let paths = subject.fields.iter().map(|field| &field.path);
            return quote! {
                let value = Self { #(#names: reader.member::<#paths>()?,)* #(#hidden,)* };
            };
        };
        let read = portions.into_iter().map(|portion| {
            let paths = portion.fields.iter().map(|field| &field.path);
            let locals = portion.indices().map(|index| self.local(index));
            let Some(layout) = &portion.layout else {
                return quote!(#(let #locals = reader.member::<#paths>()?;)*);
            };
            let types = portion
                .fields
                .iter()
                .map(|field| self.owned_member(field.member, subject.scope()));
            let together = portion.together(
                rt,
                layout,
                &quote!((#(#types,)*)),
                &quote!((#(reader.member::<#paths>()?,)*)),
            );
            let name = portion.name();
            quote! {
                #together
                let (#(#locals,)*) = reader.together::<#name>()?;
            }
        });
        let locals = (0..subject.fields.len()).map(|index| self.local(index));
        quote! {
            #(#read)*
            let value = Self { #(#names: #locals,)* #(#hidden,)* };
        }
    }

    /// Checks the members in order: an expression of their offsets.
    pub(super) fn check_members(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let Some(portions) = self.portions(subject) else {
            let paths = subject.fields.iter().map(|field| &field.path);
            return quote!([#(reader.check_member::<#paths>()?),*]);
        };
        let offset = self.names.primitive("u32");
        let checked = portions.into_iter().map(|portion| {
            let paths = portion.fields.iter().map(|field| &field.path);
            let locals = portion.indices().map(|index| self.local(index));
            let Some(layout) = &portion.layout else {
                return quote!(#(let #locals = reader.check_member::<#paths>()?;)*);
            };
            let count = Literal::usize_unsuffixed(portion.fields.len());
            let together = portion.together(
                rt,
                layout,
                &quote!([#offset; #count]),
                &quote!([#(reader.check_member::<#paths>()?),*]),
            );
            let name = portion.name();
            quote! {
                #together
                let [#(#locals),*] = reader.located_together::<#count, #name>()?;
            }
        });
        let locals = (0..subject.fields.len()).map(|index| self.local(index));
        quote!({ #(#checked)* [#(#locals),*] })
    }

    /// The variable of a member, whose name no constant has.
    fn local(&self, index: usize) -> Ident {
        self.names.parameter(&format!("m{index}"))
    }

    /// All members as one portion, unless each is read by itself.
    fn portions<'s>(&self, subject: &'s Subject<'_>) -> Option<Vec<Portion<'s>>> {
        let mut rest = &subject.fields[..];
        let whole = self.layout(subject.id);
        let is_plain = whole.as_ref().is_some_and(Layout::is_plain);
        if rest.len() < 2 || (rest.len() > TOGETHER_FIELDS_MAX && !is_plain) {
            return None;
        }
        if whole.is_some() {
            return Some(vec![Portion {
                first: 0,
                fields: rest,
                layout: whole,
            }]);
        }
        let mut portions = Vec::new();
        while !rest.is_empty() {
            let (count, layout) = self.run(rest);
            let (fields, others) = rest.split_at(count.max(1));
            let layout = Some(layout).filter(|_| count > 1);
            portions.push(Portion {
                first: subject.fields.len() - rest.len(),
                fields,
                layout,
            });
            rest = others;
        }
        let is_any = portions.iter().any(|portion| portion.layout.is_some());
        is_any.then_some(portions)
    }

    /// How many of these members have constant relative offsets, with their layout.
    fn run(&self, fields: &[Field<'_>]) -> (usize, Layout) {
        let mut run = (0, Layout::EMPTY);
        for field in fields {
            let part = self.member_layout(field.member);
            let more = part.and_then(|part| run.1.clone().with(&part));
            match more.filter(Layout::starts_aligned) {
                Some(more) => run = (run.0 + 1, more),
                None => break,
            }
        }
        run
    }
}

impl Portion<'_> {
    fn indices(&self) -> Range<usize> {
        self.first..self.first + self.fields.len()
    }

    /// The code that reads them together: `read` into `members`, one after the other.
    fn together(
        &self,
        rt: &TokenStream,
        layout: &Layout,
        members: &TokenStream,
        read: &TokenStream,
    ) -> TokenStream {
        let (name, layout) = (self.name(), layout.tokens(rt));
        quote! {
            struct #name;
            impl #rt::Together for #name {
                type Members = #members;
                const LAYOUT: #rt::BlockLayout = #layout;
                #[inline(always)]
                fn read(reader: &mut #rt::Reader<'_>) -> #rt::Result<Self::Members> {
                    ::core::result::Result::Ok(#read)
                }
            }
        }
    }

    /// The name of the local type, which no type of the application has.
    fn name(&self) -> Ident {
        format_ident!("__Together{}", self.first)
    }
}
