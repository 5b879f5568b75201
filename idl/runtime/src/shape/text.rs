//! `string` and `string<N>`.

use crate::encode::{Encoder, check_bound};
use crate::error::{CdrError, Place};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable, UNBOUNDED};

/// A string of at most `N` bytes: a length that counts the NUL, UTF-8, NUL.
#[derive(Debug)]
pub struct Text<const N: u32 = UNBOUNDED>;

impl<const N: u32> Text<N> {
    /// The text, however long.
    #[inline(always)]
    fn whole<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CdrError> {
        let offset = reader.position();
        let length = reader.primitive::<u32>()? as usize;
        text_of(reader.take(length)?, offset)
    }

    #[inline(always)]
    fn slice<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CdrError> {
        let offset = reader.position();
        let text = Self::whole(reader)?;
        reader.check_bound(text.len(), N, offset as usize)?;
        Ok(text)
    }

    fn trimmed<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CdrError> {
        let text = Self::whole(reader)?;
        let end = text.floor_char_boundary(N as usize);
        Ok(text.get(..end).unwrap_or_default())
    }
}

impl<const N: u32> Shape for Text<N> {
    type Owned = String;
    type Borrowed = str;
    type Shown<'a> = &'a str;
    const SIZE_MIN: usize = 5;
    const LENGTH_CODE: LengthCode = LengthCode::Shared(5);

    fn initial() -> String {
        String::new()
    }

    fn write<E: Encoder>(value: &str, encoder: &mut E) -> Result<(), CdrError> {
        check_bound(value.len(), N, encoder.position())?;
        if value.as_bytes().contains(&0) {
            return Err(CdrError::EmbeddedNul {
                place: Place::offset(encoder.position()),
            });
        }
        encoder.length(value.len() + 1)?;
        encoder.bytes(value.as_bytes())?;
        encoder.zeros(1)
    }

    #[inline(always)]
    fn read(reader: &mut Reader<'_>) -> Result<String, CdrError> {
        Self::slice(reader).map(str::to_owned)
    }

    #[inline(always)]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::slice(reader).map(|_| ())
    }

    #[inline(always)]
    fn show<'a>(reader: &mut Reader<'a>) -> &'a str {
        Self::slice(reader).unwrap_or_default()
    }

    fn absent<'a>() -> &'a str {
        ""
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(Self::slice(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(4, 1);
        measure.bounded(1, N, 1);
    }
}

impl<const N: u32> Trimmable for Text<N> {
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<String, CdrError> {
        Self::trimmed(reader).map(str::to_owned)
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::whole(reader).map(|_| ())
    }

    fn show_trimmed(mut reader: Reader<'_>) -> &str {
        Self::trimmed(&mut reader).unwrap_or_default()
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(Self::trimmed(reader)?, encoder)
    }
}

/// The text in these bytes, which end in NUL; its length stands at `offset`. Takes no
/// reader, so that readers can live in registers.
#[inline(never)]
fn text_of(bytes: &[u8], offset: u32) -> Result<&str, CdrError> {
    let place = Place::offset(offset as usize);
    let Some((0, text)) = bytes.split_last() else {
        return Err(CdrError::InvalidStringTerminator { place });
    };
    if text.contains(&0) {
        return Err(CdrError::EmbeddedNul { place });
    }
    std::str::from_utf8(text).map_err(|_| CdrError::InvalidUtf8 { place })
}
