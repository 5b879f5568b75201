//! `long double`: a number of IEEE 754 binary128, without arithmetic.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::encapsulation::ByteOrder;
use crate::primitive::Primitive;

/// A `long double`, 16 bytes. It has no arithmetic: convert it to `f64`, which is lossy, or
/// use the bits. It compares as a number.
#[derive(Clone, Copy, Default)]
pub struct LongDouble(u128);

/// Bits of the fraction.
const FRACTION_BITS: u32 = 112;
const FRACTION: u128 = (1 << FRACTION_BITS) - 1;
const SIGN: u128 = 1 << 127;
/// The exponent of infinities and NaN.
const EXPONENT_MAX: i32 = 0x7fff;
/// The bias of exponents, and the least exponent of `f64`.
const BIAS: i32 = 16_383;
const F64_BIAS: i32 = 1_023;
const F64_FRACTION_BITS: u32 = 52;
/// Hexadecimal digits of the fraction.
const FRACTION_DIGITS: usize = 28;

impl LongDouble {
    /// From the bits of a binary128.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits of the binary128.
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// Whether it is NaN.
    pub const fn is_nan(self) -> bool {
        self.exponent() == EXPONENT_MAX && self.0 & FRACTION != 0
    }

    const fn exponent(self) -> i32 {
        ((self.0 & !SIGN) >> FRACTION_BITS) as i32
    }

    /// The nearest `f64`, ties to even; infinite beyond its range.
    pub fn to_f64(self) -> f64 {
        let sign = ((self.0 >> 127) as u64) << 63;
        let fraction = self.0 & FRACTION;
        if self.is_nan() {
            return f64::NAN;
        }
        let exponent = self.exponent() - BIAS + F64_BIAS;
        if exponent >= 0x7ff {
            return f64::from_bits(sign | f64::INFINITY.to_bits());
        }
        // Subnormal numbers of this format are far below those of `f64`.
        let shift = FRACTION_BITS - F64_FRACTION_BITS;
        let (significand, shift, exponent) = match u64::try_from(exponent) {
            Ok(exponent) if exponent > 0 => (fraction, shift, exponent),
            _ => {
                let shift = shift
                    .saturating_add(exponent.unsigned_abs())
                    .saturating_add(1);
                (fraction | (1 << FRACTION_BITS), shift, 0)
            }
        };
        if shift >= u128::BITS {
            return f64::from_bits(sign);
        }
        let kept = (significand >> shift) as u64;
        let rest = significand & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        // A carry out of the fraction correctly increments the exponent.
        let magnitude = (exponent << F64_FRACTION_BITS) + kept + u64::from(up);
        f64::from_bits(sign | magnitude)
    }
}

impl From<f64> for LongDouble {
    /// Exact.
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = (bits >> F64_FRACTION_BITS) as i32 & 0x7ff;
        let fraction = u128::from(bits & ((1 << F64_FRACTION_BITS) - 1));
        let shift = FRACTION_BITS - F64_FRACTION_BITS;
        let (exponent, fraction) = match exponent {
            0x7ff => (EXPONENT_MAX, fraction << shift),
            0 if fraction == 0 => (0, 0),
            0 => {
                // Subnormal in `f64`, normal in binary128: the leading bit becomes the hidden one.
                let leading = fraction.leading_zeros() - (u128::BITS - F64_FRACTION_BITS);
                let fraction = (fraction << (shift + leading + 1)) & FRACTION;
                (BIAS - F64_BIAS - leading as i32, fraction)
            }
            _ => (exponent - F64_BIAS + BIAS, fraction << shift),
        };
        Self(sign | ((exponent as u128) << FRACTION_BITS) | fraction)
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let ordered = |value: Self| {
            let magnitude = (value.0 & !SIGN) as i128;
            if value.0 & SIGN == 0 {
                magnitude
            } else {
                -magnitude
            }
        };
        (!self.is_nan() && !other.is_nan()).then(|| ordered(*self).cmp(&ordered(*other)))
    }
}

impl fmt::Display for LongDouble {
    /// As the `f64` of the same value; if none exists, exactly in hexadecimal:
    /// `0x1.8p-20000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let double = self.to_f64();
        if self.is_nan() || Self::from(double).0 == self.0 {
            return fmt::Display::fmt(&double, f);
        }
        let sign = if self.0 & SIGN == 0 { "" } else { "-" };
        let (leading, exponent) = match self.exponent() {
            0 => (0, 1 - BIAS),
            exponent => (1, exponent - BIAS),
        };
        let fraction = format!("{:0FRACTION_DIGITS$x}", self.0 & FRACTION);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}0x{leading}{point}{fraction}p{exponent:+}")
    }
}

impl fmt::Debug for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a `long double`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither a number in decimals nor one as in 0x1.8p+3")]
pub struct ParseLongDoubleError;

impl FromStr for LongDouble {
    type Err = ParseLongDoubleError;

    /// Parses the output of [`Display`](fmt::Display). Decimals are read as `f64`.
    fn from_str(text: &str) -> Result<Self, ParseLongDoubleError> {
        let (sign, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => (SIGN, magnitude),
            None => (0, text),
        };
        match magnitude.strip_prefix("0x") {
            Some(hexadecimal) => parse_hexadecimal(hexadecimal)
                .map(|magnitude| Self(sign | magnitude))
                .ok_or(ParseLongDoubleError),
            None => text
                .parse::<f64>()
                .map(Self::from)
                .map_err(|_| ParseLongDoubleError),
        }
    }
}

/// The bits of `1.8p+3`.
fn parse_hexadecimal(text: &str) -> Option<u128> {
    let (significand, exponent) = text.split_once('p')?;
    let (leading, fraction) = significand.split_once('.').unwrap_or((significand, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let digits = fraction.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || fraction.len() > FRACTION_DIGITS {
        return None;
    }
    let padded = format!("{fraction:0<FRACTION_DIGITS$}");
    let fraction = u128::from_str_radix(&padded, 16).ok()?;
    let biased = match (leading, exponent) {
        ("0", exponent) if exponent == 1 - BIAS => 0,
        ("1", exponent) if (1 - BIAS..=BIAS).contains(&exponent) => exponent + BIAS,
        _ => return None,
    };
    Some((biased as u128) << FRACTION_BITS | fraction)
}

impl crate::primitive::sealed::Sealed for LongDouble {}

impl Primitive for LongDouble {
    const SIZE: usize = 16;

    #[inline]
    fn store(self, order: ByteOrder, out: &mut [u8]) {
        out.copy_from_slice(&match order {
            ByteOrder::Little => self.0.to_le_bytes(),
            ByteOrder::Big => self.0.to_be_bytes(),
        });
    }

    #[inline]
    fn load(order: ByteOrder, bytes: &[u8]) -> Self {
        let bytes = bytes.try_into().unwrap_or_default();
        Self(match order {
            ByteOrder::Little => u128::from_le_bytes(bytes),
            ByteOrder::Big => u128::from_be_bytes(bytes),
        })
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LongDouble {
    /// Text in readable formats, bits in binary ones.
    fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u128(self.0)
        }
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for LongDouble {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(serde::de::Error::custom)
        } else {
            u128::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_survive() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.1,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            2.5e-310,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e300,
        ];
        for number in numbers {
            let wide = LongDouble::from(number);
            assert_eq!(wide.to_f64().to_bits(), number.to_bits(), "{number}");
            assert_eq!(wide.to_string(), number.to_string());
            assert_eq!(
                wide.to_string().parse().map(LongDouble::to_bits),
                Ok(wide.to_bits())
            );
        }
        assert!(LongDouble::from(f64::NAN).is_nan());
        assert_ne!(LongDouble::from(f64::NAN), LongDouble::from(f64::NAN));
        assert_eq!(LongDouble::from(-0.0), LongDouble::from(0.0));
    }

    #[test]
    fn bits_are_those_of_the_standard() {
        assert_eq!(LongDouble::from(1.0).to_bits(), 0x3fff << 112);
        assert_eq!(LongDouble::from(-2.0).to_bits(), 0xc000 << 112);
        assert_eq!(LongDouble::from(f64::INFINITY).to_bits(), 0x7fff << 112);
        // The least subnormal `f64`, 2^-1074.
        let least = u128::try_from(BIAS - 1074).expect("is positive");
        assert_eq!(LongDouble::from(5e-324).to_bits(), least << 112);
    }

    #[test]
    fn to_f64_rounds_to_even() {
        let one = 0x3fff_u128 << 112;
        let ulp = 1_u128 << 60;
        let next = f64::from_bits(1.0_f64.to_bits() + 1);
        let after_next = f64::from_bits(1.0_f64.to_bits() + 2);
        assert_eq!(LongDouble::from_bits(one + ulp / 2).to_f64(), 1.0);
        assert_eq!(LongDouble::from_bits(one + ulp / 2 + 1).to_f64(), next);
        assert_eq!(
            LongDouble::from_bits(one + ulp + ulp / 2).to_f64(),
            after_next
        );
        let beyond = LongDouble::from(f64::MAX).to_bits() + ulp / 2;
        assert_eq!(LongDouble::from_bits(beyond).to_f64(), f64::INFINITY);
        // Half of the least `f64` is a tie with 0; a bit more is not.
        let half = u128::try_from(BIAS - 1075).expect("is positive") << 112;
        assert_eq!(LongDouble::from_bits(half).to_f64(), 0.0);
        assert_eq!(LongDouble::from_bits(half + 1).to_f64(), 5e-324);
        assert_eq!(LongDouble::from_bits(1).to_f64(), 0.0);
    }

    #[test]
    fn what_is_no_double_is_hexadecimal() {
        for (bits, text) in [
            ((0x3fff << 112) | 1, "0x1.0000000000000000000000000001p+0"),
            (1 << 112, "0x1p-16382"),
            (1 << 111, "0x0.8p-16382"),
            ((0xffff << 112) - (1 << 64), "-0x1.ffffffffffffp+16383"),
        ] {
            let value = LongDouble::from_bits(bits);
            assert_eq!(value.to_string(), text);
            assert_eq!(text.parse().map(LongDouble::to_bits), Ok(bits));
        }
        for text in [
            "",
            "0x",
            "0x2.0p+0",
            "0x1.gp+0",
            "0x1p+16384",
            "0x0.8p+1",
            "one",
            "0x1.+8p1",
        ] {
            assert_eq!(
                text.parse::<LongDouble>(),
                Err(ParseLongDoubleError),
                "{text}"
            );
        }
    }
}
