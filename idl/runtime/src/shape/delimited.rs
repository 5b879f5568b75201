//! The delimiter of XCDR2 before collections whose elements are not primitive.

use std::marker::PhantomData;

use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable};

/// In XCDR2 a length in bytes, then the collection; in XCDR1 only the collection.
#[derive(Debug)]
pub struct Delimited<S>(PhantomData<S>);

impl<S: Shape> Shape for Delimited<S> {
    type Owned = S::Owned;
    type Borrowed = S::Borrowed;
    type Shown<'a> = S::Shown<'a>;
    const SIZE_MIN: usize = if S::SIZE_MIN < 4 { S::SIZE_MIN } else { 4 };
    const LENGTH_CODE: LengthCode = LengthCode::Shared(5);
    const INITIAL_HEAP: usize = S::INITIAL_HEAP;

    fn initial() -> S::Owned {
        S::initial()
    }

    fn write<E: Encoder>(value: &S::Borrowed, encoder: &mut E) -> Result<(), CdrError> {
        let open = encoder.begin_collection(|counter| S::write(value, counter))?;
        S::write(value, encoder)?;
        encoder.end(open)
    }

    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        let open = encoder.begin_collection(|counter| S::write_initial(counter))?;
        S::write_initial(encoder)?;
        encoder.end(open)
    }

    fn read(reader: &mut Reader<'_>) -> Result<S::Owned, CdrError> {
        let scope = reader.begin_collection()?;
        let value = S::read(reader)?;
        reader.end(scope);
        Ok(value)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let scope = reader.begin_collection()?;
        S::check(reader)?;
        reader.end(scope);
        Ok(())
    }

    fn show<'a>(reader: &mut Reader<'a>) -> S::Shown<'a> {
        let Ok(scope) = reader.begin_collection() else {
            return S::absent();
        };
        let view = S::show(reader);
        reader.end(scope);
        view
    }

    fn show_at(mut reader: Reader<'_>) -> S::Shown<'_> {
        match reader.begin_collection() {
            Ok(_scope) => S::show_at(reader),
            Err(_) => S::absent(),
        }
    }

    fn absent<'a>() -> S::Shown<'a> {
        S::absent()
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let scope = reader.begin_collection()?;
        let mut ahead = *reader;
        let open = encoder.begin_collection(|counter| S::transcribe_key(&mut ahead, counter))?;
        S::transcribe_key(reader, encoder)?;
        reader.end(scope);
        encoder.end(open)
    }

    fn measure(measure: &mut Measure) {
        measure.collection();
        S::measure(measure);
    }
}

impl<S: Trimmable> Trimmable for Delimited<S> {
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<S::Owned, CdrError> {
        let scope = reader.begin_collection()?;
        let value = S::read_trimmed(reader)?;
        reader.end(scope);
        Ok(value)
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let scope = reader.begin_collection()?;
        S::check_trimmed(reader)?;
        reader.end(scope);
        Ok(())
    }

    fn show_trimmed(mut reader: Reader<'_>) -> S::Shown<'_> {
        match reader.begin_collection() {
            Ok(_scope) => S::show_trimmed(reader),
            Err(_) => S::absent(),
        }
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let scope = reader.begin_collection()?;
        let mut ahead = *reader;
        let open =
            encoder.begin_collection(|counter| S::transcribe_trimmed(&mut ahead, counter))?;
        S::transcribe_trimmed(reader, encoder)?;
        reader.end(scope);
        encoder.end(open)
    }
}
