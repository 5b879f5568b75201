//! The Rust of a use of a type: the owned type, the type in views, and the shape.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, Scope};
use crate::mapping;
use crate::model::{Extensibility, Member, Primitive, Type, TypeId, TypeKind};

/// Longest array that serde supports by itself.
const SERDE_ARRAY_MAX: u32 = 32;

/// Placeholder for types that cannot be part of data types, which the front end refuses.
pub(super) fn none() -> TokenStream {
    quote!(::core::compile_error!("no data type"))
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

    pub(super) fn as_primitive(&self, ty: &Type) -> Option<Primitive> {
        match self.resolve(ty) {
            Type::Primitive(primitive) => Some(*primitive),
            _ => None,
        }
    }

    pub(super) fn primitive(&self, primitive: Primitive, from: &Scope) -> TokenStream {
        match primitive {
            Primitive::Float128 => {
                let rt = self.rt(from);
                quote!(#rt::LongDouble)
            }
            _ => self.names.primitive(mapping::primitive(primitive)),
        }
    }

    /// The Rust type of `fixed<digits, scale>`.
    pub(super) fn fixed(&self, digits: u8, scale: u8, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let [digits, scale] = [digits, scale].map(Literal::u8_unsuffixed);
        quote!(#rt::Fixed<#digits, #scale>)
    }

    /// Path of a declared type.
    pub(super) fn named(&self, id: TypeId, from: &Scope) -> TokenStream {
        let decl = self.decl(id);
        let name = self.names.declared_type(decl);
        self.names.path(from, &decl.scope, &name)
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
            Type::Primitive(primitive) => self.primitive(*primitive, from),
            Type::String { .. } | Type::WString { .. } => {
                self.names.prelude("String", "::std::string")
            }
            Type::Fixed { digits, scale } => self.fixed(*digits, *scale, from),
            Type::Map { key, value, .. } => {
                let [key, value] = [key, value].map(|part| self.owned(&part.ty, from));
                quote!(::std::collections::BTreeMap<#key, #value>)
            }
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
        }
    }

    /// The owned type of a member.
    pub(super) fn owned_member(&self, member: &Member, from: &Scope) -> TokenStream {
        let mut ty = self.owned(&member.ty, from);
        if member.boxed {
            let boxed = self.names.prelude("Box", "::std::boxed");
            ty = quote!(#boxed<#ty>);
        }
        if member.optional {
            let option = self.names.prelude("Option", "::core::option");
            ty = quote!(#option<#ty>);
        }
        ty
    }

    /// The type of a member in a view of lifetime `'a`.
    pub(super) fn shown_member(&self, member: &Member, from: &Scope) -> TokenStream {
        let ty = self.shown(&member.ty, from);
        match member.optional {
            true => {
                let option = self.names.prelude("Option", "::core::option");
                quote!(#option<#ty>)
            }
            false => ty,
        }
    }

    /// The type in a view of lifetime `'a`.
    pub(super) fn shown(&self, ty: &Type, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        match self.resolve(ty) {
            Type::Primitive(primitive) => self.primitive(*primitive, from),
            Type::WString { .. } => quote!(#rt::WideView<'a>),
            Type::Fixed { digits, scale } => self.fixed(*digits, *scale, from),
            Type::Map { key, value, .. } => {
                let [key, value] = [key, value].map(|part| self.element(part, from));
                quote!(#rt::MapView<'a, #key, #value>)
            }
            Type::String { .. } => {
                let str = self.names.primitive("str");
                quote!(&'a #str)
            }
            Type::Sequence { element, .. } => match self.plain_primitive(&element.ty) {
                Some(primitive) => {
                    let element = self.primitive(primitive, from);
                    match mapping::is_byte(primitive) {
                        true => quote!(&'a [#element]),
                        false => quote!(#rt::SeqView<'a, #element>),
                    }
                }
                None => {
                    let element = self.element(element, from);
                    quote!(#rt::ListView<'a, #element>)
                }
            },
            Type::Array {
                element,
                dimensions,
            } => match (self.plain_primitive(&element.ty), &dimensions[..]) {
                (Some(primitive), [dimension]) => {
                    let element = self.primitive(primitive, from);
                    let dimension = Literal::u32_unsuffixed(*dimension);
                    match mapping::is_byte(primitive) {
                        true => quote!(&'a [#element; #dimension]),
                        false => quote!(#rt::SeqView<'a, #element>),
                    }
                }
                (_, dimensions) => {
                    let inner = self.rows(element, dimensions.get(1..).unwrap_or_default(), from);
                    quote!(#rt::ListView<'a, #inner>)
                }
            },
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(_) => {
                    let view = self.named_view(*id, from);
                    quote!(#view<'a>)
                }
                TypeKind::Union(union) if self.union_looks_different(union) => {
                    let view = self.named_view(*id, from);
                    let lifetime = self.union_lifetime(*id);
                    quote!(#view #lifetime)
                }
                _ => self.named(*id, from),
            },
            _ => none(),
        }
    }

    /// The parameter type of builders, and its conversion to that of shapes.
    pub(super) fn taken(&self, ty: &Type, from: &Scope) -> (TokenStream, TokenStream) {
        match self.resolve(ty) {
            _ if self.is_scalar(ty) => (self.owned(ty, from), quote!(&value)),
            Type::String { .. } | Type::WString { .. } => {
                let str = self.names.primitive("str");
                (quote!(&#str), quote!(value))
            }
            Type::Sequence { element, .. } => {
                let element = self.owned(&element.ty, from);
                (quote!(&[#element]), quote!(value))
            }
            Type::Map { .. } | Type::Array { .. } | Type::Named(_) => {
                let owned = self.owned(ty, from);
                (quote!(&#owned), quote!(value))
            }
            _ => (none(), none()),
        }
    }

    /// As [`taken`](Self::taken), for a member; if it is optional, for its value.
    pub(super) fn taken_member(&self, member: &Member, from: &Scope) -> (TokenStream, TokenStream) {
        let owned = self.owned(&member.ty, from);
        match member.boxed {
            true if self.is_scalar(&member.ty) => (owned, quote!(&value)),
            true => (quote!(&#owned), quote!(value)),
            false => self.taken(&member.ty, from),
        }
    }

    /// Whether all values have the same encoded size and their parts the same offsets;
    /// members of mutable structures do not.
    pub(super) fn is_fixed(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Primitive(_) | Type::Fixed { .. } => true,
            Type::Array { element, .. } => self.is_fixed(&element.ty),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(inner) => {
                    inner.extensibility != Extensibility::Mutable
                        && inner
                            .members
                            .iter()
                            .all(|member| self.is_fixed_member(member))
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

    /// As [`is_fixed`](Self::is_fixed), for a member.
    pub(super) fn is_fixed_member(&self, member: &Member) -> bool {
        member.non_serialized || (!member.optional && self.is_fixed(&member.ty))
    }

    /// The number of values in a member that is read without a call that takes the cursor:
    /// fixed size, text, primitives, and structures of these.
    pub(super) fn flat_values(&self, member: &Member) -> Option<usize> {
        if member.optional || member.boxed {
            return None;
        }
        if self.is_fixed_member(member) {
            return Some(1);
        }
        match self.resolve(&member.ty) {
            Type::String { .. } => Some(1),
            Type::Sequence { element, .. } => self.as_primitive(&element.ty).map(|_| 1),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(inner) if inner.extensibility != Extensibility::Mutable => {
                    inner.members.iter().map(|one| self.flat_values(one)).sum()
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the default of a type owns heap memory.
    pub(super) fn has_initial_heap(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Array { element, .. } => self.has_initial_heap(&element.ty),
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Struct(inner) => inner.members.iter().any(|member| {
                    !member.optional && (member.boxed || self.has_initial_heap(&member.ty))
                }),
                TypeKind::Union(inner) => {
                    let initial = self.initial(*id, inner).branch;
                    initial.is_some_and(|index| {
                        let member = &inner.branches[index].member;
                        member.boxed || self.has_initial_heap(&member.ty)
                    })
                }
                _ => false,
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
            Type::Map { value, .. } => self.reaches_unseen(&value.ty, id, seen),
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

    /// Whether the type contains an array that serde does not support by itself.
    pub(super) fn needs_serde_shape(&self, ty: &Type) -> bool {
        match self.resolve(ty) {
            Type::Sequence { element, .. } => self.needs_serde_shape(&element.ty),
            Type::Map { value, .. } => self.needs_serde_shape(&value.ty),
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
}
