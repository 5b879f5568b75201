//! `string` and `string<N>`.

use crate::encode::{Encoder, check_bound};
use crate::error::{CdrError, SamplePosition};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable, UNBOUNDED};

/// A string of at most `N` bytes: a length that counts the NUL, UTF-8, NUL.
#[derive(Debug)]
pub struct Text<const N: u32 = UNBOUNDED>;

impl<const N: u32> Text<N> {
    /// The text, of any length.
    #[inline(always)]
    fn whole<'a>(reader: &mut Reader<'a>) -> Result<&'a str, CdrError> {
        let offset = reader.position();
        let length = reader.primitive::<u32>()? as usize;
        let bytes = reader.take(length)?;
        text_of(bytes).ok_or_else(|| no_text(bytes, offset))
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
        if has_nul(value.as_bytes()) {
            return Err(CdrError::EmbeddedNul {
                place: SamplePosition::offset(encoder.position()),
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

/// The text in these bytes, which end with their only NUL. Takes no reader and returns no
/// details, so that readers and results can stay in registers.
#[inline(never)]
fn text_of(bytes: &[u8]) -> Option<&str> {
    let (0, text) = bytes.split_last()? else {
        return None;
    };
    if has_nul(text) {
        return None;
    }
    std::str::from_utf8(text).ok()
}

/// Whether there is a NUL. Most text is short, so this searches eight bytes at a time,
/// without a call.
#[inline]
fn has_nul(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let (words, rest) = text.as_chunks::<8>();
    let in_words = words.iter().any(|word| {
        let word = u64::from_ne_bytes(*word);
        // Non-zero if and only if one of its bytes is 0.
        word.wrapping_sub(ONES) & !word & HIGHS != 0
    });
    in_words || rest.contains(&0)
}

/// The fault of these bytes; the length of the string is at `offset`.
#[cold]
#[inline(never)]
fn no_text(bytes: &[u8], offset: u32) -> CdrError {
    let place = SamplePosition::offset(offset as usize);
    match bytes.split_last() {
        Some((0, text)) if text.contains(&0) => CdrError::EmbeddedNul { place },
        Some((0, _)) => CdrError::InvalidUtf8 { place },
        _ => CdrError::InvalidStringTerminator { place },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_found_wherever_it_is() {
        for length in 0..40 {
            for other in [0x01, 0x7f, 0x80, 0x81, 0xff] {
                let mut text = vec![other; length];
                assert!(!has_nul(&text), "{other:#x} {length} times");
                for index in 0..length {
                    text[index] = 0;
                    assert!(has_nul(&text), "at {index} of {length}");
                    text[index] = other;
                }
            }
        }
    }

    #[test]
    fn text_ends_in_its_only_nul_and_is_utf_8() {
        let place = SamplePosition::offset(4);
        let check = |bytes: &'static [u8], expected: Result<&str, CdrError>| {
            let read = text_of(bytes).ok_or_else(|| no_text(bytes, 4));
            assert_eq!(read, expected, "{bytes:02x?}");
        };
        check(b"\0", Ok(""));
        check("EDDF-1 h\u{f6}her\0".as_bytes(), Ok("EDDF-1 h\u{f6}her"));
        check(b"", Err(CdrError::InvalidStringTerminator { place }));
        check(b"EDDF", Err(CdrError::InvalidStringTerminator { place }));
        check(b"ED\0F\0", Err(CdrError::EmbeddedNul { place }));
        check(b"EDDF-123\0\0", Err(CdrError::EmbeddedNul { place }));
        check(b"ED\xc3\0", Err(CdrError::InvalidUtf8 { place }));
        check(b"ED\0\xc3\0", Err(CdrError::EmbeddedNul { place }));
    }
}
