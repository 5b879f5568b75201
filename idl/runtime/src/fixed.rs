//! `fixed<D, S>`: decimal numbers of a fixed scale.

use std::fmt;
use std::str::FromStr;

use crate::encode::Encoder;
use crate::error::{CdrError, SamplePosition};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Limited, Shape, float_out_of_range};

/// A number of at most `D` decimal digits, `S` of them after the point: an integer
/// times ten to the power of `-S`. It has no arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fixed<const D: u8, const S: u8>(i128);

/// The reason why text or a number is not a [`Fixed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FixedError {
    /// More digits than the type has before the point.
    #[error("more than {digits} digits with {scale} behind the point")]
    TooLarge {
        /// Digits of the type.
        digits: u8,
        /// How many of them are after the point.
        scale: u8,
    },
    /// More digits after the point than the type has.
    #[error("more than {scale} digits behind the point")]
    TooPrecise {
        /// Digits after the point.
        scale: u8,
    },
    /// Not a number.
    #[error("not a decimal number")]
    Invalid,
}

/// Sign of non-negative numbers, in the last half of the last byte.
const POSITIVE: u8 = 0xc;
/// Sign of negative numbers.
const NEGATIVE: u8 = 0xd;
/// Bytes of 31 digits and a sign.
const BYTES_MAX: usize = 16;

impl<const D: u8, const S: u8> Fixed<D, S> {
    /// The least number of digits that are too many.
    const BEYOND: i128 = 10_i128.saturating_pow(D as u32);
    /// Two digits per byte; the sign takes the place of one.
    const BYTES: usize = {
        assert!(1 <= D && D <= 31 && S <= D, "IDL has no such type");
        D as usize / 2 + 1
    };
    /// 0.
    pub const ZERO: Self = Self(0);

    /// `unscaled` times ten to the power of `-S`; `None` when it has too many digits.
    pub const fn new(unscaled: i128) -> Option<Self> {
        if unscaled > -Self::BEYOND && unscaled < Self::BEYOND {
            Some(Self(unscaled))
        } else {
            None
        }
    }

    /// As [`new`](Self::new), or the nearest number of the same sign.
    pub const fn saturating(unscaled: i128) -> Self {
        match Self::new(unscaled) {
            Some(value) => value,
            None if unscaled < 0 => Self(1 - Self::BEYOND),
            None => Self(Self::BEYOND - 1),
        }
    }

    /// The number times ten to the power of `S`.
    pub const fn unscaled(self) -> i128 {
        self.0
    }

    /// The nearest `f64` or one adjacent to it.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 10_f64.powi(i32::from(S))
    }

    const fn too_large() -> FixedError {
        FixedError::TooLarge {
            digits: D,
            scale: S,
        }
    }

    /// The binary coded decimals, at the end of the array.
    fn to_decimals(self) -> [u8; BYTES_MAX] {
        let mut decimals = [0; BYTES_MAX];
        let mut rest = self.0.unsigned_abs();
        let mut low = if self.0 < 0 { NEGATIVE } else { POSITIVE };
        for byte in decimals.iter_mut().rev() {
            let high = (rest % 10) as u8;
            *byte = high << 4 | low;
            low = (rest / 10 % 10) as u8;
            rest /= 100;
        }
        decimals
    }

    fn from_decimals(decimals: &[u8]) -> Option<Self> {
        let (last, front) = decimals.split_last()?;
        let mut unscaled: i128 = 0;
        let mut push = |digit: u8| {
            unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(digit))?;
            (digit <= 9).then_some(())
        };
        for byte in front {
            push(byte >> 4)?;
            push(byte & 0xf)?;
        }
        push(last >> 4)?;
        match last & 0xf {
            POSITIVE => Self::new(unscaled),
            NEGATIVE => Self::new(-unscaled),
            _ => None,
        }
    }
}

impl<const D: u8, const S: u8> Limited for Fixed<D, S> {
    fn to_limit(self) -> Option<i128> {
        Some(self.0)
    }

    fn from_limit(limit: i128) -> Self {
        Self::saturating(limit)
    }

    fn out_of_range(self, limit: Self, place: SamplePosition) -> CdrError {
        let one = 10_f64.powi(i32::from(S));
        float_out_of_range(self.0 as f64 / one, limit.0 as f64 / one, place)
    }
}

impl<const D: u8, const S: u8> fmt::Display for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u128.saturating_pow(u32::from(S));
        let magnitude = self.0.unsigned_abs();
        let (whole, fraction) = (magnitude / one, magnitude % one);
        let text = match usize::from(S) {
            0 => whole.to_string(),
            width => format!("{whole}.{fraction:0width$}"),
        };
        f.pad_integral(self.0 >= 0, "", &text)
    }
}

impl<const D: u8, const S: u8> fmt::Debug for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const D: u8, const S: u8> FromStr for Fixed<D, S> {
    type Err = FixedError;

    /// Parses an optional sign and decimal digits with at most one point. Zeros after the
    /// last digit of the type are allowed.
    fn from_str(text: &str) -> Result<Self, FixedError> {
        let (negative, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => (true, magnitude),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let mut digits = whole.bytes().chain(fraction.bytes());
        if whole.len() + fraction.len() == 0 || !digits.all(|byte| byte.is_ascii_digit()) {
            return Err(FixedError::Invalid);
        }
        let fraction = fraction.trim_end_matches('0');
        let scale = usize::from(S);
        if fraction.len() > scale {
            return Err(FixedError::TooPrecise { scale: S });
        }
        let whole = whole.trim_start_matches('0');
        let digits = format!("{whole}{fraction:0<scale$}");
        let unscaled: i128 = match digits.as_str() {
            "" => 0,
            digits => digits.parse().map_err(|_| Self::too_large())?,
        };
        Self::new(if negative { -unscaled } else { unscaled }).ok_or(Self::too_large())
    }
}

impl<const D: u8, const S: u8> Shape for Fixed<D, S> {
    type Owned = Self;
    type Borrowed = Self;
    type Shown<'a> = Self;
    const SIZE_MIN: usize = Self::BYTES;
    const LENGTH_CODE: LengthCode = LengthCode::of_size(Self::BYTES);

    fn initial() -> Self {
        Self::ZERO
    }

    fn write<E: Encoder>(value: &Self, encoder: &mut E) -> Result<(), CdrError> {
        let decimals = value.to_decimals();
        let start = BYTES_MAX.saturating_sub(Self::BYTES);
        encoder.bytes(decimals.get(start..).unwrap_or_default())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, CdrError> {
        let place = reader.place();
        let decimals = reader.take(Self::BYTES)?;
        Self::from_decimals(decimals).ok_or(CdrError::InvalidFixed { place })
    }

    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        Self::read(reader).map(|_| ())
    }

    fn show<'a>(reader: &mut Reader<'a>) -> Self {
        Self::read(reader).unwrap_or(Self::ZERO)
    }

    fn absent<'a>() -> Self::Shown<'a> {
        Self::ZERO
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(&Self::read(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        measure.primitives(1, Self::BYTES);
    }
}

#[cfg(feature = "serde")]
impl<const D: u8, const S: u8> serde::Serialize for Fixed<D, S> {
    /// Text in readable formats, the unscaled number in binary ones.
    fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i128(self.0)
        }
    }
}

#[cfg(feature = "serde")]
impl<'de, const D: u8, const S: u8> serde::Deserialize<'de> for Fixed<D, S> {
    fn deserialize<Z: serde::Deserializer<'de>>(deserializer: Z) -> Result<Self, Z::Error> {
        let value = if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse()
        } else {
            let unscaled = i128::deserialize(deserializer)?;
            Self::new(unscaled).ok_or(Self::too_large())
        };
        value.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encapsulation::{Encapsulation, Extensibility, Representation};
    use crate::encode::{AllMembers, Members, Writer};
    use crate::reader::Untrusted;

    fn write<const D: u8, const S: u8>(text: &str) -> Vec<u8> {
        let value: Fixed<D, S> = text.parse().expect("is a number");
        let mut out = [0xaa; 20];
        let mut writer = Writer::<'_, AllMembers>::new(Representation::Xcdr1, &mut out);
        Fixed::write(&value, &mut writer).expect("fits");
        let length = writer.position();
        let bytes = out[..length].to_vec();
        assert_eq!(read::<D, S>(&bytes), Ok(value));
        bytes
    }

    fn read<const D: u8, const S: u8>(bytes: &[u8]) -> Result<Fixed<D, S>, CdrError> {
        let untrusted = Untrusted::new(bytes, Encapsulation::CDR_LE);
        let mut reader = untrusted.reader(Extensibility::Final, Members::All)?;
        Fixed::read(&mut reader)
    }

    #[test]
    fn two_digits_a_byte_and_a_sign() {
        assert_eq!(write::<5, 2>("123.45"), [0x12, 0x34, 0x5c]);
        assert_eq!(write::<5, 2>("-0.07"), [0x00, 0x00, 0x7d]);
        assert_eq!(write::<4, 0>("1234"), [0x01, 0x23, 0x4c]);
        assert_eq!(write::<1, 0>("-9"), [0x9d]);
        assert_eq!(write::<31, 31>("0.1")[..2], [0x10, 0x00]);
        let most = "9".repeat(31);
        assert_eq!(write::<31, 0>(&most)[15], 0x9c);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        // A digit of 10, no sign, and a sixth digit, which an even number of digits has
        // room for.
        for bytes in [[0x1a, 0x34, 0x5c], [0x12, 0x34, 0x50]] {
            assert!(matches!(
                read::<5, 2>(&bytes),
                Err(CdrError::InvalidFixed { .. })
            ));
        }
        assert!(matches!(
            read::<4, 2>(&[0x12, 0x34, 0x5c]),
            Err(CdrError::InvalidFixed { .. })
        ));
        assert!(matches!(
            read::<5, 2>(&[0x12, 0x34]),
            Err(CdrError::Truncated { .. })
        ));
    }

    #[test]
    fn text() {
        type Price = Fixed<5, 2>;
        for (text, printed) in [
            ("1", "1.00"),
            ("-0.5", "-0.50"),
            ("007.2500", "7.25"),
            (".5", "0.50"),
            ("+3.", "3.00"),
            ("-0", "0.00"),
        ] {
            assert_eq!(
                text.parse::<Price>().map(|value| value.to_string()),
                Ok(printed.into())
            );
        }
        let parse = str::parse::<Price>;
        assert_eq!(
            parse("1000"),
            Err(FixedError::TooLarge {
                digits: 5,
                scale: 2
            })
        );
        assert_eq!(
            parse(&"9".repeat(60)),
            Err(FixedError::TooLarge {
                digits: 5,
                scale: 2
            })
        );
        assert_eq!(parse("0.001"), Err(FixedError::TooPrecise { scale: 2 }));
        for text in ["", "-", ".", "1,5", "--1", "1.2.3", "1e3"] {
            assert_eq!(parse(text), Err(FixedError::Invalid), "{text}");
        }
        assert_eq!(Price::saturating(-1_000_000).to_string(), "-999.99");
        assert_eq!(Price::new(100_000), None);
        assert!(Price::saturating(1) > Price::ZERO);
        assert_eq!(Price::saturating(12_345).to_f64(), 123.45);
    }
}
