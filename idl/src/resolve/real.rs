//! Exact arithmetic of `long double`: IEEE 754 binary128.

use rustc_apfloat::ieee::{Double, Quad};
use rustc_apfloat::{Float, FloatConvert};

/// The number nearest to a literal, infinite when it is too large; `None` when the
/// text is not a literal.
pub(super) fn parse(text: &str) -> Option<u128> {
    text.parse::<Quad>().ok().map(Float::to_bits)
}

pub(super) fn of_integer(value: i128) -> u128 {
    Quad::from_i128(value).value.to_bits()
}

pub(super) fn of_double(value: f64) -> u128 {
    let wide: Quad = Double::from_bits(u128::from(value.to_bits()))
        .convert(&mut false)
        .value;
    wide.to_bits()
}

/// The nearest `double`, infinite when the number is too large.
pub(super) fn to_double(bits: u128) -> f64 {
    let narrow: Double = Quad::from_bits(bits).convert(&mut false).value;
    f64::from_bits(u64::try_from(narrow.to_bits()).unwrap_or(0))
}

pub(super) fn negated(bits: u128) -> u128 {
    (-Quad::from_bits(bits)).to_bits()
}

pub(super) fn is_finite(bits: u128) -> bool {
    Quad::from_bits(bits).is_finite()
}

pub(super) fn is_zero(bits: u128) -> bool {
    Quad::from_bits(bits).is_zero()
}

/// `left <= right`.
pub(super) fn at_most(left: u128, right: u128) -> bool {
    Quad::from_bits(left) <= Quad::from_bits(right)
}

/// `+`, `-`, `*` or `/`, rounded to the nearest; `None` for other operators.
pub(super) fn apply(operator: char, left: u128, right: u128) -> Option<u128> {
    let (left, right) = (Quad::from_bits(left), Quad::from_bits(right));
    let value = match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' => left / right,
        _ => return None,
    };
    Some(value.value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bits() {
        assert_eq!(of_integer(1), 0x3FFF << 112);
        assert_eq!(of_double(-2.0), 0xC000 << 112);
        assert_eq!(
            parse("0.1"),
            Some(0x3FFB_9999_9999_9999_9999_9999_9999_999A)
        );
        assert_eq!(parse("1."), parse(".1e1"));
        assert_eq!(parse("x"), None);
        assert!(!is_finite(parse("1e5000").unwrap_or(0)));
        assert!(is_finite(parse("1e4900").unwrap_or(0)));
    }

    #[test]
    fn arithmetic_is_exact_where_double_is_not() {
        let third = apply('/', of_integer(1), of_integer(3)).unwrap_or(0);
        assert_ne!(third, of_double(1.0 / 3.0));
        assert_eq!(to_double(third), 1.0 / 3.0);
        assert_eq!(apply('*', third, of_integer(3)), Some(of_integer(1)));
        assert_eq!(apply('%', third, third), None);
    }
}
