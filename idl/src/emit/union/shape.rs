//! The implementations that the runtime needs for a union.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::{Arm, Cases};
use crate::emit::Emitter;
use crate::emit::structure::{Subject, type_name};
use crate::model::{Primitive, Type, TypeKind, Value};

impl Emitter<'_> {
    /// The implementation of the runtime's traits.
    pub(super) fn union_impl(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject {
            name, rt, id, decl, ..
        } = cases.subject;
        let extensibility = cases.subject.extensibility();
        let switch = cases.switch();
        let view = match self.union_looks_different(cases.union) {
            true => {
                let view = &self.names.companions(*id).view;
                quote!(#view)
            }
            false => quote!(Self),
        };
        let lifetime = self.union_lifetime(*id);
        let [str, u32, usize] = ["str", "u32", "usize"].map(|name| self.names.primitive(name));
        let ids = cases
            .arms
            .iter()
            .map(|arm| Literal::u32_unsuffixed(arm.branch.member.id));
        let path = type_name(decl);
        let initial = cases.initial.and_then(|index| cases.arms.get(index));
        let initial_heap = initial
            .filter(|_| self.has_initial_heap(&Type::Named(*id)))
            .map(|Arm { path, .. }| {
                quote!(const INITIAL_HEAP: #usize = #rt::shape::initial_heap_of::<#path>();)
            });
        let select = self.select_fn(cases);
        let encoder = self.names.parameter("E");
        let branches = cases.arms.iter().map(|Arm { variant, index, .. }| {
            quote!(Self::#variant(..) => ::core::option::Option::Some(#index))
        });
        let written = cases.arms.iter().map(
            |Arm {
                 variant,
                 path,
                 label,
                 ..
             }| match label {
                Some(_) => quote!(Self::#variant(value) => encoder.member::<#path>(value)),
                None => quote!(Self::#variant(_, value) => encoder.member::<#path>(value)),
            },
        );
        let none = cases.empty.as_ref();
        let no_branch = none.map(|none| quote!(Self::#none(_) => ::core::option::Option::None,));
        let not_written =
            none.map(|none| quote!(Self::#none(_) => ::core::result::Result::Ok(()),));
        let read = self.by_branch(
            cases,
            |arm| {
                let path = &arm.path;
                constructed(
                    &quote!(Self),
                    arm,
                    &quote!(#rt::shape::union::read_branch::<#path>(reader)?),
                )
            },
            |none| quote!(Self::#none(discriminator)),
        );
        let check = self.by_branch(
            cases,
            |Arm { path, .. }| quote!(#rt::shape::union::check_branch::<#path>(reader)?),
            |_| quote!(()),
        );
        let show = self.by_branch(
            cases,
            |arm| {
                let path = &arm.path;
                let shown = match self.shows_later(arm, *id) {
                    true => quote!(#rt::shape::union::Later::new(reader)),
                    false => quote!(#rt::shape::union::show_branch::<#path>(reader)),
                };
                constructed(&view, arm, &shown)
            },
            |none| quote!(#view::#none(discriminator)),
        );
        let unbounded = cases
            .arms
            .iter()
            .find(|arm| self.reaches(&arm.branch.member.ty, *id));
        let measured = match unbounded {
            Some(Arm { path, .. }) => quote!(measure.recursive_member::<#path>();),
            None => {
                let paths = cases.arms.iter().map(|arm| &arm.path);
                quote!(measure.choice(&[#(#rt::Measure::member::<#paths>),*]);)
            }
        };
        let serde = self
            .options
            .serde
            .then(|| quote!(#rt::serde_as_it_is! { [] #name, }));
        quote! {
            impl #rt::shape::Union for #name {
                type Discriminator = #switch;
                type View<'a> = #view #lifetime;
                const EXTENSIBILITY: #rt::Extensibility = #extensibility;
                const IDS: &'static [#u32] = &[#(#ids),*];
                const PATH: &'static #str = #path;
                #initial_heap

                #select

                fn discriminator(&self) -> #rt::Owned<#switch> {
                    self.discriminator()
                }

                fn branch(&self) -> ::core::option::Option<#usize> {
                    match self {
                        #(#branches,)*
                        #no_branch
                    }
                }

                fn write_branch<#encoder: #rt::encode::Encoder>(
                    &self,
                    encoder: &mut #encoder,
                ) -> #rt::Result<()> {
                    match self {
                        #(#written,)*
                        #not_written
                    }
                }

                fn read_branch(
                    discriminator: #rt::Owned<#switch>,
                    reader: ::core::option::Option<&mut #rt::Reader<'_>>,
                ) -> #rt::Result<Self> {
                    ::core::result::Result::Ok(#read)
                }

                fn check_branch(
                    discriminator: #rt::Owned<#switch>,
                    reader: ::core::option::Option<&mut #rt::Reader<'_>>,
                ) -> #rt::Result<()> {
                    ::core::result::Result::Ok(#check)
                }

                fn show_branch<'a>(
                    discriminator: #rt::Owned<#switch>,
                    reader: ::core::option::Option<#rt::Reader<'a>>,
                ) -> <Self as #rt::shape::Union>::View<'a> {
                    #show
                }

                fn measure_branches(measure: &mut #rt::Measure) {
                    #measured
                }
            }

            #rt::union_shape! { #name, }
            #serde
        }
    }

    /// The branch that a discriminator selects. Enumerations are compared in their wire form,
    /// which is unique for each value.
    fn select_fn(&self, cases: &Cases<'_>) -> TokenStream {
        let Subject { rt, .. } = cases.subject;
        let (switch, usize) = (cases.switch(), self.names.primitive("usize"));
        let is_enum = matches!(self.resolve(&cases.union.discriminator.ty), Type::Named(_));
        let value = match is_enum {
            true => quote!(#rt::shape::Enumeration::to_bits(discriminator)),
            false => quote!(discriminator),
        };
        let labelled = cases
            .arms
            .iter()
            .filter(|arm| !arm.branch.labels.is_empty());
        let arms = labelled.map(|Arm { branch, index, .. }| {
            let labels = branch
                .labels
                .iter()
                .map(|label| self.wire_form(label, cases));
            quote!(#(#labels)|* => ::core::option::Option::Some(#index))
        });
        let default = cases.arms.iter().find(|arm| arm.branch.default);
        let other = match default {
            Some(Arm { index, .. }) => quote!(::core::option::Option::Some(#index)),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            #[allow(unreachable_patterns)]
            fn select(discriminator: #rt::Owned<#switch>) -> ::core::option::Option<#usize> {
                match #value {
                    #(#arms,)*
                    _ => #other,
                }
            }
        }
    }

    /// A label as a pattern.
    fn wire_form(&self, label: &Value, cases: &Cases<'_>) -> TokenStream {
        let ty = &cases.union.discriminator.ty;
        match label {
            Value::Enum(id, index) => match &self.decl(*id).kind {
                TypeKind::Enum(inner) => {
                    let value = Value::Integer(inner.literals[*index].value.into());
                    self.value(&value, &Type::Primitive(Primitive::Int32), &[])
                }
                _ => self.value(label, ty, cases.subject.scope()),
            },
            _ => self.value(label, ty, cases.subject.scope()),
        }
    }

    /// An expression with a case for each branch that `discriminator` may select.
    fn by_branch(
        &self,
        cases: &Cases<'_>,
        of_arm: impl Fn(&Arm<'_>) -> TokenStream,
        of_none: impl Fn(&Ident) -> TokenStream,
    ) -> TokenStream {
        // If every value selects a branch, the remaining values select the last.
        let (last, first) = match (&cases.empty, cases.arms.split_last()) {
            (Some(empty), _) => (of_none(empty), &cases.arms[..]),
            (None, Some((last, first))) => (of_arm(last), first),
            (None, None) => return TokenStream::new(),
        };
        let rt = &cases.subject.rt;
        let arms = first.iter().map(|arm| {
            let (index, value) = (&arm.index, of_arm(arm));
            quote!(::core::option::Option::Some(#index) => #value)
        });
        quote! {
            match <Self as #rt::shape::Union>::select(discriminator) {
                #(#arms,)*
                _ => #last,
            }
        }
    }
}

/// A value of a variant.
fn constructed(of: &TokenStream, arm: &Arm<'_>, member: &TokenStream) -> TokenStream {
    let variant = &arm.variant;
    match arm.label {
        Some(_) => quote!(#of::#variant(#member)),
        None => quote!(#of::#variant(discriminator, #member)),
    }
}
