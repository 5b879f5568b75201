//! `@optional`.

use std::borrow::Borrow;
use std::marker::PhantomData;

use crate::encode::Encoder;
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// A value that may be absent. Only members are optional; the code for members encodes the
/// mark of presence, this shape the value after it.
#[derive(Debug)]
pub struct Optional<S>(PhantomData<S>);

impl<S: Shape> Shape for Optional<S> {
    type Owned = Option<S::Owned>;
    type Borrowed = Option<S::Owned>;
    type Shown<'a> = Option<S::Shown<'a>>;
    /// The flag of XCDR2.
    const SIZE_MIN: usize = 1;
    const LENGTH_CODE: LengthCode = S::LENGTH_CODE;
    const OPTIONAL: bool = true;

    fn initial() -> Self::Owned {
        None
    }

    #[inline]
    fn is_present(value: &Self::Borrowed) -> bool {
        value.is_some()
    }

    fn write<E: Encoder>(value: &Self::Borrowed, encoder: &mut E) -> Result<(), CdrError> {
        match value {
            Some(value) => S::write(value.borrow(), encoder),
            None => Ok(()),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        S::read(reader).map(Some)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        S::check(reader)
    }

    fn show<'a>(reader: &mut Reader<'a>) -> Self::Shown<'a> {
        Some(S::show(reader))
    }

    fn show_at(reader: Reader<'_>) -> Self::Shown<'_> {
        Some(S::show_at(reader))
    }

    fn absent<'a>() -> Self::Shown<'a> {
        None
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        S::transcribe_key(reader, encoder)
    }

    fn measure(measure: &mut Measure) {
        S::measure(measure);
    }
}
