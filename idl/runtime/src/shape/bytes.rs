//! `sequence<octet>` and `sequence<octet, N>`.

use crate::encode::{Encoder, check_bound};
use crate::error::CdrError;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, PrimitiveSequence, Shape, Trimmable, UNBOUNDED};

/// `sequence<octet>`, and sequences of `uint8` and `char`.
#[derive(Debug)]
pub struct ByteSequence<const N: u32 = UNBOUNDED>;

/// A sequence of plain bytes, which applications can fill in place.
pub trait Bytes: Shape {
    /// Largest number of bytes.
    const BOUND: u32;
}

impl<const N: u32> Bytes for ByteSequence<N> {
    const BOUND: u32 = N;
}

impl<const N: u32> ByteSequence<N> {
    #[inline(always)]
    fn slice<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], CdrError> {
        let count = reader.count(1, N)?;
        reader.take(count)
    }

    fn trimmed<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], CdrError> {
        let (kept, left_out) = reader.count_trimmed(1, N)?;
        let bytes = reader.take(kept)?;
        reader.take(left_out)?;
        Ok(bytes)
    }
}

impl<const N: u32> Shape for ByteSequence<N> {
    type Owned = Vec<u8>;
    type Borrowed = [u8];
    type Shown<'a> = &'a [u8];
    const SIZE_MIN: usize = 4;
    const LENGTH_CODE: LengthCode = LengthCode::of_elements(1);

    fn initial() -> Vec<u8> {
        Vec::new()
    }

    fn write<E: Encoder>(value: &[u8], encoder: &mut E) -> Result<(), CdrError> {
        check_bound(value.len(), N, encoder.position())?;
        encoder.length(value.len())?;
        encoder.bytes(value)
    }

    #[inline(always)]
    fn read(reader: &mut Reader<'_>) -> Result<Vec<u8>, CdrError> {
        Self::slice(reader).map(<[u8]>::to_vec)
    }

    #[inline(always)]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::slice(reader).map(|_| ())
    }

    #[inline(always)]
    fn show<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
        Self::slice(reader).unwrap_or_default()
    }

    fn absent<'a>() -> &'a [u8] {
        &[]
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(Self::slice(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        PrimitiveSequence::<u8, N>::measure(measure);
    }
}

impl<const N: u32> Trimmable for ByteSequence<N> {
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<Vec<u8>, CdrError> {
        Self::trimmed(reader).map(<[u8]>::to_vec)
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::trimmed(reader).map(|_| ())
    }

    fn show_trimmed(mut reader: Reader<'_>) -> &[u8] {
        Self::trimmed(&mut reader).unwrap_or_default()
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(Self::trimmed(reader)?, encoder)
    }
}
