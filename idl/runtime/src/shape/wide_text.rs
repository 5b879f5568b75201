//! `wstring` and `wstring<N>`.

use crate::encode::{Encoder, check_bound};
use crate::error::{CdrError, SamplePosition};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape, Trimmable, UNBOUNDED};
use crate::wide_view::WideView;

/// A string of at most `N` UTF-16 units: a length in bytes, then the units in the byte
/// order of the sample; no terminator, no byte order mark. The same in both
/// representations, as in Cyclone DDS and OpenDDS.
#[derive(Debug)]
pub struct WideText<const N: u32 = UNBOUNDED>;

/// Bytes of a unit.
const UNIT: usize = 2;

impl<const N: u32> WideText<N> {
    /// The text, of any length.
    fn whole<'a>(reader: &mut Reader<'a>) -> Result<WideView<'a>, CdrError> {
        let place = reader.place();
        let length = reader.primitive::<u32>()? as usize;
        let bytes = reader.take(length)?;
        let view = WideView::new(bytes, reader.order());
        let mut has_nul = false;
        for unit in char::decode_utf16(view.units()) {
            match unit {
                Ok(unit) => has_nul |= unit == '\0',
                Err(_) => return Err(CdrError::InvalidUtf16 { place }),
            }
        }
        if !length.is_multiple_of(UNIT) {
            return Err(CdrError::InvalidUtf16 { place });
        }
        if has_nul {
            return Err(CdrError::EmbeddedNul { place });
        }
        Ok(view)
    }

    fn slice<'a>(reader: &mut Reader<'a>) -> Result<WideView<'a>, CdrError> {
        let place = reader.place();
        let view = Self::whole(reader)?;
        reader.check_bound(view.units_len(), N, place.offset)?;
        Ok(view)
    }

    fn trimmed<'a>(reader: &mut Reader<'a>) -> Result<WideView<'a>, CdrError> {
        Self::whole(reader).map(|view| view.cut(N as usize))
    }

    fn write_units<E: Encoder>(
        count: usize,
        units: impl Iterator<Item = u16>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        check_bound(count, N, encoder.position())?;
        encoder.length(count.saturating_mul(UNIT))?;
        for unit in units {
            encoder.primitives(&[unit])?;
        }
        Ok(())
    }
}

impl<const N: u32> Shape for WideText<N> {
    type Owned = String;
    type Borrowed = str;
    type Shown<'a> = WideView<'a>;
    const SIZE_MIN: usize = 4;
    const LENGTH_CODE: LengthCode = LengthCode::Shared(5);

    fn initial() -> String {
        String::new()
    }

    fn write<E: Encoder>(value: &str, encoder: &mut E) -> Result<(), CdrError> {
        if value.contains('\0') {
            return Err(CdrError::EmbeddedNul {
                place: SamplePosition::offset(encoder.position()),
            });
        }
        Self::write_units(value.encode_utf16().count(), value.encode_utf16(), encoder)
    }

    fn read(reader: &mut Reader<'_>) -> Result<String, CdrError> {
        Self::slice(reader).map(|text| text.to_string())
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::slice(reader).map(|_| ())
    }

    fn show<'a>(reader: &mut Reader<'a>) -> WideView<'a> {
        Self::slice(reader).unwrap_or_default()
    }

    fn absent<'a>() -> WideView<'a> {
        WideView::default()
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let text = Self::slice(reader)?;
        Self::write_units(text.units_len(), text.units(), encoder)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(4, 1);
        measure.bounded(UNIT, N, 0);
    }
}

impl<const N: u32> Trimmable for WideText<N> {
    fn read_trimmed(reader: &mut Reader<'_>) -> Result<String, CdrError> {
        Self::trimmed(reader).map(|text| text.to_string())
    }

    fn check_trimmed(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::whole(reader).map(|_| ())
    }

    fn show_trimmed(mut reader: Reader<'_>) -> WideView<'_> {
        Self::trimmed(&mut reader).unwrap_or_default()
    }

    fn transcribe_trimmed<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        let text = Self::trimmed(reader)?;
        Self::write_units(text.units_len(), text.units(), encoder)
    }
}
