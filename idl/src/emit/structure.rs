//! `struct`: the owned type and its shape.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{Emitter, Scope, docs, names};
use crate::mapping;
use crate::model::{Extensibility, Member, Primitive, Struct, Type, TypeDecl, TypeId, Value};

/// What the parts of a structure's code have in common.
pub(super) struct Subject<'s> {
    pub(super) id: TypeId,
    pub(super) decl: &'s TypeDecl,
    pub(super) structure: &'s Struct,
    pub(super) name: Ident,
    pub(super) rt: TokenStream,
    pub(super) fields: Vec<Field<'s>>,
}

/// A member with what is said about it again and again.
pub(super) struct Field<'s> {
    pub(super) member: &'s Member,
    pub(super) index: Literal,
    pub(super) id: Literal,
    pub(super) name: Ident,
    pub(super) shape: TokenStream,
    /// Part of the key: marked, or all of them where none is.
    pub(super) key: bool,
    /// For errors: `module::Type.member`.
    pub(super) path: String,
    pub(super) fixed: bool,
}

impl Subject<'_> {
    pub(super) fn scope(&self) -> &Scope {
        &self.decl.scope
    }

    pub(super) fn is_mutable(&self) -> bool {
        self.structure.extensibility == Extensibility::Mutable
    }

    pub(super) fn extensibility(&self) -> TokenStream {
        let rt = &self.rt;
        match self.structure.extensibility {
            Extensibility::Final => quote!(#rt::Extensibility::Final),
            Extensibility::Appendable => quote!(#rt::Extensibility::Appendable),
            Extensibility::Mutable => quote!(#rt::Extensibility::Mutable),
        }
    }

    /// Key members by ascending id.
    pub(super) fn key_fields(&self) -> Vec<&Field<'_>> {
        let mut fields: Vec<_> = self.fields.iter().filter(|field| field.key).collect();
        fields.sort_by_key(|field| field.member.id);
        fields
    }

    fn type_name(&self) -> String {
        type_name(self.decl)
    }
}

/// Scoped IDL name.
pub(super) fn type_name(decl: &TypeDecl) -> String {
    let scope = decl.scope.iter().map(|module| format!("{module}::"));
    scope.chain([decl.name.clone()]).collect()
}

impl Emitter<'_> {
    pub(super) fn structure(&self, id: TypeId, decl: &TypeDecl, structure: &Struct) -> TokenStream {
        let subject = self.subject(id, decl, structure);
        let owned = self.owned_struct(&subject);
        let default = self.default_impl(&subject);
        let shape = self.shape_impl(&subject);
        let view = self.view(&subject);
        let topic = (!structure.nested).then(|| {
            let topic = self.topic(&subject);
            let builder = self.builder(&subject);
            quote!(#topic #builder)
        });
        quote!(#owned #default #shape #view #topic)
    }

    fn subject<'s>(&self, id: TypeId, decl: &'s TypeDecl, structure: &'s Struct) -> Subject<'s> {
        let keyless = structure.members.iter().all(|member| !member.key);
        let type_name = type_name(decl);
        let fields = structure
            .members
            .iter()
            .zip(names::fields(structure))
            .enumerate()
            .map(|(index, (member, name))| Field {
                member,
                index: Literal::usize_unsuffixed(index),
                id: Literal::u32_unsuffixed(member.id),
                name,
                shape: self.shape(&member.ty, &decl.scope),
                key: member.key || keyless,
                path: format!("{type_name}.{}", member.name),
                fixed: self.is_fixed(&member.ty),
            });
        Subject {
            id,
            decl,
            structure,
            name: names::ident(&mapping::identifier(&decl.name)),
            rt: self.rt(&decl.scope),
            fields: fields.collect(),
        }
    }

    fn owned_struct(&self, subject: &Subject<'_>) -> TokenStream {
        let doc = docs(&subject.decl.doc);
        let serde = self.serde_derive(subject.scope());
        let name = &subject.name;
        let fields = subject.fields.iter().map(|field| {
            let doc = docs(&field.member.doc);
            let name = &field.name;
            let ty = self.owned(&field.member.ty, subject.scope());
            let with =
                (self.options.serde && self.needs_serde_shape(&field.member.ty)).then(|| {
                    let rt = &subject.rt;
                    let shape = &field.shape;
                    let path = compact(&quote!(#rt::Serde::<#shape>));
                    quote!(#[serde(with = #path)])
                });
            quote!(#doc #with pub #name: #ty)
        });
        quote! {
            #doc
            #[derive(Debug, Clone, PartialEq)]
            #serde
            pub struct #name {
                #(#fields,)*
            }
        }
    }

    fn default_impl(&self, subject: &Subject<'_>) -> TokenStream {
        let name = &subject.name;
        let fields = subject.fields.iter().map(|field| {
            let (name, value) = (
                &field.name,
                self.initial(field.member, &field.shape, subject),
            );
            quote!(#name: #value)
        });
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    Self { #(#fields,)* }
                }
            }
        }
    }

    /// The owned value that a member has without being set.
    pub(super) fn initial(
        &self,
        member: &Member,
        shape: &TokenStream,
        subject: &Subject<'_>,
    ) -> TokenStream {
        let rt = &subject.rt;
        match (&member.default, self.resolve(&member.ty)) {
            (Some(Value::String(text)), _) => quote!(::std::string::String::from(#text)),
            (Some(value), _) => self.value(value, &member.ty, subject.scope()),
            (None, Type::Primitive(Primitive::Boolean)) => quote!(false),
            (None, Type::Primitive(Primitive::Float32 | Primitive::Float64)) => quote!(0.0),
            (None, Type::Primitive(_)) => quote!(0),
            (None, Type::String { .. }) => quote!(::std::string::String::new()),
            (None, Type::Sequence { .. }) => quote!(::std::vec::Vec::new()),
            (None, Type::Named(_)) => quote!(::core::default::Default::default()),
            (None, Type::Array { .. }) => quote!(<#shape as #rt::shape::Shape>::initial()),
        }
    }

    fn shape_impl(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let view = &self.names.companions(subject.id).view;
        let extensibility = subject.extensibility();
        let shapes = subject.fields.iter().map(|field| &field.shape);
        let length_code = match subject.structure.extensibility {
            Extensibility::Final => quote!(Next),
            Extensibility::Appendable | Extensibility::Mutable => quote!(Shared(5)),
        };
        let write = self.write_fn(subject);
        let read = self.read_fn(subject);
        let measure = self.measure_fn(subject);
        let encoder = self.names.parameter("E");
        let serde = self
            .options
            .serde
            .then(|| quote!(#rt::serde_as_it_is! { [] #name, }));
        quote! {
            impl #rt::shape::Shape for #name {
                type Owned = Self;
                type Borrowed = Self;
                type Shown<'a> = #view<'a>;
                const SIZE_MIN: usize = #rt::shape::size_min(
                    #extensibility,
                    &[#(<#shapes as #rt::shape::Shape>::SIZE_MIN),*],
                );
                const LENGTH_CODE: #rt::shape::LengthCode = #rt::shape::LengthCode::#length_code;

                fn initial() -> Self {
                    ::core::default::Default::default()
                }

                #write
                #read

                fn check(
                    reader: &mut #rt::Reader<'_>,
                ) -> ::core::result::Result<(), #rt::CdrError> {
                    #view::parse_(reader).map(|_| ())
                }

                fn show<'a>(reader: &mut #rt::Reader<'a>) -> #view<'a> {
                    #view::parse_(reader).unwrap_or(#view::ABSENT)
                }

                fn absent<'a>() -> #view<'a> {
                    #view::ABSENT
                }

                fn transcribe_key<#encoder: #rt::encode::Encoder>(
                    reader: &mut #rt::Reader<'_>,
                    encoder: &mut #encoder,
                ) -> ::core::result::Result<(), #rt::CdrError> {
                    #view::parse_(reader)?.transcribe_key_(encoder)
                }

                #measure
            }

            #serde
        }
    }

    fn write_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let encoder = self.names.parameter("E");
        let extensibility = subject.extensibility();
        let members = subject.fields.iter().map(|field| {
            let Field {
                shape,
                key,
                id,
                name,
                path,
                ..
            } = field;
            let must_understand = field.member.key;
            match subject.is_mutable() {
                true => quote! {
                    #rt::InMember::in_member(
                        encoder.parameter::<#shape>(#id, #key, #must_understand, &value.#name),
                        #path,
                    )?;
                },
                false => quote! {
                    #rt::InMember::in_member(
                        encoder.member::<#shape>(#key, &value.#name),
                        #path,
                    )?;
                },
            }
        });
        let keys = subject.key_fields();
        let by_id = (!keys
            .is_sorted_by_key(|field| field.index.to_string().parse().unwrap_or(0_usize)))
        .then(|| {
            let members = keys.iter().map(|field| {
                let Field {
                    shape, name, path, ..
                } = field;
                quote! {
                    #rt::InMember::in_member(
                        encoder.member::<#shape>(true, &value.#name),
                        #path,
                    )?;
                }
            });
            quote! {
                // Hashes take the key members by ascending id.
                if encoder.is_key_hash() {
                    #(#members)*
                    return ::core::result::Result::Ok(());
                }
            }
        });
        quote! {
            fn write<#encoder: #rt::encode::Encoder>(
                value: &Self,
                encoder: &mut #encoder,
            ) -> ::core::result::Result<(), #rt::CdrError> {
                #by_id
                let open = encoder.begin(#extensibility)?;
                #(#members)*
                encoder.end(open)
            }
        }
    }

    fn read_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let read = |field: &Field<'_>| {
            let Field { shape, path, .. } = field;
            quote! {
                #rt::InMember::in_member(
                    <#shape as #rt::shape::Shape>::read(reader),
                    #path,
                )?
            }
        };
        let body = if subject.is_mutable() {
            let arms = subject.fields.iter().map(|field| {
                let (id, name, read) = (&field.id, &field.name, read(field));
                quote!(#id => value.#name = #read,)
            });
            quote! {
                let scope = reader.begin(#extensibility)?;
                #[allow(unused_mut)]
                let mut value = Self::default();
                while let ::core::option::Option::Some(parameter) = reader.next_parameter()? {
                    match parameter.id {
                        #(#arms)*
                        _ => reader.unknown(&parameter)?,
                    }
                    reader.end_parameter(parameter);
                }
                reader.end(scope);
                ::core::result::Result::Ok(value)
            }
        } else {
            let locals: Vec<_> = (0..subject.fields.len())
                .map(|index| format_ident!("m{index}"))
                .collect();
            let members = subject.fields.iter().zip(&locals).map(|(field, local)| {
                let (key, read) = (field.key, read(field));
                let initial = self.initial(field.member, &field.shape, subject);
                quote! {
                    let #local = if reader.absent(#extensibility, #key) { #initial } else { #read };
                }
            });
            let names = subject.fields.iter().map(|field| &field.name);
            quote! {
                let scope = reader.begin(#extensibility)?;
                #(#members)*
                reader.end(scope);
                ::core::result::Result::Ok(Self { #(#names: #locals,)* })
            }
        };
        quote! {
            fn read(reader: &mut #rt::Reader<'_>) -> ::core::result::Result<Self, #rt::CdrError> {
                #body
            }
        }
    }

    fn measure_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let members = subject.structure.members.iter();
        let recursive = members
            .clone()
            .any(|member| self.reaches(&member.ty, subject.id));
        let body = if recursive {
            quote!(measure.unbounded();)
        } else {
            let extensibility = subject.extensibility();
            let members = subject.fields.iter().map(|field| {
                let Field { shape, key, id, .. } = field;
                match subject.is_mutable() {
                    true => quote!(measure.parameter::<#shape>(#id, #key);),
                    false => quote!(measure.member::<#shape>(#key);),
                }
            });
            quote! {
                measure.begin(#extensibility);
                #(#members)*
                measure.end(#extensibility);
            }
        };
        quote! {
            fn measure(measure: &mut #rt::Measure) {
                #body
            }
        }
    }

    /// The scoped IDL name as a string.
    pub(super) fn type_name(&self, subject: &Subject<'_>) -> String {
        subject.type_name()
    }
}

/// Tokens as text without the blanks that `to_string` puts everywhere.
fn compact(tokens: &TokenStream) -> String {
    tokens.to_string().replace(' ', "").replace(',', ", ")
}
