//! The Rust of a use of a type: what owns it, what shows it, what its shape is.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, Scope, names};
use crate::mapping;
use crate::model::{Extensibility, Member, Primitive, Type, TypeId, TypeKind, Value};

/// Largest array that serde takes by itself.
const SERDE_ARRAY_MAX: u32 = 32;

/// Stands for what the front end does not hand over yet.
pub(super) fn later() -> TokenStream {
    quote!(::core::compile_error!("not generated yet"))
}

impl Emitter<'_> {
    /// The type behind all typedefs.
    pub(super) fn resolve<'t>(&'t self, ty: &'t Type) -> &'t Type {
        match ty {
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) => self.resolve(&alias.ty),
                _ => ty,
            },
            _ => ty,
        }
    }

    fn as_primitive(&self, ty: &Type) -> Option<Primitive> {
        match self.resolve(ty) {
            Type::Primitive(primitive) => Some(*primitive),
            _ => None,
        }
    }

    pub(super) fn primitive(&self, primitive: Primitive) -> TokenStream {
        self.names.primitive(mapping::primitive(primitive))
    }

    /// Path of a declared type.
    pub(super) fn named(&self, id: TypeId, from: &Scope) -> TokenStream {
        let decl = self.decl(id);
        self.names.path(
            from,
            &decl.scope,
            &names::ident(&mapping::identifier(&decl.name)),
        )
    }

    /// Path of a structure's view.
    fn named_view(&self, id: TypeId, from: &Scope) -> TokenStream {
        let decl = self.decl(id);
        self.names
            .path(from, &decl.scope, &self.names.companions(id).view)
    }

    /// Path of a structure's builder.
    pub(super) fn named_builder(&self, id: TypeId, from: &Scope) -> TokenStream {
        let decl = self.decl(id);
        self.names
            .path(from, &decl.scope, &self.names.companions(id).builder)
    }

    /// The owned type; typedefs are kept by name.
    pub(super) fn owned(&self, ty: &Type, from: &Scope) -> TokenStream {
        match ty {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String { .. } => self.names.prelude("String", "::std::string"),
            Type::Sequence { element, .. } => {
                let vec = self.names.prelude("Vec", "::std::vec");
                let element = self.owned(&element.ty, from);
                quote!(#vec<#element>)
            }
            Type::Array {
                element,
                dimensions,
            } => dimensions
                .iter()
                .rev()
                .fold(self.owned(&element.ty, from), |inner, dimension| {
                    let dimension = Literal::u32_unsuffixed(*dimension);
                    quote!([#inner; #dimension])
                }),
            Type::Named(id) => self.named(*id, from),
            Type::Interface(id) => {
                let interface = self.interface_path(*id, from);
                quote!(::std::sync::Arc<dyn #interface>)
            }
            _ => later(),
        }
    }

    /// What owns the value of a member.
    pub(super) fn owned_member(&self, member: &Member, from: &Scope) -> TokenStream {
        let ty = self.owned(&member.ty, from);
        match member.boxed {
            true => {
                let boxed = self.names.prelude("Box", "::std::boxed");
                quote!(#boxed<#ty>)
            }
            false => ty,
        }
    }

    /// The shape; typedefs are looked through.
    pub(super) fn shape(&self, ty: &Type, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        match self.resolve(ty) {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String { bound } => {
                let bound = bound
                    .map(Literal::u32_unsuffixed)
                    .map(|bound| quote!(<#bound>));
                quote!(#rt::shape::Text #bound)
            }
            Type::Sequence { element, bound } => {
                let bound = bound.map(Literal::u32_unsuffixed);
                match self.as_primitive(&element.ty) {
                    Some(primitive) if mapping::is_byte(primitive) => {
                        let bound = bound.map(|bound| quote!(<#bound>));
                        quote!(#rt::shape::ByteSequence #bound)
                    }
                    Some(primitive) => {
                        let bound = bound.map(|bound| quote!(, #bound));
                        let element = self.primitive(primitive);
                        quote!(#rt::shape::PrimitiveSequence<#element #bound>)
                    }
                    None => {
                        let bound = bound.map(|bound| quote!(, #bound));
                        let element = self.shape(&element.ty, from);
                        quote!(#rt::shape::Delimited<#rt::shape::Sequence<#element #bound>>)
                    }
                }
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let rows = self.rows(&element.ty, dimensions, from);
                match self.as_primitive(&element.ty) {
                    Some(_) => rows,
                    None => quote!(#rt::shape::Delimited<#rows>),
                }
            }
            Type::Named(id) => {
                let path = self.named(*id, from);
                match self.decl(*id).kind {
                    TypeKind::Enum(_) => quote!(#rt::shape::Enumerated<#path>),
                    TypeKind::Bitmask(_) => quote!(#rt::shape::Flags<#path>),
                    TypeKind::Bitset(_) => quote!(#rt::shape::Packed<#path>),
                    _ => path,
                }
            }
            _ => later(),
        }
    }

    /// The shape of an array without its delimiter.
    pub(super) fn rows(&self, element: &Type, dimensions: &[u32], from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let (first, inner) = match dimensions {
            [] => return self.shape(element, from),
            [first, inner @ ..] => (Literal::u32_unsuffixed(*first), inner),
        };
        match self.as_primitive(element) {
            Some(primitive) if inner.is_empty() && mapping::is_byte(primitive) => {
                quote!(#rt::shape::ByteArray<#first>)
            }
            Some(primitive) if inner.is_empty() => {
                let element = self.primitive(primitive);
                quote!(#rt::shape::PrimitiveArray<#element, #first>)
            }
            _ => {
                let inner = self.rows(element, inner, from);
                quote!(#rt::shape::Array<#inner, #first>)
            }
        }
    }

    /// What a view shows, for lifetime `'a`.
    pub(super) fn shown(&self, ty: &Type, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        match self.resolve(ty) {
            Type::Primitive(primitive) => self.primitive(*primitive),
            Type::String { .. } => {
                let str = self.names.primitive("str");
                quote!(&'a #str)
            }
            Type::Sequence { element, .. } => match self.as_primitive(&element.ty) {
                Some(primitive) => {
                    let element = self.primitive(primitive);
                    match mapping::is_byte(primitive) {
                        true => quote!(&'a [#element]),
                        false => quote!(#rt::SeqView<'a, #element>),
                    }
                }
                None => {
                    let element = self.shape(&element.ty, from);
                    quote!(#rt::ListView<'a, #element>)
                }
            },
            Type::Array {
                element,
                dimensions,
            } => match (self.as_primitive(&element.ty), &dimensions[..]) {
                (Some(primitive), [dimension]) => {
                    let element = self.primitive(primitive);
                    let dimension = Literal::u32_unsuffixed(*dimension);
                    match mapping::is_byte(primitive) {
                        true => quote!(&'a [#element; #dimension]),
                        false => quote!(#rt::SeqView<'a, #element>),
                    }
                }
                (_, dimensions) => {
                    let inner =
                        self.rows(&element.ty, dimensions.get(1..).unwrap_or_default(), from);
                    quote!(#rt::ListView<'a, #inner>)
                }
            },
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(_) => {
                    let view = self.named_view(*id, from);
                    quote!(#view<'a>)
                }
                TypeKind::Union(union) if self.union_borrows(union) => {
                    let view = self.named_view(*id, from);
                    quote!(#view<'a>)
                }
                _ => self.named(*id, from),
            },
            _ => later(),
        }
    }

    /// What builders take, and how that becomes what shapes take.
    pub(super) fn taken(&self, ty: &Type, from: &Scope) -> (TokenStream, TokenStream) {
        match self.resolve(ty) {
            _ if self.is_scalar(ty) => (self.owned(ty, from), quote!(&value)),
            Type::String { .. } => {
                let str = self.names.primitive("str");
                (quote!(&#str), quote!(value))
            }
            Type::Sequence { element, .. } => {
                let element = self.owned(&element.ty, from);
                (quote!(&[#element]), quote!(value))
            }
            Type::Array { .. } | Type::Named(_) => {
                let owned = self.owned(ty, from);
                (quote!(&#owned), quote!(value))
            }
            _ => (later(), later()),
        }
    }

    /// Whether all values have the same size on the wire and their parts the same
    /// places: members of mutable structures do not.
    pub(super) fn is_fixed(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) => true,
            Type::Array { element, .. } => self.is_fixed(&element.ty),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(inner) => {
                    inner.extensibility != Extensibility::Mutable
                        && inner
                            .members
                            .iter()
                            .all(|member| !member.optional && self.is_fixed(&member.ty))
                }
                TypeKind::Enum(_)
                | TypeKind::Bitmask(_)
                | TypeKind::Bitset(_)
                | TypeKind::Alias(_) => true,
                TypeKind::Union(_) | TypeKind::Native => false,
            },
            _ => false,
        }
    }

    /// Whether a value can contain another of structure `id`.
    pub(super) fn reaches(&self, ty: &Type, id: TypeId) -> bool {
        let mut seen = vec![false; self.model.types.len()];
        self.reaches_unseen(ty, id, &mut seen)
    }

    fn reaches_unseen(&self, ty: &Type, id: TypeId, seen: &mut [bool]) -> bool {
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => {
                self.reaches_unseen(&element.ty, id, seen)
            }
            Type::Named(other) if *other == id => true,
            Type::Named(other) if std::mem::replace(&mut seen[other.0], true) => false,
            Type::Named(other) => match &self.decl(*other).kind {
                TypeKind::Struct(inner) => inner
                    .members
                    .iter()
                    .any(|member| self.reaches_unseen(&member.ty, id, seen)),
                TypeKind::Union(inner) => inner
                    .branches
                    .iter()
                    .any(|branch| self.reaches_unseen(&branch.member.ty, id, seen)),
                TypeKind::Alias(alias) => self.reaches_unseen(&alias.ty, id, seen),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether serde needs help: an array that it cannot take is inside.
    pub(super) fn needs_serde_shape(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Sequence { element, .. } => self.needs_serde_shape(&element.ty),
            Type::Array {
                element,
                dimensions,
            } => {
                dimensions
                    .iter()
                    .any(|dimension| *dimension > SERDE_ARRAY_MAX)
                    || self.needs_serde_shape(&element.ty)
            }
            _ => false,
        }
    }

    /// A constant of a type; strings are `&'static str`.
    pub(super) fn value(&self, value: &Value, ty: &Type, from: &Scope) -> TokenStream {
        match value {
            Value::Integer(integer) => {
                if let Some(Primitive::Float32 | Primitive::Float64) = self.as_primitive(ty) {
                    return self.float(*integer as f64, ty);
                }
                let literal = Literal::u128_unsuffixed(integer.unsigned_abs());
                if let Some(set) = self.flags_of(ty, from, &literal) {
                    return set;
                }
                if *integer < 0 {
                    quote!(-#literal)
                } else {
                    quote!(#literal)
                }
            }
            Value::Float(float) => self.float(*float, ty),
            Value::Boolean(value) => quote!(#value),
            Value::Char(byte) if byte.is_ascii_graphic() => {
                let literal = Literal::byte_character(*byte);
                quote!(#literal)
            }
            Value::Char(byte) => {
                let literal = Literal::u8_unsuffixed(*byte);
                quote!(#literal)
            }
            Value::String(text) => quote!(#text),
            Value::Enum(id, index) => {
                let path = self.named(*id, from);
                let TypeKind::Enum(enumeration) = &self.decl(*id).kind else {
                    return quote!(::core::default::Default::default());
                };
                let literal =
                    names::ident(&mapping::identifier(&enumeration.literals[*index].name));
                quote!(#path::#literal)
            }
            _ => later(),
        }
    }

    /// A constant of a bitmask.
    fn flags_of(&self, ty: &Type, from: &Scope, bits: &Literal) -> Option<TokenStream> {
        let Type::Named(id) = self.resolve(ty) else {
            return None;
        };
        let TypeKind::Bitmask(bitmask) = &self.decl(*id).kind else {
            return None;
        };
        let path = self.named(*id, from);
        Some(match bitmask.extensibility {
            Extensibility::Final => quote!(#path::from_bits_truncate(#bits)),
            _ => quote!(#path::from_bits_retain(#bits)),
        })
    }

    fn float(&self, float: f64, ty: &Type) -> TokenStream {
        let single = self.as_primitive(ty) == Some(Primitive::Float32);
        let name = self.primitive(if single {
            Primitive::Float32
        } else {
            Primitive::Float64
        });
        if float.is_nan() {
            return quote!(#name::NAN);
        }
        let literal = match single {
            _ if float.is_infinite() => quote!(#name::INFINITY),
            true => {
                let literal = Literal::f32_unsuffixed((float as f32).abs());
                quote!(#literal)
            }
            false => {
                let literal = Literal::f64_unsuffixed(float.abs());
                quote!(#literal)
            }
        };
        if float.is_sign_negative() {
            quote!(-#literal)
        } else {
            literal
        }
    }
}
