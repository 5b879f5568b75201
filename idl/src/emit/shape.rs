//! The shapes of types, by which generated code describes layouts to the runtime.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, Scope};
use crate::mapping;
use crate::model::{Element, Member, Primitive, Range, TryConstruct, Type, TypeKind, Value};

impl Emitter<'_> {
    /// The shape of a member: that of its type inside those of its annotations.
    pub(super) fn member_shape(&self, member: &Member, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let mut shape = self.shape_within(&member.ty, &member.range, from);
        if member.try_construct == TryConstruct::Trim && self.can_be_cut(&member.ty) {
            shape = quote!(#rt::shape::Trim<#shape>);
        }
        if member.boxed {
            shape = quote!(#rt::shape::Boxed<#shape>);
        }
        if member.optional {
            shape = quote!(#rt::shape::Optional<#shape>);
        }
        shape
    }

    /// The shape of an element of a collection.
    pub(super) fn element(&self, element: &Element, from: &Scope) -> TokenStream {
        self.element_within(element, &Range::default(), from)
    }

    fn element_within(&self, element: &Element, range: &Range, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let shape = self.shape_within(&element.ty, range, from);
        match element.try_construct {
            TryConstruct::UseDefault => quote!(#rt::shape::OrDefault<#shape>),
            TryConstruct::Trim if self.can_be_cut(&element.ty) => quote!(#rt::shape::Trim<#shape>),
            TryConstruct::Trim | TryConstruct::Discard => shape,
        }
    }

    /// The primitive of a type, if all its values are allowed.
    pub(super) fn plain_primitive(&self, ty: &Type) -> Option<Primitive> {
        self.as_primitive(ty)
            .filter(|_| self.alias_range(ty).is_empty())
    }

    /// The shape of a type whose numbers are restricted to `range`, or else to the range of
    /// its typedefs.
    pub(super) fn shape_within(&self, ty: &Type, range: &Range, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let range = self.range_of(ty, range);
        match self.resolve(ty) {
            Type::Primitive(primitive) => {
                let shape = self.primitive(*primitive, from);
                self.ranged(shape, ty, range, from)
            }
            Type::Fixed { digits, scale } => {
                let shape = self.fixed(*digits, *scale, from);
                self.ranged(shape, ty, range, from)
            }
            Type::String { bound } => {
                let bound = arguments(*bound);
                quote!(#rt::shape::Text #bound)
            }
            Type::WString { bound } => {
                let bound = arguments(*bound);
                quote!(#rt::shape::WideText #bound)
            }
            Type::Sequence { element, bound } => self.sequence(element, *bound, range, from),
            Type::Map { key, value, bound } => {
                let primitive = [key, value].map(|part| self.as_primitive(&part.ty).is_some());
                let key = self.element(key, from);
                let value = self.element_within(value, range, from);
                let bound = further(*bound);
                let map = quote!(#rt::shape::Map<#key, #value #bound>);
                match primitive {
                    [true, true] => map,
                    _ => quote!(#rt::shape::Delimited<#map>),
                }
            }
            Type::Array {
                element,
                dimensions,
            } => {
                let rows = self.rows_within(element, dimensions, range, from);
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
            Type::Interface(_) => super::types::none(),
        }
    }

    fn sequence(
        &self,
        element: &Element,
        bound: Option<u32>,
        range: &Range,
        from: &Scope,
    ) -> TokenStream {
        let rt = self.rt(from);
        let plain = self
            .plain_primitive(&element.ty)
            .filter(|_| range.is_empty());
        match plain {
            Some(primitive) if mapping::is_byte(primitive) => {
                let bound = arguments(bound);
                quote!(#rt::shape::ByteSequence #bound)
            }
            Some(primitive) => {
                let (element, bound) = (self.primitive(primitive, from), further(bound));
                quote!(#rt::shape::PrimitiveSequence<#element #bound>)
            }
            None => {
                let primitive = self.as_primitive(&element.ty);
                let (element, bound) = (self.element_within(element, range, from), further(bound));
                let sequence = quote!(#rt::shape::Sequence<#element #bound>);
                match primitive {
                    Some(_) => sequence,
                    None => quote!(#rt::shape::Delimited<#sequence>),
                }
            }
        }
    }

    /// The shape of an array without its delimiter.
    pub(super) fn rows(&self, element: &Element, dimensions: &[u32], from: &Scope) -> TokenStream {
        self.rows_within(element, dimensions, &Range::default(), from)
    }

    pub(super) fn rows_within(
        &self,
        element: &Element,
        dimensions: &[u32],
        range: &Range,
        from: &Scope,
    ) -> TokenStream {
        let rt = self.rt(from);
        let (first, inner) = match dimensions {
            [] => return self.element_within(element, range, from),
            [first, inner @ ..] => (Literal::u32_unsuffixed(*first), inner),
        };
        let plain = self
            .plain_primitive(&element.ty)
            .filter(|_| range.is_empty());
        match plain.filter(|_| inner.is_empty()) {
            Some(primitive) if mapping::is_byte(primitive) => {
                quote!(#rt::shape::ByteArray<#first>)
            }
            Some(primitive) => {
                let element = self.primitive(primitive, from);
                quote!(#rt::shape::PrimitiveArray<#element, #first>)
            }
            None => {
                let inner = self.rows_within(element, inner, range, from);
                quote!(#rt::shape::Array<#inner, #first>)
            }
        }
    }

    /// Whether a type has a bound to which values can be cut.
    fn can_be_cut(&self, ty: &Type) -> bool {
        matches!(
            self.resolve(ty),
            Type::String { .. } | Type::WString { .. } | Type::Sequence { .. } | Type::Map { .. }
        )
    }

    /// `range`, or else the range of the typedefs of a type.
    pub(super) fn range_of<'r>(&'r self, ty: &Type, range: &'r Range) -> &'r Range {
        match range.is_empty() {
            true => self.alias_range(ty),
            false => range,
        }
    }

    /// The range of the typedefs of a type.
    fn alias_range(&self, ty: &Type) -> &Range {
        const NONE: &Range = &Range {
            min: None,
            max: None,
        };
        match ty {
            Type::Named(id) => match &self.decl(*id).kind {
                TypeKind::Alias(alias) => &alias.range,
                _ => NONE,
            },
            _ => NONE,
        }
    }

    fn ranged(&self, shape: TokenStream, ty: &Type, range: &Range, from: &Scope) -> TokenStream {
        if range.is_empty() {
            return shape;
        }
        let rt = self.rt(from);
        let i128 = self.names.primitive("i128");
        let min = match &range.min {
            Some(value) => self.limit(value, ty, from),
            None => quote!({ #i128::MIN }),
        };
        let max = match &range.max {
            Some(value) => self.limit(value, ty, from),
            None => quote!({ #i128::MAX }),
        };
        quote!(#rt::shape::Ranged<#shape, #min, #max>)
    }

    /// A limit as a constant argument, in the runtime's encoding.
    fn limit(&self, value: &Value, ty: &Type, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let of_float = match self.as_primitive(ty) {
            Some(Primitive::Float32) => Some(quote!(limit_f32)),
            Some(Primitive::Float64) => Some(quote!(limit_f64)),
            Some(Primitive::Float128) => Some(quote!(limit_long_double)),
            _ => None,
        };
        if let Some(function) = of_float {
            let value = self.value(value, ty, from);
            return quote!({ #rt::shape::#function(#value) });
        }
        let number = match value {
            Value::Integer(number) => *number,
            Value::Char(byte) => i128::from(*byte),
            Value::WChar(unit) => i128::from(*unit),
            Value::Boolean(value) => i128::from(*value),
            Value::Fixed { .. } => self.unscaled(value, ty),
            _ => 0,
        };
        let literal = Literal::u128_unsuffixed(number.unsigned_abs());
        match number {
            ..0 => quote!({ -#literal }),
            _ => quote!(#literal),
        }
    }
}

/// The bound as the only argument.
fn arguments(bound: Option<u32>) -> Option<TokenStream> {
    let bound = Literal::u32_unsuffixed(bound?);
    Some(quote!(<#bound>))
}

/// The bound as one more argument.
fn further(bound: Option<u32>) -> Option<TokenStream> {
    let bound = Literal::u32_unsuffixed(bound?);
    Some(quote!(, #bound))
}
