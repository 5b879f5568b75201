//! `@try_construct` of elements, and the cutting of values that are too long.

use std::borrow::Borrow;
use std::marker::PhantomData;

use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// `@try_construct(USE_DEFAULT)` of an element: the default of `S` replaces a value that is
/// not one of `S`. (For a member it is [`Member::USE_DEFAULT`](crate::Member::USE_DEFAULT).)
#[derive(Debug)]
pub struct OrDefault<S>(PhantomData<S>);

impl<S: Shape> OrDefault<S> {
    /// Skips the value at the reader and returns whether it is one of `S`.
    fn fits(reader: &mut Reader<'_>) -> Result<bool, CdrError> {
        reader
            .fits_or_skip::<S, _>(S::check)
            .map(|fits| fits.is_some())
    }
}

impl<S: Shape> Shape for OrDefault<S> {
    type Owned = S::Owned;
    type Borrowed = S::Borrowed;
    type Shown<'a> = S::Shown<'a>;
    const SIZE_MIN: usize = S::SIZE_MIN;
    const LENGTH_CODE: LengthCode = S::LENGTH_CODE;
    const INITIAL_HEAP: usize = S::INITIAL_HEAP;

    fn initial() -> S::Owned {
        S::initial()
    }

    fn write<E: Encoder>(value: &S::Borrowed, encoder: &mut E) -> Result<(), CdrError> {
        S::write(value, encoder)
    }

    fn write_initial<E>(encoder: &mut E) -> Result<(), CdrError>
    where
        E: Encoder<Selection = AllMembers>,
    {
        S::write_initial(encoder)
    }

    fn read(reader: &mut Reader<'_>) -> Result<S::Owned, CdrError> {
        let value = reader.fits_or_skip::<S, _>(S::read)?;
        Ok(value.unwrap_or_else(S::initial))
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::fits(reader).map(|_| ())
    }

    fn show<'a>(reader: &mut Reader<'a>) -> S::Shown<'a> {
        let start = *reader;
        match Self::fits(reader) {
            Ok(true) => S::show_at(start),
            Ok(false) | Err(_) => S::absent(),
        }
    }

    fn absent<'a>() -> S::Shown<'a> {
        S::absent()
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let mut start = *reader;
        match Self::fits(reader)? {
            true => S::transcribe_key(&mut start, encoder),
            false => S::write(S::initial().borrow(), encoder),
        }
    }

    fn measure(measure: &mut Measure) {
        S::measure(measure);
    }
}

/// A shape with a bound to which values can be cut.
pub trait Trimmable: Shape {
    /// As [`Shape::read`], without the part beyond the bound.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError>;

    /// As [`Shape::check`], without a check of the bound.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError>;

    /// As [`Shape::show_at`], without the part beyond the bound.
    fn show_trimmed(reader: Reader<'_>) -> Self::Shown<'_>;

    /// As [`Shape::transcribe_key`], without the part beyond the bound.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError>;
}

/// `@try_construct(TRIM)`: a value longer than the bound is cut on reading. Writing still
/// refuses it.
#[derive(Debug)]
pub struct Trim<S>(PhantomData<S>);

impl<S: Trimmable> Shape for Trim<S> {
    type Owned = S::Owned;
    type Borrowed = S::Borrowed;
    type Shown<'a> = S::Shown<'a>;
    const SIZE_MIN: usize = S::SIZE_MIN;
    const LENGTH_CODE: LengthCode = S::LENGTH_CODE;
    const INITIAL_HEAP: usize = S::INITIAL_HEAP;

    fn initial() -> S::Owned {
        S::initial()
    }

    fn write<E: Encoder>(value: &S::Borrowed, encoder: &mut E) -> Result<(), CdrError> {
        S::write(value, encoder)
    }

    fn read(reader: &mut Reader<'_>) -> Result<S::Owned, CdrError> {
        S::read_trimmed(reader)
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        S::check_trimmed(reader)
    }

    fn show<'a>(reader: &mut Reader<'a>) -> S::Shown<'a> {
        let shown = S::show_trimmed(*reader);
        // Stops at the first error; the error also ends the enclosing read.
        let _ = S::check_trimmed(reader);
        shown
    }

    fn show_at(reader: Reader<'_>) -> S::Shown<'_> {
        S::show_trimmed(reader)
    }

    fn absent<'a>() -> S::Shown<'a> {
        S::absent()
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        S::transcribe_trimmed(reader, encoder)
    }

    fn measure(measure: &mut Measure) {
        S::measure(measure);
    }
}
