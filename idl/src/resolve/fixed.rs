//! Fixed-point constants: IDL 4.2 §7.4.1.4.3, with the rules of its table 7-13.
//!
//! A value has at most 31 significant digits; an operation drops further digits after
//! the decimal point. Intermediate numbers are exact decimal digits.

use crate::model::Value;

/// Most digits of a number.
pub(super) const DIGITS_MAX: u8 = 31;

/// A decimal number: `digits` from the most significant one on, `scale` of them
/// after the decimal point.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    scale: usize,
}

/// An integer or a fixed-point number as a fixed-point number.
pub(super) fn of(value: &Value) -> Option<Value> {
    match value {
        Value::Integer(unscaled) => Some(Value::Fixed {
            unscaled: *unscaled,
            scale: 0,
        }),
        Value::Fixed { .. } => Some(value.clone()),
        _ => None,
    }
}

/// A literal without its `d`.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|byte| byte.saturating_sub(b'0'))
        .collect();
    let literal = Decimal {
        negative: false,
        digits,
        scale: fraction.len(),
    };
    let significant = literal.clone().significant();
    if significant.digits.len() > usize::from(DIGITS_MAX)
        || significant.scale > usize::from(DIGITS_MAX)
    {
        return Err(format!(
            "`{text}d` has more than {DIGITS_MAX} significant digits"
        ));
    }
    literal.value()
}

/// Digits and scale of a value, without leading zeros.
pub(super) fn size(value: &Value) -> Option<(u8, u8)> {
    let Value::Fixed { unscaled, scale } = value else {
        return None;
    };
    let digits = unscaled.unsigned_abs().to_string().len();
    let digits = u8::try_from(digits).ok()?.max(*scale).max(1);
    Some((digits, *scale))
}

/// A number converted to these digits and this scale.
pub(super) fn fitted(value: &Value, target: Option<(u8, u8)>) -> Result<Value, String> {
    let too_large = || "the value has more than 31 digits".to_owned();
    let value = of(value).ok_or_else(too_large)?;
    let Some((digits, scale)) = target else {
        let digits = size(&value).map(|(digits, _)| digits);
        return match digits {
            Some(digits) if digits <= DIGITS_MAX => Ok(value),
            _ => Err(too_large()),
        };
    };
    let number = Decimal::of(&value).ok_or_else(too_large)?.significant();
    let whole = number.digits.len().saturating_sub(number.scale);
    if number.scale > usize::from(scale) || whole > usize::from(digits - scale) {
        return Err(format!(
            "{} does not fit in `fixed<{digits}, {scale}>`",
            shown(&value)
        ));
    }
    let mut number = number;
    number.grow(usize::from(scale));
    number.value()
}

/// The number as it is written in IDL, without the `d`.
pub(super) fn shown(value: &Value) -> String {
    let Value::Fixed { unscaled, scale } = value else {
        return String::new();
    };
    let sign = if *unscaled < 0 { "-" } else { "" };
    let width = usize::from(*scale) + 1;
    let digits = format!("{:0>width$}", unscaled.unsigned_abs());
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(*scale));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// `+`, `-`, `*` or `/`.
pub(super) fn apply(operator: char, left: &Value, right: &Value) -> Result<Value, String> {
    let operand = |value| of(value).and_then(|value| Decimal::of(&value));
    let (Some(left), Some(right)) = (operand(left), operand(right)) else {
        return Err("an operand is not a fixed-point number".into());
    };
    let outcome = match operator {
        '+' => left.plus(right),
        '-' => left.plus(right.negated()),
        '*' => left.times(&right),
        '/' => left.divided_by(&right)?,
        '<' => return Err("`<<` expects integers".into()),
        '>' => return Err("`>>` expects integers".into()),
        _ => return Err(format!("`{operator}` expects integers")),
    };
    outcome.value()
}

impl Decimal {
    fn of(value: &Value) -> Option<Self> {
        let Value::Fixed { unscaled, scale } = value else {
            return None;
        };
        let text = unscaled.unsigned_abs().to_string();
        let mut number = Self {
            negative: *unscaled < 0,
            digits: text.bytes().map(|byte| byte - b'0').collect(),
            scale: usize::from(*scale),
        };
        number.pad();
        Some(number)
    }

    /// At least one digit before the point.
    fn pad(&mut self) {
        let missing = (self.scale + 1).saturating_sub(self.digits.len());
        self.digits.splice(0..0, vec![0; missing]);
    }

    /// Without redundant zeros.
    fn significant(mut self) -> Self {
        while self.scale > 0 && self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale -= 1;
        }
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        self
    }

    fn negated(mut self) -> Self {
        self.negative = !self.negative;
        self
    }

    /// With more zeros at the end.
    fn grow(&mut self, scale: usize) {
        let more = scale.saturating_sub(self.scale);
        self.digits.extend(std::iter::repeat_n(0, more));
        self.scale += more;
    }

    /// The value, with at most 31 digits: excess digits after the decimal point are
    /// dropped, before it they are an error.
    fn value(mut self) -> Result<Value, String> {
        let most = usize::from(DIGITS_MAX);
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        while self.digits.len() > most && self.scale > 0 || self.scale > most {
            self.digits.pop();
            self.scale -= 1;
        }
        if self.digits.len() > most {
            return Err(format!("the value has more than {DIGITS_MAX} digits"));
        }
        let fold = |value: i128, digit: &u8| value * 10 + i128::from(*digit);
        let unscaled = self.digits.iter().fold(0, fold);
        Ok(Value::Fixed {
            unscaled: if self.negative { -unscaled } else { unscaled },
            scale: u8::try_from(self.scale).unwrap_or(DIGITS_MAX),
        })
    }

    fn plus(mut self, mut other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        self.grow(scale);
        other.grow(scale);
        let width = self.digits.len().max(other.digits.len()) + 1;
        for number in [&mut self, &mut other] {
            let missing = width - number.digits.len();
            number.digits.splice(0..0, vec![0; missing]);
        }
        if self.negative == other.negative {
            self.digits = add(&self.digits, &other.digits);
            return self;
        }
        if self.digits < other.digits {
            std::mem::swap(&mut self, &mut other);
        }
        self.digits = subtract(&self.digits, &other.digits);
        self
    }

    fn times(&self, other: &Self) -> Self {
        let mut sums = vec![0_u32; self.digits.len() + other.digits.len()];
        for (i, left) in self.digits.iter().rev().enumerate() {
            for (j, right) in other.digits.iter().rev().enumerate() {
                if let Some(sum) = sums.get_mut(i + j) {
                    *sum += u32::from(*left) * u32::from(*right);
                }
            }
        }
        let mut carry = 0;
        let mut digits = Vec::new();
        for sum in sums {
            let sum = sum + carry;
            digits.push(u8::try_from(sum % 10).unwrap_or(0));
            carry = sum / 10;
        }
        digits.reverse();
        Self {
            negative: self.negative != other.negative,
            digits,
            scale: self.scale + other.scale,
        }
    }

    /// With as many digits after the decimal point as fit, and no zeros at
    /// the end.
    fn divided_by(&self, other: &Self) -> Result<Self, String> {
        if other.digits.iter().all(|digit| *digit == 0) {
            return Err("division by zero".into());
        }
        let more = other.scale + usize::from(DIGITS_MAX) + other.digits.len();
        let mut rest: Vec<u8> = vec![0; other.digits.len() + 1];
        let divisor: Vec<u8> = std::iter::once(0)
            .chain(other.digits.iter().copied())
            .collect();
        let mut digits = Vec::new();
        let dividend = self.digits.iter().copied();
        for digit in dividend.chain(std::iter::repeat_n(0, more)) {
            rest.remove(0);
            rest.push(digit);
            let mut times = 0;
            while rest >= divisor {
                rest = subtract(&rest, &divisor);
                times += 1;
            }
            digits.push(times);
        }
        let quotient = Self {
            negative: self.negative != other.negative,
            digits,
            scale: self.scale + more - other.scale,
        };
        Ok(quotient.significant())
    }
}

/// The sum of numbers of equal length, which has the same length: there is room for
/// the carry.
fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut digits: Vec<u8> = Vec::with_capacity(left.len());
    for (left, right) in left.iter().rev().zip(right.iter().rev()) {
        let sum = left + right + carry;
        digits.push(sum % 10);
        carry = sum / 10;
    }
    digits.reverse();
    digits
}

/// The difference of numbers of equal length, the first not less than the second.
fn subtract(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut digits: Vec<u8> = Vec::with_capacity(left.len());
    for (left, right) in left.iter().rev().zip(right.iter().rev()) {
        let difference = 10 + left - right - borrow;
        digits.push(difference % 10);
        borrow = u8::from(difference < 10);
    }
    digits.reverse();
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &str, operator: char, right: &str, expected: &str) {
        let number = |text: &str| {
            let (negative, text) = match text.strip_prefix('-') {
                Some(text) => (true, text),
                None => (false, text),
            };
            match parse(text) {
                Ok(Value::Fixed { unscaled, scale }) => Value::Fixed {
                    unscaled: if negative { -unscaled } else { unscaled },
                    scale,
                },
                other => panic!("{text}: {other:?}"),
            }
        };
        let outcome = match apply(operator, &number(left), &number(right)) {
            Ok(value) => shown(&value),
            Err(message) => message,
        };
        assert_eq!(outcome, expected, "{left} {operator} {right}");
    }

    #[test]
    fn arithmetic() {
        check("1.5", '+', "2.25", "3.75");
        check("1.5", '-', "2.25", "-0.75");
        check("-1.5", '-', "2.25", "-3.75");
        check("999", '+', "1", "1000");
        check("1.20", '*', "-0.5", "-0.600");
        check("10", '/', "4", "2.5");
        check("1", '/', "3", "0.3333333333333333333333333333333");
        check("0.02", '/', "0.1", "0.2");
        check("1", '/', "0", "division by zero");
        check("1", '%', "2", "`%` expects integers");
        let most = "9999999999999999999999999999999";
        check(most, '+', "1", "the value has more than 31 digits");
        check(most, '*', "0.1", "999999999999999999999999999999.9");
        check(
            "1.000000000000000000000000000001",
            '*',
            "1.000000000000000000000000000001",
            "1.000000000000000000000000000002",
        );
    }

    #[test]
    fn sizes() {
        assert_eq!(
            parse("0123.450").ok().and_then(|value| size(&value)),
            Some((6, 3))
        );
        assert_eq!(
            parse(".05").ok().and_then(|value| size(&value)),
            Some((2, 2))
        );
        assert!(parse("12345678901234567890123456789012").is_err());
        let value = parse("12.50").ok();
        let fit = |size| value.as_ref().map(|value| fitted(value, Some(size)));
        assert_eq!(
            fit((3, 1)),
            Some(Ok(Value::Fixed {
                unscaled: 125,
                scale: 1
            }))
        );
        assert_eq!(
            fit((3, 0)),
            Some(Err("12.50 does not fit in `fixed<3, 0>`".into()))
        );
        assert_eq!(
            fit((3, 2)),
            Some(Err("12.50 does not fit in `fixed<3, 2>`".into()))
        );
    }
}
