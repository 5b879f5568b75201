//! `@external`, and members through which a type contains itself.

use std::borrow::Borrow;
use std::marker::PhantomData;

use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// A value behind a pointer, encoded like the value itself. The structures inside count the
/// depth, this shape counts the memory.
#[derive(Debug)]
pub struct Boxed<S>(PhantomData<S>);

impl<S: Shape> Shape for Boxed<S>
where
    S::Owned: 'static,
{
    type Owned = Box<S::Owned>;
    type Borrowed = S::Owned;
    type Shown<'a> = S::Shown<'a>;
    const SIZE_MIN: usize = S::SIZE_MIN;
    const LENGTH_CODE: LengthCode = S::LENGTH_CODE;
    const INITIAL_HEAP: usize = size_of::<S::Owned>().saturating_add(S::INITIAL_HEAP);

    fn initial() -> Self::Owned {
        Box::new(S::initial())
    }

    fn write<E: Encoder>(value: &S::Owned, encoder: &mut E) -> Result<(), CdrError> {
        S::write(value.borrow(), encoder)
    }

    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        S::write_initial(encoder)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError> {
        reader.spend(Self::INITIAL_HEAP)?;
        S::read(reader).map(Box::new)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        S::check(reader)
    }

    fn show<'a>(reader: &mut Reader<'a>) -> Self::Shown<'a> {
        S::show(reader)
    }

    fn show_at(reader: Reader<'_>) -> Self::Shown<'_> {
        S::show_at(reader)
    }

    fn absent<'a>() -> Self::Shown<'a> {
        S::absent()
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
