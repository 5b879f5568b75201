//! Encoding of dynamic types, equivalent to generated code.

use spindle_dds_idl_runtime::encode::{Encoder, Head, Selection as _};
use spindle_dds_idl_runtime::shape::{Shape as _, Text, UNBOUNDED, WideText};
use spindle_dds_idl_runtime::{CdrError, Representation, SamplePosition};

use super::decode::{DISCRIMINATOR_ID, selected};
use super::leaf::{check_bits, check_enum};
use super::number;
use super::plan::{ANY, Declared, Members, Plan, bits, enum_size, field_bits, word_size};
use super::value::{UnionValue, Value};
use crate::graph::{Element, Extensibility, Member, Range, Type, Union};

impl Plan {
    /// Writes a value.
    ///
    /// # Errors
    /// The value is invalid.
    pub(super) fn write<E: Encoder>(
        &self,
        ty: &Type,
        value: &Value,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Encode(self).write(ty, ANY, value, encoder)
    }
}

/// Encodes values of the types of a plan.
#[derive(Clone, Copy)]
struct Encode<'p>(&'p Plan);

impl Encode<'_> {
    fn write<E: Encoder>(
        self,
        ty: &Type,
        range: &Range,
        value: &Value,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let range = self.0.range(range, ty);
        match (self.0.resolve(ty), value) {
            (Type::Primitive(primitive), value)
                if number::primitive_of(value) == Some(*primitive) =>
            {
                number::verify(value, range, encoder.position())?;
                number::write(value, encoder).unwrap_or_else(|| Err(foreign(encoder)))
            }
            (Type::String8(bound), Value::Text(text)) => {
                check_bound(text.len(), *bound, encoder.position())?;
                Text::<UNBOUNDED>::write(text, encoder)
            }
            (Type::String16(bound), Value::Text(text)) => {
                check_bound(text.encode_utf16().count(), *bound, encoder.position())?;
                WideText::<UNBOUNDED>::write(text, encoder)
            }
            (Type::Sequence { element, bound }, Value::List(values)) => {
                self.sequence(element, *bound, range, values, encoder)
            }
            (
                Type::Array {
                    element,
                    dimensions,
                },
                value,
            ) => match self.0.primitive(&element.ty) {
                Some(_) => self.rows(element, dimensions, range, value, encoder),
                None => {
                    let open = encoder.begin_collection(|counter| {
                        self.rows(element, dimensions, range, value, counter)
                    })?;
                    self.rows(element, dimensions, range, value, encoder)?;
                    encoder.end(open)
                }
            },
            (Type::Map { key, value, bound }, Value::Map(entries)) => {
                check_bound(entries.len(), *bound, encoder.position())?;
                let types = (&key.ty, &value.ty);
                if self.0.plain_entries(types.0, types.1) {
                    return self.entries(types, range, entries, encoder);
                }
                let open = encoder
                    .begin_collection(|counter| self.entries(types, range, entries, counter))?;
                self.entries(types, range, entries, encoder)?;
                encoder.end(open)
            }
            (Type::Declared(index), value) => match self.0.declared(*index) {
                Some(declared) => self.declared_value(&declared, value, encoder),
                // An annotation has no values, and reads as nothing.
                None if *value == Value::Struct(Vec::new()) => Ok(()),
                None => Err(foreign(encoder)),
            },
            _ => Err(foreign(encoder)),
        }
    }

    fn declared_value<E: Encoder>(
        self,
        declared: &Declared<'_>,
        value: &Value,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let place = SamplePosition::offset(encoder.position());
        match (declared, value) {
            (Declared::Enum(enumeration), Value::Enum(value)) => {
                check_enum(enumeration, *value, place)?;
                match enum_size(enumeration) {
                    1 => encoder.primitive(*value as i8),
                    2 => encoder.primitive(*value as i16),
                    _ => encoder.primitive(*value),
                }
            }
            (Declared::Bitmask(mask), Value::Bits(word)) => {
                check_bits(mask, *word, place)?;
                write_word(word_size(mask.bit_bound), *word, encoder)
            }
            (Declared::Bitset(bitset), Value::Bits(word)) => {
                let word = word & field_bits(bitset);
                write_word(word_size(bits(bitset)), word, encoder)
            }
            (Declared::Struct(extensibility, members), Value::Struct(values)) => {
                self.structure(*extensibility, members, values, encoder)
            }
            (Declared::Union(_, union), Value::Union(value)) => self.union(union, value, encoder),
            _ => Err(foreign(encoder)),
        }
    }

    fn sequence<E: Encoder>(
        self,
        element: &Element,
        bound: Option<u32>,
        range: &Range,
        values: &[Value],
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        check_bound(values.len(), bound, encoder.position())?;
        if self.0.primitive(&element.ty).is_some() {
            return self.elements(&element.ty, range, values, encoder);
        }
        let open = encoder
            .begin_collection(|counter| self.elements(&element.ty, range, values, counter))?;
        self.elements(&element.ty, range, values, encoder)?;
        encoder.end(open)
    }

    fn elements<E: Encoder>(
        self,
        ty: &Type,
        range: &Range,
        values: &[Value],
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        encoder.length(values.len())?;
        let mut values = values.iter();
        values.try_for_each(|value| self.write(ty, range, value, encoder))
    }

    fn rows<E: Encoder>(
        self,
        element: &Element,
        dimensions: &[u32],
        range: &Range,
        value: &Value,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let Some((first, inner)) = dimensions.split_first() else {
            return self.write(&element.ty, range, value, encoder);
        };
        match value {
            Value::List(rows) if rows.len() == *first as usize => rows
                .iter()
                .try_for_each(|row| self.rows(element, inner, range, row, encoder)),
            _ => Err(foreign(encoder)),
        }
    }

    fn entries<E: Encoder>(
        self,
        (key, value): (&Type, &Type),
        range: &Range,
        entries: &[(Value, Value)],
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        encoder.length(entries.len())?;
        for entry in entries {
            self.write(key, ANY, &entry.0, encoder)?;
            self.write(value, range, &entry.1, encoder)?;
        }
        Ok(())
    }

    fn structure<E: Encoder>(
        self,
        extensibility: Extensibility,
        members: &Members,
        values: &[Option<Value>],
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        if members.len() != values.len() {
            return Err(foreign(encoder));
        }
        let mut pairs: Vec<(&Member, &Option<Value>)> = members.iter().zip(values).collect();
        if encoder.is_key_hash() {
            pairs.sort_by_key(|(member, _)| member.id);
        }
        let open = encoder.begin(extensibility)?;
        for (member, value) in pairs {
            if E::Selection::MEMBERS.includes(members.is_key(member)) {
                self.member(extensibility, member, value.as_ref(), encoder)?;
            }
        }
        encoder.end(open)
    }

    fn member<E: Encoder>(
        self,
        extensibility: Extensibility,
        member: &Member,
        value: Option<&Value>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        if value.is_none() && !member.optional {
            return Err(foreign(encoder));
        }
        let headed = extensibility == Extensibility::Mutable && !encoder.is_key_hash();
        let write = |encoder: &mut E| match value {
            Some(value) => self.write(&member.ty, &member.range, value, encoder),
            None => Ok(()),
        };
        let head = || Head {
            id: member.id,
            must_understand: member.must_understand || member.key,
            code: self.0.length_code(&member.ty, &member.range),
        };
        match (headed, encoder.representation()) {
            (true, _) if value.is_none() => Ok(()),
            (true, _) => parameter(head(), encoder, write),
            (false, _) if !member.optional => write(encoder),
            (false, Representation::Xcdr1) => parameter(head(), encoder, write),
            (false, Representation::Xcdr2) => {
                encoder.primitive(value.is_some())?;
                write(encoder)
            }
        }
    }

    fn union<E: Encoder>(
        self,
        union: &Union,
        value: &UnionValue,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let branch = selected(union, &value.discriminator);
        if branch.map(|(index, _)| index) != value.branch.as_ref().map(|(index, _)| *index) {
            return Err(foreign(encoder));
        }
        let ty = &union.discriminator.ty;
        let head = Head {
            id: DISCRIMINATOR_ID,
            must_understand: true,
            code: self.0.length_code(ty, ANY),
        };
        let headed = union.extensibility == Extensibility::Mutable && !encoder.is_key_hash();
        let open = encoder.begin(union.extensibility)?;
        let write = |encoder: &mut E| self.write(ty, ANY, &value.discriminator, encoder);
        match headed {
            true => parameter(head, encoder, write)?,
            false => write(encoder)?,
        }
        // The key of a union is its discriminator.
        if E::Selection::MEMBERS.includes(false)
            && let (Some((_, member)), Some((_, value))) = (branch, &value.branch)
        {
            let ty = &member.ty;
            let head = Head {
                id: member.id,
                must_understand: member.must_understand,
                code: self.0.length_code(ty, &member.range),
            };
            let write = |encoder: &mut E| self.write(ty, &member.range, value, encoder);
            match headed {
                true => parameter(head, encoder, write)?,
                false => write(encoder)?,
            }
        }
        encoder.end(open)
    }
}

/// Writes a member after its header.
fn parameter<E: Encoder>(
    head: Head,
    encoder: &mut E,
    write: impl FnOnce(&mut E) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let parameter = encoder.head_open(head)?;
    write(encoder)?;
    encoder.head_close(head, parameter)
}

/// The error for a value of another type, which [`DynamicData`](crate::DynamicData) prevents.
fn foreign<E: Encoder>(encoder: &E) -> CdrError {
    CdrError::WrongDiscriminator {
        place: SamplePosition::offset(encoder.position()),
    }
}

fn check_bound(length: usize, bound: Option<u32>, offset: usize) -> Result<(), CdrError> {
    match bound {
        Some(bound) if length > bound as usize => Err(CdrError::BoundExceeded {
            length,
            bound: bound as usize,
            place: SamplePosition::offset(offset),
        }),
        _ => Ok(()),
    }
}

fn write_word<E: Encoder>(size: usize, word: u64, encoder: &mut E) -> Result<(), CdrError> {
    match size {
        1 => encoder.primitive(word as u8),
        2 => encoder.primitive(word as u16),
        4 => encoder.primitive(word as u32),
        _ => encoder.primitive(word),
    }
}
