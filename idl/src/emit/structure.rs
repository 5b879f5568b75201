//! `struct`: the owned type, its members as types, and its shape.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::{Emitter, Scope, docs, member_docs, names};
use crate::model::{Extensibility, Member, Struct, TryConstruct, Type, TypeDecl, TypeId};

/// Most values of a structure whose decoding is inlined.
const INLINE_VALUES_MAX: usize = 16;

/// Data shared by the parts of a structure's code.
pub(super) struct Subject<'s> {
    pub(super) id: TypeId,
    pub(super) decl: &'s TypeDecl,
    pub(super) structure: &'s Struct,
    pub(super) name: Ident,
    pub(super) rt: TokenStream,
    /// The members that are serialized.
    pub(super) fields: Vec<Field<'s>>,
    /// Those that are `@non_serialized`.
    pub(super) hidden: Vec<Field<'s>>,
}

/// A member with the expressions that the code repeats.
pub(super) struct Field<'s> {
    pub(super) member: &'s Member,
    pub(super) name: Ident,
    /// Path of the type that represents the member.
    pub(super) path: TokenStream,
    /// Part of the key: annotated, or all of them if none is annotated.
    pub(super) key: bool,
    pub(super) fixed: bool,
    /// The number of values in it, if it is read without a call that takes the cursor.
    flat: Option<usize>,
}

impl Subject<'_> {
    pub(super) fn scope(&self) -> &Scope {
        &self.decl.scope
    }

    pub(super) fn is_mutable(&self) -> bool {
        self.structure.extensibility == Extensibility::Mutable
    }

    pub(super) fn extensibility(&self) -> TokenStream {
        extensibility(self.structure.extensibility, &self.rt)
    }

    /// All members in the order of their declaration.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Field<'_>> {
        self.structure.members.iter().filter_map(|member| {
            let mut all = self.fields.iter().chain(&self.hidden);
            all.find(|field| std::ptr::eq(field.member, member))
        })
    }

    /// Key members by ascending id.
    pub(super) fn key_fields(&self) -> Vec<&Field<'_>> {
        let mut fields: Vec<_> = self.fields.iter().filter(|field| field.key).collect();
        fields.sort_by_key(|field| field.member.id);
        fields
    }

    /// The attribute of functions that read a small structure of flat members, so that cursors
    /// stay in registers.
    pub(super) fn inline(&self) -> Option<TokenStream> {
        let values = self.fields.iter().map(|field| field.flat);
        let values: usize = values.sum::<Option<_>>()?;
        (values <= INLINE_VALUES_MAX && !self.is_mutable()).then(|| quote!(#[inline]))
    }

    /// The first and last statements of such functions, which read with a local cursor.
    pub(super) fn cursor(&self) -> (Option<TokenStream>, Option<TokenStream>) {
        let inline = self.inline();
        let before = inline.is_some().then(|| {
            quote! {
                let outer = reader;
                let mut cursor = *outer;
                let reader = &mut cursor;
            }
        });
        let behind = inline.is_some().then(|| quote!(outer.follow(&cursor);));
        (before, behind)
    }

    fn keys_are_by_id(&self) -> bool {
        let keys = self.fields.iter().filter(|field| field.key);
        keys.is_sorted_by_key(|field| field.member.id)
    }
}

fn extensibility(extensibility: Extensibility, rt: &TokenStream) -> TokenStream {
    match extensibility {
        Extensibility::Final => quote!(#rt::Extensibility::Final),
        Extensibility::Appendable => quote!(#rt::Extensibility::Appendable),
        Extensibility::Mutable => quote!(#rt::Extensibility::Mutable),
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
        let upcast = self.upcast(&subject);
        let topic = (!structure.nested).then(|| self.topic(&subject));
        let view = self.view(&subject);
        let builder = self.builder(&subject);
        let members = self.members(&subject);
        let shape = self.shape_impl(&subject);
        let exception = structure.exception.then(|| self.exception(&subject));
        quote!(#owned #default #upcast #exception #topic #view #builder #members #shape)
    }

    pub(super) fn subject<'s>(
        &self,
        id: TypeId,
        decl: &'s TypeDecl,
        structure: &'s Struct,
    ) -> Subject<'s> {
        let keyless = structure.members.iter().all(|member| !member.key);
        let members = &self.names.companions(id).members;
        let field = |(member, name): (&'s Member, Ident)| Field {
            member,
            path: quote!(#members::#name),
            name,
            key: member.key || keyless,
            fixed: self.is_fixed_member(member),
            flat: self.flat_values(member),
        };
        let fields = structure.members.iter().zip(names::fields(structure));
        let (hidden, fields) = fields
            .map(field)
            .partition(|field| field.member.non_serialized);
        Subject {
            id,
            decl,
            structure,
            name: self.names.declared_type(decl),
            rt: self.rt(&decl.scope),
            fields,
            hidden,
        }
    }

    /// The members as types.
    pub(super) fn members(&self, subject: &Subject<'_>) -> TokenStream {
        let module = &self.names.companions(subject.id).members;
        let doc = format!(" The members of [`{}`] as types.", subject.name);
        let scope = [subject.scope(), &[module.to_string()]].concat();
        let runtime = names::path(&self.options.runtime_path);
        let extensibility = extensibility(subject.structure.extensibility, &quote!(__rt));
        let type_name = type_name(subject.decl);
        let [bool, str, u32, usize] =
            ["bool", "str", "u32", "usize"].map(|name| self.names.primitive(name));
        let members = subject.fields.iter().enumerate().map(|(index, field)| {
            let Field {
                member, name, key, ..
            } = field;
            let shape = self.member_shape(member, &scope);
            let index = Literal::usize_unsuffixed(index);
            let id = Literal::u32_unsuffixed(member.id);
            let key = key.then(|| quote!(const KEY: #bool = true;));
            let must_understand =
                (member.must_understand).then(|| quote!(const MUST_UNDERSTAND: #bool = true;));
            let use_default = (member.try_construct == TryConstruct::UseDefault)
                .then(|| quote!(const USE_DEFAULT: #bool = true;));
            let path = format!("{type_name}.{}", member.name);
            let default = self.member_default(member, &scope);
            quote! {
                pub enum #name {}

                impl __rt::Member for #name {
                    type Shape = #shape;
                    const EXTENSIBILITY: __rt::Extensibility = #extensibility;
                    const INDEX: #usize = #index;
                    const ID: #u32 = #id;
                    #key
                    #must_understand
                    #use_default
                    const PATH: &'static #str = #path;
                    #default
                }
            }
        });
        quote! {
            #[doc = #doc]
            pub mod #module {
                #[allow(unused_imports)]
                use #runtime as __rt;

                #(#members)*
            }
        }
    }

    fn owned_struct(&self, subject: &Subject<'_>) -> TokenStream {
        let doc = docs(&subject.decl.doc);
        let serde = self.serde_derive(subject.scope());
        let name = &subject.name;
        let fields = subject.in_order().map(|field| {
            let doc = member_docs(field.member);
            let name = &field.name;
            let ty = self.owned_member(field.member, subject.scope());
            let needs_shape = self.options.serde && self.needs_serde_shape(&field.member.ty);
            let with = needs_shape.then(|| {
                let rt = &subject.rt;
                let shape = self.field_shape(field, subject);
                let path = quote!(#rt::Serde::<#shape>).to_string();
                // Serde's rule for optional fields, which it cannot detect behind an alias.
                let default = field.member.optional.then(|| quote!(default,));
                quote!(#[serde(#default with = #path)])
            });
            quote!(#doc #with pub #name: #ty)
        });
        let plain = self.plain_attributes(subject);
        quote! {
            #doc
            #[derive(Debug, Clone, PartialEq)]
            #serde
            #plain
            pub struct #name {
                #(#fields,)*
            }
        }
    }

    fn shape_impl(&self, subject: &Subject<'_>) -> TokenStream {
        let Subject { name, rt, .. } = subject;
        let view = &self.names.companions(subject.id).view;
        let extensibility = subject.extensibility();
        let paths = subject.fields.iter().map(|field| &field.path);
        let length_code = match subject.structure.extensibility {
            Extensibility::Final => quote!(Next),
            Extensibility::Appendable | Extensibility::Mutable => quote!(Shared(5)),
        };
        let initial_heap = self.initial_heap(subject);
        let write_initial = self.write_initial_fn(subject);
        // The default of an optional member applies to a new value, not to one read without it.
        let unsent = subject
            .fields
            .iter()
            .filter(|field| field.member.optional && field.member.default.is_some())
            .map(|field| &field.name)
            .collect::<Vec<_>>();
        let initial = match unsent[..] {
            [] => quote!(::core::default::Default::default()),
            _ => quote! {
                Self {
                    #(#unsent: ::core::option::Option::None,)*
                    ..::core::default::Default::default()
                }
            },
        };
        let write = self.write_fn(subject);
        let read = self.read_fn(subject);
        let check = self.check_fn(subject);
        let measure = self.measure_fn(subject);
        let encoder = self.names.parameter("E");
        let usize = self.names.primitive("usize");
        let serde = self
            .options
            .serde
            .then(|| quote!(#rt::serde_as_it_is! { [] #name, }));
        let (plain, whole) = (self.plain_impl(subject), self.plain_shape(subject));
        let inline = subject.inline();
        quote! {
            impl #rt::shape::Shape for #name {
                type Owned = Self;
                type Borrowed = Self;
                type Shown<'a> = #view<'a>;
                const SIZE_MIN: #usize = #rt::shape::size_min(
                    #extensibility,
                    &[#(#rt::shape::size_min_of::<#paths>()),*],
                );
                const LENGTH_CODE: #rt::shape::LengthCode = #rt::shape::LengthCode::#length_code;
                #initial_heap

                fn initial() -> Self {
                    #initial
                }

                #write
                #write_initial
                #read

                #check

                #inline
                fn show<'a>(reader: &mut #rt::Reader<'a>) -> #view<'a> {
                    #view::parse_(reader).unwrap_or(#view::ABSENT)
                }

                fn absent<'a>() -> #view<'a> {
                    #view::ABSENT
                }

                fn transcribe_key<#encoder: #rt::encode::Encoder>(
                    reader: &mut #rt::Reader<'_>,
                    encoder: &mut #encoder,
                ) -> #rt::Result<()> {
                    #view::parse_(reader)?.transcribe_key_(encoder)
                }

                #measure
                #whole
            }

            #plain
            #serde
        }
    }

    fn write_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let encoder = self.names.parameter("E");
        let extensibility = subject.extensibility();
        let write = |field: &Field<'_>| {
            let Field { path, name, .. } = field;
            quote!(encoder.member::<#path>(&value.#name)?;)
        };
        let members = subject.fields.iter().map(write);
        let by_id = (!subject.keys_are_by_id()).then(|| {
            let members = subject.key_fields().into_iter().map(write);
            quote! {
                // Hashes take the key members by ascending id.
                if encoder.is_key_hash() {
                    let open = encoder.begin(#extensibility)?;
                    #(#members)*
                    return encoder.end(open);
                }
            }
        });
        let whole = self.plain_write(subject);
        quote! {
            fn write<#encoder: #rt::encode::Encoder>(
                value: &Self,
                encoder: &mut #encoder,
            ) -> #rt::Result<()> {
                #by_id
                #whole
                let open = encoder.begin(#extensibility)?;
                #(#members)*
                encoder.end(open)
            }
        }
    }

    fn read_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let body = if subject.is_mutable() {
            let arms = subject.fields.iter().map(|field| {
                let Field {
                    path, name, member, ..
                } = field;
                let id = Literal::u32_unsuffixed(member.id);
                quote!(#id => value.#name = reader.value::<#path>()?,)
            });
            let absent = subject
                .fields
                .iter()
                .filter_map(|Field { member, name, .. }| {
                    let is_read_otherwise = member.optional && member.default.is_some();
                    is_read_otherwise.then(|| quote!(value.#name = ::core::option::Option::None;))
                });
            quote! {
                #[allow(unused_mut)]
                let mut value = Self::default();
                #(#absent)*
                while let ::core::option::Option::Some(parameter) = reader.next_parameter()? {
                    match parameter.id {
                        #(#arms)*
                        _ => reader.unknown(&parameter)?,
                    }
                    reader.end_parameter(parameter);
                }
            }
        } else {
            self.read_members(subject)
        };
        let by_id = (subject.is_mutable() || !subject.keys_are_by_id()).then(|| {
            let members = subject.key_fields().into_iter();
            let members = members
                .map(|Field { path, name, .. }| quote!(value.#name = reader.member::<#path>()?;));
            quote! {
                // Hashes have the key members by ascending id, without headers.
                if reader.is_key_hash() {
                    #[allow(unused_mut)]
                    let mut value = <Self as #rt::shape::Shape>::initial();
                    let scope = reader.begin(#extensibility)?;
                    #(#members)*
                    reader.end(scope);
                    return ::core::result::Result::Ok(value);
                }
            }
        });
        let inline = subject.inline();
        let (cursor, moved) = subject.cursor();
        quote! {
            #inline
            fn read(reader: &mut #rt::Reader<'_>) -> #rt::Result<Self> {
                #by_id
                #cursor
                let scope = reader.begin(#extensibility)?;
                #body
                reader.end(scope);
                #moved
                ::core::result::Result::Ok(value)
            }
        }
    }

    /// Heap memory of the default, beside the value itself, in bytes.
    fn initial_heap(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let Subject { rt, id, .. } = subject;
        let usize = self.names.primitive("usize");
        let paths = subject.fields.iter().map(|field| &field.path);
        self.has_initial_heap(&Type::Named(*id)).then(|| {
            quote! {
                const INITIAL_HEAP: #usize =
                    #rt::shape::initial_heap(&[#(#rt::shape::initial_heap_of::<#paths>()),*]);
            }
        })
    }

    /// For a structure of fixed size with pointers: its default is written member by member
    /// without headers, instead of being allocated first.
    fn write_initial_fn(&self, subject: &Subject<'_>) -> Option<TokenStream> {
        let Subject { rt, id, .. } = subject;
        let ty = Type::Named(*id);
        if !self.is_fixed(&ty) || !self.has_initial_heap(&ty) {
            return None;
        }
        let extensibility = subject.extensibility();
        let paths = subject.fields.iter().map(|field| &field.path);
        let body = quote! {
            let open = encoder.begin(#extensibility)?;
            #(<#paths as #rt::Member>::write_initial(encoder)?;)*
            encoder.end(open)
        };
        Some(self.write_initial(rt, &body))
    }

    fn measure_fn(&self, subject: &Subject<'_>) -> TokenStream {
        let rt = &subject.rt;
        let extensibility = subject.extensibility();
        let members = subject.fields.iter().map(|field| {
            let path = &field.path;
            match self.reaches(&field.member.ty, subject.id) {
                true => quote!(measure.recursive_member::<#path>();),
                false => quote!(measure.member::<#path>();),
            }
        });
        quote! {
            fn measure(measure: &mut #rt::Measure) {
                measure.begin(#extensibility);
                #(#members)*
                measure.end(#extensibility);
            }
        }
    }
}
