//! Constants.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{Emitter, Scope};
use crate::model::{Extensibility, Primitive, Type, TypeKind, Value};

impl Emitter<'_> {
    /// A constant of a type; strings are `&'static str`.
    pub(super) fn value(&self, value: &Value, ty: &Type, from: &Scope) -> TokenStream {
        match value {
            Value::Integer(integer) => {
                match self.as_primitive(ty) {
                    Some(Primitive::Float32 | Primitive::Float64) => {
                        return self.float(*integer as f64, ty, from);
                    }
                    Some(Primitive::Float128) => {
                        return self.long_double(binary128(*integer), from);
                    }
                    _ => {}
                }
                if let Type::Fixed { .. } = self.resolve(ty) {
                    return self.decimal(value, ty, from);
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
            Value::Float(float) => self.float(*float, ty, from),
            Value::Float128(bits) => self.long_double(*bits, from),
            Value::Fixed { .. } => self.decimal(value, ty, from),
            Value::WChar(unit) => {
                let literal = Literal::u16_unsuffixed(*unit);
                quote!(#literal)
            }
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
                let literal = &self.names.literals(*id)[*index];
                quote!(#path::#literal)
            }
        }
    }

    fn long_double(&self, bits: u128, from: &Scope) -> TokenStream {
        let rt = self.rt(from);
        let literal: TokenStream = format!("{bits:#034x}").parse().unwrap_or_default();
        quote!(#rt::LongDouble::from_bits(#literal))
    }

    fn decimal(&self, value: &Value, ty: &Type, from: &Scope) -> TokenStream {
        let Type::Fixed { digits, scale } = self.resolve(ty) else {
            return super::types::none();
        };
        let rt = self.rt(from);
        let unscaled = self.unscaled(value, ty);
        let literal = Literal::u128_unsuffixed(unscaled.unsigned_abs());
        let sign = (unscaled < 0).then(|| quote!(-));
        let [digits, scale] = [*digits, *scale].map(Literal::u8_unsuffixed);
        quote!(#rt::Fixed::<#digits, #scale>::saturating(#sign #literal))
    }

    /// A number times ten to the power of the scale of its `fixed` type.
    pub(super) fn unscaled(&self, value: &Value, ty: &Type) -> i128 {
        let Type::Fixed { scale: wanted, .. } = self.resolve(ty) else {
            return 0;
        };
        let (unscaled, scale) = match value {
            Value::Integer(integer) => (*integer, 0),
            Value::Fixed { unscaled, scale } => (*unscaled, *scale),
            _ => (0, 0),
        };
        let power = 10_i128.saturating_pow(u32::from(wanted.abs_diff(scale)));
        match *wanted >= scale {
            true => unscaled.saturating_mul(power),
            false => unscaled / power,
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

    fn float(&self, float: f64, ty: &Type, from: &Scope) -> TokenStream {
        let single = self.as_primitive(ty) == Some(Primitive::Float32);
        let primitive = match single {
            true => Primitive::Float32,
            false => Primitive::Float64,
        };
        let name = self.primitive(primitive, from);
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

/// The bits of the binary128 nearest to an integer, towards zero.
fn binary128(integer: i128) -> u128 {
    let magnitude = integer.unsigned_abs();
    let Some(exponent) = magnitude.checked_ilog2() else {
        return 0;
    };
    let fraction = match exponent {
        0..=112 => magnitude << (112 - exponent),
        _ => magnitude >> (exponent - 112),
    };
    let sign = u128::from(integer < 0) << 127;
    sign | (u128::from(exponent + 16_383) << 112) | (fraction & ((1 << 112) - 1))
}

#[cfg(test)]
mod tests {
    use super::binary128;

    #[test]
    fn integers_as_long_doubles() {
        assert_eq!(binary128(0), 0);
        assert_eq!(binary128(1), 0x3fff << 112);
        assert_eq!(binary128(-3), 0x000c_0008 << 108);
        assert_eq!(binary128(1 << 120), (0x3fff + 120) << 112);
    }
}
