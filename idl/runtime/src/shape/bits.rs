//! `bitmask` and `bitset`, encoded as an unsigned integer of 8, 16, 32 or 64 bits.

use std::fmt;
use std::marker::PhantomData;

use crate::encode::Encoder;
use crate::error::{CdrError, SamplePosition};
use crate::measure::Measure;
use crate::primitive::Primitive;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// A generated bitmask.
pub trait Bitmask: Copy + Default + 'static {
    /// The wire form: `u8`, `u16`, `u32` or `u64` by `@bit_bound`.
    type Word: Primitive + Into<u64>;

    /// The bits that a value may have: those of its flags if it is `@final`, else all below
    /// its bound, because newer versions may have defined them.
    const VALID: Self::Word;

    /// The value with these bits.
    fn from_word(word: Self::Word) -> Self;

    /// The bits.
    fn to_word(self) -> Self::Word;
}

/// The shape of a generated bitmask.
#[derive(Debug)]
pub struct Flags<M>(PhantomData<M>);

impl<M: Bitmask> Flags<M> {
    fn checked(value: M, offset: usize) -> Result<M::Word, CdrError> {
        let bits = value.to_word().into();
        match bits & !M::VALID.into() {
            0 => Ok(value.to_word()),
            _ => Err(CdrError::UnknownBits {
                bits,
                place: SamplePosition::offset(offset),
            }),
        }
    }
}

impl<M: Bitmask> Shape for Flags<M> {
    type Owned = M;
    type Borrowed = M;
    type Shown<'a> = M;
    const SIZE_MIN: usize = M::Word::SIZE;
    const LENGTH_CODE: LengthCode = LengthCode::of_size(M::Word::SIZE);

    fn initial() -> M {
        M::default()
    }

    #[inline]
    fn write<E: Encoder>(value: &M, encoder: &mut E) -> Result<(), CdrError> {
        encoder.primitive(Self::checked(*value, encoder.position())?)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<M, CdrError> {
        let place = reader.place();
        let value = M::from_word(reader.primitive()?);
        Self::checked(value, place.offset)?;
        Ok(value)
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let checked = Self::read(reader).map(|_| ());
        reader.tolerate(checked)
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> M {
        Self::read(reader).unwrap_or_default()
    }

    fn absent<'a>() -> Self::Shown<'a> {
        M::default()
    }

    #[inline]
    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        encoder.primitive(reader.primitive::<M::Word>()?)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(M::Word::SIZE, 1);
    }
}

/// The bitmask with these bits.
///
/// # Errors
/// [`CdrError::UnknownBits`] when some are not [`Bitmask::VALID`]; `path` is its name.
pub fn bitmask_from<M: Bitmask>(word: M::Word, path: &'static str) -> Result<M, CdrError> {
    let value = M::from_word(word);
    Flags::checked(value, 0).map_err(|error| error.in_member(path))?;
    Ok(value)
}

/// Shows a bitmask by the names of its flags; other bits are shown as a number.
///
/// # Errors
/// Those of the formatter.
pub fn debug_flags(
    f: &mut fmt::Formatter<'_>,
    bits: u64,
    flags: &[(&'static str, u64)],
) -> fmt::Result {
    let mut separator = "";
    let mut rest = bits;
    for (name, mask) in flags.iter().filter(|(_, mask)| bits & mask == *mask) {
        write!(f, "{separator}{name}")?;
        separator = " | ";
        rest &= !mask;
    }
    match (rest, separator) {
        (0, "") => f.write_str("0"),
        (0, _) => Ok(()),
        _ => write!(f, "{separator}{rest:#x}"),
    }
}

/// A generated bitset: fields packed from the least significant bit on.
pub trait Bitset: Copy + Default + 'static {
    /// The wire form: `u8`, `u16`, `u32` or `u64` by the total number of bits.
    type Word: Primitive;

    /// The fields packed by [`BitField`]s; bits between them are 0.
    ///
    /// # Errors
    /// [`CdrError::BitFieldExceeded`].
    fn to_word(self) -> Result<Self::Word, CdrError>;

    /// The unpacked fields; bits between them are ignored.
    fn from_word(word: Self::Word) -> Self;
}

/// The position of a field of a bitset.
#[derive(Debug, Clone, Copy)]
pub struct BitField {
    /// `module::Type.field`, for errors.
    pub path: &'static str,
    /// Its least significant bit.
    pub offset: u8,
    /// Number of bits; `offset + bits` is 1 to 64.
    pub bits: u8,
}

impl BitField {
    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    const fn exceeded(self) -> CdrError {
        CdrError::BitFieldExceeded {
            bits: self.bits,
            place: SamplePosition {
                offset: 0,
                member: self.path,
            },
        }
    }

    /// The bits of an unsigned value, shifted to the field.
    ///
    /// # Errors
    /// [`CdrError::BitFieldExceeded`].
    pub const fn unsigned(self, value: u64) -> Result<u64, CdrError> {
        if value & !self.mask() == 0 {
            Ok(value << self.offset)
        } else {
            Err(self.exceeded())
        }
    }

    /// The bits of a signed value in two's complement, shifted to the field.
    ///
    /// # Errors
    /// [`CdrError::BitFieldExceeded`].
    pub const fn signed(self, value: i64) -> Result<u64, CdrError> {
        let bits = value as u64 & self.mask();
        if self.extended(bits) == value {
            Ok(bits << self.offset)
        } else {
            Err(self.exceeded())
        }
    }

    /// The unsigned value in a word.
    pub const fn unsigned_of(self, word: u64) -> u64 {
        word >> self.offset & self.mask()
    }

    /// The signed value in a word.
    pub const fn signed_of(self, word: u64) -> i64 {
        self.extended(self.unsigned_of(word))
    }

    /// The value whose two's complement these bits are.
    const fn extended(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        (bits << unused) as i64 >> unused
    }
}

/// The shape of a generated bitset.
#[derive(Debug)]
pub struct Packed<B>(PhantomData<B>);

impl<B: Bitset> Shape for Packed<B> {
    type Owned = B;
    type Borrowed = B;
    type Shown<'a> = B;
    const SIZE_MIN: usize = B::Word::SIZE;
    const LENGTH_CODE: LengthCode = LengthCode::of_size(B::Word::SIZE);

    fn initial() -> B {
        B::default()
    }

    #[inline]
    fn write<E: Encoder>(value: &B, encoder: &mut E) -> Result<(), CdrError> {
        match value.to_word() {
            Ok(word) => encoder.primitive(word),
            Err(error) => Err(error.at(encoder.position())),
        }
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<B, CdrError> {
        reader.primitive().map(B::from_word)
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        reader.primitives::<B::Word>(1).map(|_| ())
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> B {
        Self::read(reader).unwrap_or_default()
    }

    fn absent<'a>() -> Self::Shown<'a> {
        B::default()
    }

    /// Writes the canonical form: bits between the fields are not part of the value.
    #[inline]
    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(&Self::read(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(B::Word::SIZE, 1);
    }
}

#[cfg(feature = "serde")]
crate::serde_as_it_is! {
    [T: Bitmask + serde::Serialize + for<'d> serde::Deserialize<'d>] Flags<T>,
    [T: Bitset + serde::Serialize + for<'d> serde::Deserialize<'d>] Packed<T>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: BitField = BitField {
        path: "m::B.field",
        offset: 3,
        bits: 5,
    };
    const ALL: BitField = BitField {
        path: "m::B.all",
        offset: 0,
        bits: 64,
    };

    #[test]
    fn unsigned_fields() {
        assert_eq!(FIELD.unsigned(31), Ok(31 << 3));
        assert_eq!(FIELD.unsigned_of(u64::MAX), 31);
        assert_eq!(FIELD.unsigned_of(7 | 1 << 8), 0);
        let error = FIELD.unsigned(32).expect_err("takes six bits");
        let place = SamplePosition {
            offset: 0,
            member: "m::B.field",
        };
        assert_eq!(error, CdrError::BitFieldExceeded { bits: 5, place });
        assert_eq!(ALL.unsigned(u64::MAX), Ok(u64::MAX));
        assert_eq!(ALL.unsigned_of(u64::MAX), u64::MAX);
    }

    #[test]
    fn signed_fields() {
        for value in -16..16 {
            let word = FIELD.signed(value).expect("fits");
            assert_eq!(word & !(31 << 3), 0);
            assert_eq!(FIELD.signed_of(word | 7), value);
        }
        assert!(FIELD.signed(16).is_err());
        assert!(FIELD.signed(-17).is_err());
        assert_eq!(
            ALL.signed(i64::MIN).map(|word| ALL.signed_of(word)),
            Ok(i64::MIN)
        );
    }
}
