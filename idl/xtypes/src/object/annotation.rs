//! Annotations in `TypeObject`s: XTypes 1.3 Annex B.

use spindle_dds_idl_runtime::encode::Encoder;
use spindle_dds_idl_runtime::{CdrError, Reader};

use super::identifier::{NameHash, TypeIdentifier};
use crate::graph::{Primitive, Range};
use crate::wire::{Bounded, Wire, put_extended, record, skip_extended};

const KIND_ENUM: u8 = 0x40;
const KIND_STRING8: u8 = 0x20;
const KIND_STRING16: u8 = 0x21;

/// `AnnotationParameterValue`. Floating point numbers are kept as bits, so that an object with
/// a NaN equals itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationValue {
    /// `TK_BOOLEAN`.
    Boolean(bool),
    /// `TK_BYTE`.
    Byte(u8),
    /// `TK_INT8`.
    Int8(i8),
    /// `TK_UINT8`.
    UInt8(u8),
    /// `TK_INT16`.
    Int16(i16),
    /// `TK_UINT16`.
    UInt16(u16),
    /// `TK_INT32`.
    Int32(i32),
    /// `TK_UINT32`.
    UInt32(u32),
    /// `TK_INT64`.
    Int64(i64),
    /// `TK_UINT64`.
    UInt64(u64),
    /// `TK_FLOAT32`: the bits of an IEEE binary32.
    Float32(u32),
    /// `TK_FLOAT64`: the bits of an IEEE binary64.
    Float64(u64),
    /// `TK_FLOAT128`: the bytes of a little endian IEEE binary128.
    Float128([u8; 16]),
    /// `TK_CHAR8`.
    Char8(u8),
    /// `TK_CHAR16`: one UTF-16 unit.
    Char16(u16),
    /// `TK_ENUM`: the value of a literal.
    Enum(i32),
    /// `TK_STRING8`, at most 128 bytes.
    String8(Bounded<128>),
    /// `TK_STRING16`, UTF-16 units.
    String16(Vec<u16>),
    /// A kind that is not in version 1.3 of the annex.
    Extended(u8),
}

impl AnnotationValue {
    fn kind(&self) -> u8 {
        let primitive = match self {
            Self::Boolean(_) => Primitive::Boolean,
            Self::Byte(_) => Primitive::Byte,
            Self::Int8(_) => Primitive::Int8,
            Self::UInt8(_) => Primitive::UInt8,
            Self::Int16(_) => Primitive::Int16,
            Self::UInt16(_) => Primitive::UInt16,
            Self::Int32(_) => Primitive::Int32,
            Self::UInt32(_) => Primitive::UInt32,
            Self::Int64(_) => Primitive::Int64,
            Self::UInt64(_) => Primitive::UInt64,
            Self::Float32(_) => Primitive::Float32,
            Self::Float64(_) => Primitive::Float64,
            Self::Float128(_) => Primitive::Float128,
            Self::Char8(_) => Primitive::Char8,
            Self::Char16(_) => Primitive::Char16,
            Self::Enum(_) => return KIND_ENUM,
            Self::String8(_) => return KIND_STRING8,
            Self::String16(_) => return KIND_STRING16,
            Self::Extended(kind) => return *kind,
        };
        primitive.kind()
    }
}

/// A length in bytes, then UTF-16 without a terminator.
fn put_wide<E: Encoder>(units: &[u16], encoder: &mut E) -> Result<(), CdrError> {
    encoder.length(units.len().saturating_mul(2))?;
    encoder.primitives(units)
}

fn get_wide(reader: &mut Reader<'_>) -> Result<Vec<u16>, CdrError> {
    let units = reader.count(1, 2 * 128)? / 2;
    (0..units).map(|_| reader.primitive()).collect()
}

impl Wire for AnnotationValue {
    fn put<E: Encoder>(&self, encoder: &mut E) -> Result<(), CdrError> {
        self.kind().put(encoder)?;
        match self {
            Self::Boolean(value) => value.put(encoder),
            Self::Byte(value) | Self::UInt8(value) | Self::Char8(value) => value.put(encoder),
            Self::Int8(value) => value.put(encoder),
            Self::Int16(value) => value.put(encoder),
            Self::UInt16(value) | Self::Char16(value) => value.put(encoder),
            Self::Int32(value) | Self::Enum(value) => value.put(encoder),
            Self::UInt32(value) => value.put(encoder),
            Self::Int64(value) => value.put(encoder),
            Self::UInt64(value) => value.put(encoder),
            Self::Float32(value) => value.put(encoder),
            Self::Float64(value) => value.put(encoder),
            Self::Float128(bytes) => {
                encoder.align(8)?;
                bytes.put(encoder)
            }
            Self::String8(text) => text.put(encoder),
            Self::String16(units) => put_wide(units, encoder),
            Self::Extended(_) => put_extended(encoder),
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let kind = u8::get(reader)?;
        let Some(primitive) = Primitive::of_kind(kind) else {
            return Ok(match kind {
                KIND_ENUM => Self::Enum(Wire::get(reader)?),
                KIND_STRING8 => Self::String8(Wire::get(reader)?),
                KIND_STRING16 => Self::String16(get_wide(reader)?),
                kind => {
                    skip_extended(reader)?;
                    Self::Extended(kind)
                }
            });
        };
        Ok(match primitive {
            Primitive::Boolean => Self::Boolean(Wire::get(reader)?),
            Primitive::Byte => Self::Byte(Wire::get(reader)?),
            Primitive::Int8 => Self::Int8(Wire::get(reader)?),
            Primitive::UInt8 => Self::UInt8(Wire::get(reader)?),
            Primitive::Int16 => Self::Int16(Wire::get(reader)?),
            Primitive::UInt16 => Self::UInt16(Wire::get(reader)?),
            Primitive::Int32 => Self::Int32(Wire::get(reader)?),
            Primitive::UInt32 => Self::UInt32(Wire::get(reader)?),
            Primitive::Int64 => Self::Int64(Wire::get(reader)?),
            Primitive::UInt64 => Self::UInt64(Wire::get(reader)?),
            Primitive::Float32 => Self::Float32(Wire::get(reader)?),
            Primitive::Float64 => Self::Float64(Wire::get(reader)?),
            Primitive::Float128 => {
                reader.align(8)?;
                Self::Float128(Wire::get(reader)?)
            }
            Primitive::Char8 => Self::Char8(Wire::get(reader)?),
            Primitive::Char16 => Self::Char16(Wire::get(reader)?),
        })
    }
}

record! {
    /// A parameter of an annotation.
    struct AppliedParameter (appendable) {
        /// Hash of its name.
        name_hash: NameHash,
        /// Its value.
        value: AnnotationValue,
    }

    /// A use of an annotation that the IDL declares.
    struct AppliedAnnotation (appendable) {
        /// Which annotation.
        identifier: TypeIdentifier,
        /// Its parameters, by their hashes.
        parameters: Option<Vec<AppliedParameter>>,
    }

    /// `@verbatim`.
    struct AppliedVerbatim (final) {
        /// Its place in the output.
        placement: Bounded<32>,
        /// The language that it is for.
        language: Bounded<32>,
        /// The text.
        text: String,
    }

    /// The annotations of the standard on a member.
    struct MemberBuiltins (appendable) {
        /// `@unit`.
        unit: Option<String>,
        /// `@min` and `@range`.
        min: Option<AnnotationValue>,
        /// `@max` and `@range`.
        max: Option<AnnotationValue>,
        /// `@hashid`; an empty text for the member's own name.
        hash_id: Option<String>,
    }

    /// The annotations of the standard on a type.
    struct TypeBuiltins (appendable) {
        /// `@verbatim`.
        verbatim: Option<AppliedVerbatim>,
    }

    /// The annotations of a member, a typedef or an element.
    #[derive(Default)]
    struct MemberAnnotations (final) {
        /// Those of the standard.
        builtin: Option<MemberBuiltins>,
        /// Those that the IDL declares.
        custom: Option<Vec<AppliedAnnotation>>,
    }

    /// The annotations of a type or a discriminator.
    #[derive(Default)]
    struct TypeAnnotations (final) {
        /// Those of the standard.
        builtin: Option<TypeBuiltins>,
        /// Those that the IDL declares.
        custom: Option<Vec<AppliedAnnotation>>,
    }
}

impl MemberAnnotations {
    /// Of what a graph knows.
    pub(crate) fn of(
        unit: Option<&String>,
        range: &Range,
        hash_id: Option<&String>,
        custom: Option<Vec<AppliedAnnotation>>,
    ) -> Self {
        let any = unit.is_some() || range.min.is_some() || range.max.is_some() || hash_id.is_some();
        Self {
            builtin: any.then(|| MemberBuiltins {
                unit: unit.cloned(),
                min: range.min.clone(),
                max: range.max.clone(),
                hash_id: hash_id.cloned(),
            }),
            custom,
        }
    }

    /// From the data of a graph: `@unit`, the range, and `@hashid`.
    pub(crate) fn known(&self) -> (Option<String>, Range, Option<String>) {
        match &self.builtin {
            None => (None, Range::default(), None),
            Some(MemberBuiltins {
                unit,
                min,
                max,
                hash_id,
            }) => {
                let range = Range {
                    min: min.clone(),
                    max: max.clone(),
                };
                (unit.clone(), range, hash_id.clone())
            }
        }
    }
}

impl TypeAnnotations {
    /// Of what a graph knows.
    pub(crate) fn of(
        verbatim: Option<AppliedVerbatim>,
        custom: Option<Vec<AppliedAnnotation>>,
    ) -> Self {
        let builtin = verbatim.map(|verbatim| TypeBuiltins {
            verbatim: Some(verbatim),
        });
        Self { builtin, custom }
    }

    /// `@verbatim`.
    pub(crate) fn verbatim(&self) -> Option<AppliedVerbatim> {
        self.builtin.as_ref()?.verbatim.clone()
    }
}
