//! The spread of several runs of the same thing.

use serde::Serialize;

/// Median, minimum and maximum of a figure over several rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl Spread {
    /// All zero: for rounds without values.
    pub const ZERO: Self = Self {
        median: 0.0,
        min: 0.0,
        max: 0.0,
    };

    /// `None` if there are no values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self { median, min, max })
    }

    /// The same in another unit.
    #[must_use]
    pub fn by(self, factor: f64) -> Self {
        Self {
            median: self.median * factor,
            min: self.min * factor,
            max: self.max * factor,
        }
    }

    /// Minimum and maximum in words.
    pub fn range(self) -> String {
        format!("[{} .. {}]", number(self.min), number(self.max))
    }
}

/// Three digits, or all digits before the point.
pub fn number(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_the_median_is_between_two() {
        let spread = Spread::of(vec![4.0, 1.0, 3.0, 2.0]).expect("values");
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
