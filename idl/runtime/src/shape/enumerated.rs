//! `enum`.

use std::marker::PhantomData;

use crate::encode::Encoder;
use crate::error::{CdrError, SamplePosition};
use crate::measure::Measure;
use crate::primitive::Primitive;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// A generated enumeration.
pub trait Enumeration: Copy + Default + 'static {
    /// The wire form: `i8`, `i16` or `i32` by `@bit_bound`.
    type Bits: Primitive + Into<i32>;

    /// The literal with this value, if there is one.
    fn from_bits(bits: Self::Bits) -> Option<Self>;

    /// The wire form.
    fn to_bits(self) -> Self::Bits;
}

/// The shape of a generated enumeration. A value that no literal has is not one of the type,
/// whatever the extensibility of that: it is refused on writing, and on reading `@try_construct`
/// decides (XTypes 1.3 §7.2.4.4.7, table 18).
#[derive(Debug)]
pub struct Enumerated<E>(PhantomData<E>);

/// The literal with this value.
#[inline]
fn literal<T: Enumeration>(bits: T::Bits, place: SamplePosition) -> Result<T, CdrError> {
    T::from_bits(bits).ok_or_else(|| CdrError::UnknownEnumerator {
        value: bits.into(),
        place,
    })
}

impl<T: Enumeration> Shape for Enumerated<T> {
    type Owned = T;
    type Borrowed = T;
    type Shown<'a> = T;
    const SIZE_MIN: usize = T::Bits::SIZE;
    const LENGTH_CODE: LengthCode = LengthCode::of_size(T::Bits::SIZE);

    fn initial() -> T {
        T::default()
    }

    #[inline]
    fn write<E: Encoder>(value: &T, encoder: &mut E) -> Result<(), CdrError> {
        let bits = value.to_bits();
        literal::<T>(bits, SamplePosition::offset(encoder.position()))?;
        encoder.primitive(bits)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<T, CdrError> {
        let place = reader.place();
        literal(reader.primitive()?, place)
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let checked = Self::read(reader).map(|_| ());
        reader.tolerate(checked)
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> T {
        Self::read(reader).unwrap_or_default()
    }

    fn absent<'a>() -> Self::Shown<'a> {
        T::default()
    }

    #[inline]
    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        encoder.primitive(reader.primitive::<T::Bits>()?)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(T::Bits::SIZE, 1);
    }
}
