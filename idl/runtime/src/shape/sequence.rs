//! `sequence<T>` and `sequence<T, N>`.

use std::marker::PhantomData;

use crate::encode::{Encoder, check_bound};
use crate::error::CdrError;
use crate::limits::RESERVE_BYTES_MAX;
use crate::measure::Measure;
use crate::primitive::Primitive;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable, UNBOUNDED};
use crate::view::{ListView, SeqView};

/// A sequence of elements that are not primitive: a count, then the elements. Its delimiter
/// in XCDR2 is the task of [`Delimited`](super::Delimited).
#[derive(Debug)]
pub struct Sequence<T, const N: u32 = UNBOUNDED>(PhantomData<T>);

impl<T: Shape, const N: u32> Sequence<T, N> {
    /// Reads `count` elements.
    fn elements(reader: &mut Reader<'_>, count: usize) -> Result<Vec<T::Owned>, CdrError> {
        if let Some(elements) = T::read_whole(reader, count) {
            return Ok(elements);
        }
        let reserve_max = RESERVE_BYTES_MAX / size_of::<T::Owned>().max(1);
        let mut elements = Vec::with_capacity(count.min(reserve_max));
        // A local cursor, which can stay in registers.
        let mut cursor = *reader;
        let mut outcome = Ok(());
        for _ in 0..count {
            let spent = cursor.spend(size_of::<T::Owned>().saturating_add(T::INITIAL_HEAP));
            match spent.and_then(|()| T::read(&mut cursor)) {
                Ok(element) => elements.push(element),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        *reader = cursor;
        outcome.map(|()| elements)
    }

    fn check_elements(reader: &mut Reader<'_>, count: usize) -> Result<(), CdrError> {
        if T::pass_whole(reader, count) {
            return Ok(());
        }
        let mut cursor = *reader;
        for _ in 0..count {
            T::check(&mut cursor)?;
        }
        *reader = cursor;
        Ok(())
    }

    fn transcribe_elements<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
        count: usize,
    ) -> Result<(), CdrError> {
        encoder.length(count)?;
        for _ in 0..count {
            T::transcribe_key(reader, encoder)?;
        }
        Ok(())
    }
}

impl<T: Shape, const N: u32> Shape for Sequence<T, N>
where
    T::Owned: 'static,
{
    type Owned = Vec<T::Owned>;
    type Borrowed = [T::Owned];
    type Shown<'a> = ListView<'a, T>;
    const SIZE_MIN: usize = 4;
    const LENGTH_CODE: LengthCode = LengthCode::Next;

    fn initial() -> Self::Owned {
        Vec::new()
    }

    fn write<E: Encoder>(value: &[T::Owned], encoder: &mut E) -> Result<(), CdrError> {
        check_bound(value.len(), N, encoder.position())?;
        encoder.length(value.len())?;
        T::write_all(value, encoder)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        let count = reader.count(T::SIZE_MIN, N)?;
        Self::elements(reader, count)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let count = reader.count(T::SIZE_MIN, N)?;
        Self::check_elements(reader, count)
    }

    fn show<'a>(reader: &mut Reader<'a>) -> ListView<'a, T> {
        let list = Self::show_at(*reader);
        // Stops at the first error; the error also ends the enclosing read.
        let _ = Self::check(reader);
        list
    }

    fn show_at(mut reader: Reader<'_>) -> ListView<'_, T> {
        match reader.count(T::SIZE_MIN, N) {
            Ok(count) => ListView::new(reader, count),
            Err(_) => ListView::new(Reader::empty(), 0),
        }
    }

    fn absent<'a>() -> ListView<'a, T> {
        ListView::new(Reader::empty(), 0)
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let count = reader.count(T::SIZE_MIN, N)?;
        Self::transcribe_elements(reader, encoder, count)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(4, 1);
        measure.repeat::<T>(N);
    }
}

impl<T: Shape, const N: u32> Trimmable for Sequence<T, N>
where
    T::Owned: 'static,
{
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Vec<T::Owned>, CdrError> {
        let (kept, left_out) = reader.count_trimmed(T::SIZE_MIN, N)?;
        let elements = Self::elements(reader, kept)?;
        reader.skip::<T>(left_out)?;
        Ok(elements)
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let (kept, left_out) = reader.count_trimmed(T::SIZE_MIN, N)?;
        Self::check_elements(reader, kept)?;
        reader.skip::<T>(left_out)
    }

    fn show_trimmed(mut reader: Reader<'_>) -> ListView<'_, T> {
        match reader.count_trimmed(T::SIZE_MIN, N) {
            Ok((kept, _)) => ListView::new(reader, kept),
            Err(_) => Self::absent(),
        }
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let (kept, left_out) = reader.count_trimmed(T::SIZE_MIN, N)?;
        Self::transcribe_elements(reader, encoder, kept)?;
        reader.skip::<T>(left_out)
    }
}

/// A sequence of primitives: a count, then the elements without gaps.
#[derive(Debug)]
pub struct PrimitiveSequence<P, const N: u32 = UNBOUNDED>(PhantomData<P>);

impl<P: Primitive, const N: u32> PrimitiveSequence<P, N> {
    #[inline(always)]
    fn slice<'a>(reader: &mut Reader<'a>) -> Result<SeqView<'a, P>, CdrError> {
        let count = reader.count(P::SIZE, N)?;
        Ok(SeqView::new(
            reader.primitives::<P>(count)?,
            count,
            reader.order(),
        ))
    }

    fn trimmed<'a>(reader: &mut Reader<'a>) -> Result<SeqView<'a, P>, CdrError> {
        let (kept, left_out) = reader.count_trimmed(P::SIZE, N)?;
        let elements = reader.primitives::<P>(kept)?;
        reader.take(left_out.saturating_mul(P::SIZE))?;
        Ok(SeqView::new(elements, kept, reader.order()))
    }

    fn transcribe<E: Encoder>(elements: SeqView<'_, P>, encoder: &mut E) -> Result<(), CdrError> {
        encoder.length(elements.len())?;
        for element in elements {
            encoder.primitive(element)?;
        }
        Ok(())
    }
}

impl<P: Primitive, const N: u32> Shape for PrimitiveSequence<P, N> {
    type Owned = Vec<P>;
    type Borrowed = [P];
    type Shown<'a> = SeqView<'a, P>;
    const SIZE_MIN: usize = 4;
    const LENGTH_CODE: LengthCode = LengthCode::of_elements(P::SIZE);

    fn initial() -> Vec<P> {
        Vec::new()
    }

    fn write<E: Encoder>(value: &[P], encoder: &mut E) -> Result<(), CdrError> {
        check_bound(value.len(), N, encoder.position())?;
        encoder.length(value.len())?;
        if value.is_empty() {
            return Ok(());
        }
        encoder.align(P::SIZE)?;
        encoder.primitives(value)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Vec<P>, CdrError> {
        Self::slice(reader).map(|elements| elements.to_vec())
    }

    #[inline(always)]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::slice(reader).map(|_| ())
    }

    #[inline]
    fn show<'a>(reader: &mut Reader<'a>) -> SeqView<'a, P> {
        Self::slice(reader).unwrap_or_else(|_| Self::absent())
    }

    fn absent<'a>() -> SeqView<'a, P> {
        SeqView::empty(0)
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::transcribe(Self::slice(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(4, 1);
        measure.bounded(P::SIZE, N, 0);
    }
}

impl<P: Primitive, const N: u32> Trimmable for PrimitiveSequence<P, N> {
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Vec<P>, CdrError> {
        Self::trimmed(reader).map(|elements| elements.to_vec())
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::trimmed(reader).map(|_| ())
    }

    fn show_trimmed(mut reader: Reader<'_>) -> SeqView<'_, P> {
        Self::trimmed(&mut reader).unwrap_or_else(|_| Self::absent())
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::transcribe(Self::trimmed(reader)?, encoder)
    }
}
