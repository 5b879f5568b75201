//! `@try_construct` of elements, and the cutting of what is too long.

use std::borrow::Borrow;
use std::marker::PhantomData;

use crate::encode::{AllMembers, Encoder};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// `@try_construct(USE_DEFAULT)` of an element: where there is no value of `S`, its
/// default. (Of a member it is [`Member::USE_DEFAULT`](crate::Member::USE_DEFAULT).)
#[derive(Debug)]
pub struct OrDefault<S>(PhantomData<S>);

impl<S: Shape> OrDefault<S> {
    /// Goes behind what stands at the reader and says whether it is a value of `S`.
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

/// What has a bound to be cut to.
pub trait Trimmable: Shape {
    /// As [`Shape::read`], leaving out what is beyond the bound.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Self::Owned, CdrError>;

    /// As [`Shape::check`], where nothing is too long.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError>;

    /// As [`Shape::show_at`], leaving out what is beyond the bound.
    fn show_trimmed(reader: Reader<'_>) -> Self::Shown<'_>;

    /// As [`Shape::transcribe_key`], leaving out what is beyond the bound.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError>;
}

/// `@try_construct(TRIM)`: what is longer than the bound is cut on reading. Writing
/// refuses it all the same.
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
        // Stops at the first error, and so does whoever reads on.
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
