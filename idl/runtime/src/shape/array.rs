//! `T name[N]`. With several dimensions, an [`Array`] of arrays: row-major, without gaps.

use std::array;
use std::borrow::Borrow;
use std::marker::PhantomData;

use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::primitive::Primitive;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};
use crate::view::{ListView, SeqView};

/// An array of elements that are not primitive, or of the rows of an array. Its delimiter in
/// XCDR2 is the task of [`Delimited`](super::Delimited).
#[derive(Debug)]
pub struct Array<T, const N: usize>(PhantomData<T>);

impl<T: Shape, const N: usize> Shape for Array<T, N>
where
    T::Owned: 'static,
{
    type Owned = [T::Owned; N];
    type Borrowed = [T::Owned; N];
    type Shown<'a> = ListView<'a, T>;
    const SIZE_MIN: usize = N.saturating_mul(T::SIZE_MIN);
    const LENGTH_CODE: LengthCode = LengthCode::Next;
    const INITIAL_HEAP: usize = N.saturating_mul(T::INITIAL_HEAP);

    fn initial() -> Self::Owned {
        array::from_fn(|_| T::initial())
    }

    fn write<E: Encoder>(value: &Self::Owned, encoder: &mut E) -> Result<(), CdrError> {
        for element in value {
            T::write(element.borrow(), encoder)?;
        }
        Ok(())
    }

    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        (0..N).try_for_each(|_| T::write_initial(encoder))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        let mut failed = None;
        let elements = array::from_fn(|_| {
            if failed.is_none() {
                match T::read(reader) {
                    Ok(element) => return element,
                    Err(error) => failed = Some(error),
                }
            }
            T::initial()
        });
        failed.map_or(Ok(elements), Err)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        for _ in 0..N {
            T::check(reader)?;
        }
        Ok(())
    }

    fn show<'a>(reader: &mut Reader<'a>) -> ListView<'a, T> {
        let list = Self::show_at(*reader);
        // Stops at the first error; the error also ends the enclosing read.
        let _ = Self::check(reader);
        list
    }

    fn show_at(reader: Reader<'_>) -> ListView<'_, T> {
        ListView::new(reader, N)
    }

    fn absent<'a>() -> ListView<'a, T> {
        ListView::new(Reader::empty(), N)
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        for _ in 0..N {
            T::transcribe_key(reader, encoder)?;
        }
        Ok(())
    }

    fn measure(measure: &mut Measure) {
        measure.repeat::<T>(u32::try_from(N).unwrap_or(super::UNBOUNDED));
    }
}

/// An array of primitives.
#[derive(Debug)]
pub struct PrimitiveArray<P, const N: usize>(PhantomData<P>);

impl<P: Primitive, const N: usize> PrimitiveArray<P, N> {
    #[inline]
    fn slice<'a>(reader: &mut Reader<'a>) -> Result<SeqView<'a, P>, CdrError> {
        Ok(SeqView::new(reader.primitives::<P>(N)?, N, reader.order()))
    }
}

impl<P: Primitive, const N: usize> Shape for PrimitiveArray<P, N> {
    type Owned = [P; N];
    type Borrowed = [P; N];
    type Shown<'a> = SeqView<'a, P>;
    const SIZE_MIN: usize = N.saturating_mul(P::SIZE);
    const LENGTH_CODE: LengthCode = LengthCode::Next;

    fn initial() -> [P; N] {
        [P::default(); N]
    }

    fn write<E: Encoder>(value: &[P; N], encoder: &mut E) -> Result<(), CdrError> {
        encoder.align(P::SIZE)?;
        encoder.primitives(value)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<[P; N], CdrError> {
        let mut elements = Self::initial();
        Self::slice(reader)?.copy_to(&mut elements);
        Ok(elements)
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::slice(reader).map(|_| ())
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> SeqView<'a, P> {
        Self::slice(reader).unwrap_or_else(|_| Self::absent())
    }

    fn absent<'a>() -> SeqView<'a, P> {
        SeqView::empty(N)
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        for element in Self::slice(reader)? {
            encoder.primitive(element)?;
        }
        Ok(())
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(P::SIZE, N);
    }
}

/// An array of `octet`, `uint8` or `char`.
#[derive(Debug)]
pub struct ByteArray<const N: usize>;

impl<const N: usize> ByteArray<N> {
    #[inline]
    fn slice<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8; N], CdrError> {
        let bytes = reader.take(N)?;
        Ok(bytes.first_chunk().unwrap_or(const { &[0; N] }))
    }
}

impl<const N: usize> Shape for ByteArray<N> {
    type Owned = [u8; N];
    type Borrowed = [u8; N];
    type Shown<'a> = &'a [u8; N];
    const SIZE_MIN: usize = N;
    const LENGTH_CODE: LengthCode = LengthCode::Next;

    fn initial() -> [u8; N] {
        [0; N]
    }

    fn write<E: Encoder>(value: &[u8; N], encoder: &mut E) -> Result<(), CdrError> {
        encoder.bytes(value)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<[u8; N], CdrError> {
        Self::slice(reader).copied()
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        reader.take(N).map(|_| ())
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> &'a [u8; N] {
        Self::slice(reader).unwrap_or_else(|_| Self::absent())
    }

    fn absent<'a>() -> &'a [u8; N] {
        const { &[0; N] }
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        encoder.bytes(Self::slice(reader)?)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(1, N);
    }
}
