//! `@range`, `@min` and `@max`.

use std::fmt;
use std::marker::PhantomData;

use crate::encode::Encoder;
use crate::error::{CdrError, NumberOutOfRange, RangeLimits, SamplePosition};
use crate::long_double::LongDouble;
use crate::measure::Measure;
use crate::reader::Reader;
use crate::shape::{LengthCode, Shape};

/// A number that can be compared with limits. Limits are integers in the order of the
/// numbers.
pub trait Limited: Copy + fmt::Display {
    /// Its rank in the order; `None` for NaN.
    fn to_limit(self) -> Option<i128>;
    /// The number with this rank.
    fn from_limit(limit: i128) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Limited for $ty {
            #[inline]
            fn to_limit(self) -> Option<i128> {
                Some(i128::from(self))
            }

            fn from_limit(limit: i128) -> Self {
                limit as Self
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64);

/// The rank of a sign and a magnitude of `width` bits, in the order of the numbers; both
/// zeros have the same.
const fn ordered(bits: u128, width: u32) -> i128 {
    let sign = 1_u128 << (width - 1);
    let magnitude = (bits & (sign - 1)) as i128;
    if bits & sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// The inverse of [`ordered`].
const fn bits_of(limit: i128, width: u32) -> u128 {
    let magnitude = limit.unsigned_abs();
    if limit < 0 {
        magnitude | 1 << (width - 1)
    } else {
        magnitude
    }
}

/// The limit for a `float`.
pub const fn limit_f32(value: f32) -> i128 {
    ordered(value.to_bits() as u128, 32)
}

/// The limit for a `double`.
pub const fn limit_f64(value: f64) -> i128 {
    ordered(value.to_bits() as u128, 64)
}

/// The limit for a `long double`.
pub const fn limit_long_double(value: LongDouble) -> i128 {
    ordered(value.to_bits(), 128)
}

impl Limited for f32 {
    #[inline]
    fn to_limit(self) -> Option<i128> {
        (!self.is_nan()).then(|| limit_f32(self))
    }

    fn from_limit(limit: i128) -> Self {
        Self::from_bits(bits_of(limit, 32) as u32)
    }
}

impl Limited for f64 {
    #[inline]
    fn to_limit(self) -> Option<i128> {
        (!self.is_nan()).then(|| limit_f64(self))
    }

    fn from_limit(limit: i128) -> Self {
        Self::from_bits(bits_of(limit, 64) as u64)
    }
}

impl Limited for LongDouble {
    fn to_limit(self) -> Option<i128> {
        (!self.is_nan()).then(|| limit_long_double(self))
    }

    fn from_limit(limit: i128) -> Self {
        Self::from_bits(bits_of(limit, 128))
    }
}

/// A number from `MIN` to `MAX` inclusive, as ranks of [`Limited`]; `i128::MIN` and
/// `i128::MAX` mean no limit. The default is the allowed number nearest to that of the
/// type.
#[derive(Debug)]
pub struct Ranged<T, const MIN: i128, const MAX: i128>(PhantomData<T>);

impl<T, const MIN: i128, const MAX: i128> Ranged<T, MIN, MAX>
where
    T: Limited + for<'a> Shape<Owned = T, Borrowed = T, Shown<'a> = T>,
{
    #[inline]
    fn verify(value: T, offset: usize) -> Result<T, CdrError> {
        match value.to_limit() {
            Some(limit) if MIN <= limit && limit <= MAX => Ok(value),
            _ => Err(CdrError::OutOfRange {
                number: number_out_of_range::<T, MIN, MAX>(value),
                place: SamplePosition::offset(offset),
            }),
        }
    }
}

impl NumberOutOfRange {
    /// A number whose limits are not known when the program is compiled.
    pub fn without_limits<T: Limited>(value: T) -> Self {
        number_out_of_range::<T, { i128::MIN }, { i128::MAX }>(value)
    }
}

#[cold]
fn number_out_of_range<T: Limited, const MIN: i128, const MAX: i128>(value: T) -> NumberOutOfRange {
    // The rank of an unsigned number of 64 bits is cut to a signed one of the same bits.
    let limit = value.to_limit();
    let rank = limit.map(|limit| limit as i64);
    let is_whole = |rank: &i64| T::from_limit((*rank).into()).to_limit() == limit;
    match rank.filter(is_whole) {
        Some(rank) => NumberOutOfRange {
            rank,
            limits: const { &limits::<T>(MIN, MAX, true) },
        },
        None => NumberOutOfRange {
            rank: 0,
            limits: const { &limits::<T>(MIN, MAX, false) },
        },
    }
}

const fn limits<T: Limited>(least: i128, most: i128, has_value: bool) -> RangeLimits {
    RangeLimits {
        least,
        most,
        has_value,
        show: |rank, f| write!(f, "{}", T::from_limit(rank)),
    }
}

impl<T, const MIN: i128, const MAX: i128> Shape for Ranged<T, MIN, MAX>
where
    T: Limited + for<'a> Shape<Owned = T, Borrowed = T, Shown<'a> = T>,
{
    type Owned = T;
    type Borrowed = T;
    type Shown<'a> = T;
    const SIZE_MIN: usize = T::SIZE_MIN;
    const LENGTH_CODE: LengthCode = T::LENGTH_CODE;

    fn initial() -> T {
        let initial = T::initial();
        match initial.to_limit() {
            Some(limit) if limit < MIN => T::from_limit(MIN),
            Some(limit) if limit > MAX => T::from_limit(MAX),
            _ => initial,
        }
    }

    #[inline]
    fn write<E: Encoder>(value: &T, encoder: &mut E) -> Result<(), CdrError> {
        Self::verify(*value, encoder.position())?;
        T::write(value, encoder)
    }

    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<T, CdrError> {
        let value = T::read(reader)?;
        Self::verify(value, reader.place().offset)
    }

    #[inline]
    fn check(reader: &mut Reader<'_>) -> Result<(), CdrError> {
        let value = T::read(reader)?;
        let checked = Self::verify(value, reader.place().offset);
        reader.tolerate(checked.map(|_| ()))
    }

    fn show<'a>(reader: &mut Reader<'a>) -> T {
        Self::read(reader).unwrap_or_else(|_| Self::initial())
    }

    fn absent<'a>() -> Self::Shown<'a> {
        Self::initial()
    }

    fn transcribe_key<E: Encoder>(
        reader: &mut Reader<'_>,
        encoder: &mut E,
    ) -> Result<(), CdrError> {
        Self::write(&Self::read(reader)?, encoder)
    }

    fn measure(measure: &mut Measure) {
        T::measure(measure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_order_of_the_numbers() {
        let numbers = [
            f64::NEG_INFINITY,
            -2.5,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            1e-300,
            7.0,
            f64::INFINITY,
        ];
        assert!(numbers.iter().map(|number| limit_f64(*number)).is_sorted());
        assert_eq!(limit_f64(-0.0), limit_f64(0.0));
        for number in numbers {
            assert_eq!(f64::from_limit(limit_f64(number)), number);
            let wide = LongDouble::from(number);
            assert_eq!(LongDouble::from_limit(limit_long_double(wide)), wide);
        }
        assert_eq!(f64::NAN.to_limit(), None);
        assert_eq!(f32::from_limit(limit_f32(-1.5)), -1.5);
        assert_eq!(u64::from_limit(i128::from(u64::MAX)), u64::MAX);
    }

    #[test]
    fn an_error_says_the_number_and_its_limits() {
        fn check<T, const MIN: i128, const MAX: i128>(value: T, expected: &str)
        where
            T: Limited + for<'a> Shape<Owned = T, Borrowed = T, Shown<'a> = T>,
        {
            let error = Ranged::<T, MIN, MAX>::verify(value, 4).err().unwrap();
            assert_eq!(error.to_string(), format!("number {expected}, at byte 4"));
        }
        check::<i32, -5, 9>(10, "10 is out of its range: -5 to 9");
        check::<u8, 1, { i128::MAX }>(0, "0 is out of its range: at least 1");
        check::<u64, { i128::MIN }, 9>(
            u64::MAX,
            "18446744073709551615 is out of its range: at most 9",
        );
        check::<i64, 0, 9>(i64::MIN, "-9223372036854775808 is out of its range: 0 to 9");
        check::<f32, { limit_f32(-0.5) }, { limit_f32(1.5) }>(
            2.5,
            "2.5 is out of its range: -0.5 to 1.5",
        );
        check::<f64, { limit_f64(0.5) }, { i128::MAX }>(
            -1e300,
            &format!("{} is out of its range: at least 0.5", -1e300),
        );
        check::<f64, { limit_f64(0.5) }, { i128::MAX }>(
            f64::NAN,
            "is out of its range: at least 0.5",
        );
    }

    #[test]
    fn the_default_is_next_to_that_of_the_type() {
        assert_eq!(Ranged::<i32, 5, 9>::initial(), 5);
        assert_eq!(Ranged::<i32, -9, -5>::initial(), -5);
        assert_eq!(Ranged::<i32, -9, 5>::initial(), 0);
        assert_eq!(
            Ranged::<f64, { limit_f64(0.5) }, { i128::MAX }>::initial(),
            0.5
        );
    }
}
