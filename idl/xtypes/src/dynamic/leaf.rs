//! Decoding and checks of texts, enumerations, bitmasks and bitsets.

use spindle_dds_idl_runtime::shape::{Shape as _, Text, UNBOUNDED, WideText};
use spindle_dds_idl_runtime::{CdrError, Reader, SamplePosition};

use super::plan::{bits, enum_size, field_bits, valid_bits, word_size};
use super::value::Value;
use crate::graph::{Bitmask, Bitset, Enum};

pub(super) fn read_text(
    bound: Option<u32>,
    trim: bool,
    reader: &mut Reader<'_>,
) -> Result<Value, CdrError> {
    let offset = reader.place().offset;
    let mut text = Text::<UNBOUNDED>::read(reader)?;
    let bound = bound.unwrap_or(UNBOUNDED);
    match trim {
        true => text.truncate(text.floor_char_boundary(bound as usize)),
        false => reader.check_bound(text.len(), bound, offset)?,
    }
    Ok(Value::Text(text))
}

pub(super) fn read_wide(
    bound: Option<u32>,
    trim: bool,
    reader: &mut Reader<'_>,
) -> Result<Value, CdrError> {
    let offset = reader.place().offset;
    let mut text = WideText::<UNBOUNDED>::read(reader)?;
    let bound = bound.unwrap_or(UNBOUNDED);
    if trim {
        let mut units = 0;
        let fits = |unit: &char| {
            units += unit.len_utf16();
            units <= bound as usize
        };
        let end = text.chars().take_while(fits).map(char::len_utf8).sum();
        text.truncate(end);
    } else {
        reader.check_bound(text.encode_utf16().count(), bound, offset)?;
    }
    Ok(Value::Text(text))
}

pub(super) fn read_enum(enumeration: &Enum, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
    let place = reader.place();
    let value = match enum_size(enumeration) {
        1 => i32::from(reader.primitive::<i8>()?),
        2 => i32::from(reader.primitive::<i16>()?),
        _ => reader.primitive::<i32>()?,
    };
    reader.tolerate(check_enum(enumeration, value, place))?;
    Ok(Value::Enum(value))
}

/// Checks that a literal has a value.
///
/// # Errors
/// [`CdrError::UnknownEnumerator`].
pub(super) fn check_enum(
    enumeration: &Enum,
    value: i32,
    place: SamplePosition,
) -> Result<(), CdrError> {
    let mut literals = enumeration.literals.iter();
    match literals.any(|literal| literal.value == value) {
        true => Ok(()),
        false => Err(CdrError::UnknownEnumerator { value, place }),
    }
}

fn read_word(size: usize, reader: &mut Reader<'_>) -> Result<u64, CdrError> {
    Ok(match size {
        1 => u64::from(reader.primitive::<u8>()?),
        2 => u64::from(reader.primitive::<u16>()?),
        4 => u64::from(reader.primitive::<u32>()?),
        _ => reader.primitive::<u64>()?,
    })
}

pub(super) fn read_bitmask(mask: &Bitmask, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
    let place = reader.place();
    let bits = read_word(word_size(mask.bit_bound), reader)?;
    reader.tolerate(check_bits(mask, bits, place))?;
    Ok(Value::Bits(bits))
}

/// Checks that a bitmask may have bits.
///
/// # Errors
/// [`CdrError::UnknownBits`].
pub(super) fn check_bits(mask: &Bitmask, bits: u64, place: SamplePosition) -> Result<(), CdrError> {
    match bits & !valid_bits(mask) {
        0 => Ok(()),
        _ => Err(CdrError::UnknownBits { bits, place }),
    }
}

pub(super) fn read_bitset(bitset: &Bitset, reader: &mut Reader<'_>) -> Result<Value, CdrError> {
    let word = read_word(word_size(bits(bitset)), reader)?;
    Ok(Value::Bits(word & field_bits(bitset)))
}
