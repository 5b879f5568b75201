//! The standard's `LENGTH_UNLIMITED` and the limits beside it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A limit on a number of things, or none (`LENGTH_UNLIMITED`, DDS 1.4 §2.2.3.19).
///
/// It orders by what it lets through, [`Length::Unlimited`] being the greatest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Length {
    /// At most this many.
    Limited(u32),
    /// As many as memory holds.
    #[default]
    Unlimited,
}

impl Length {
    /// The limit, or `None` when there is none.
    pub const fn limit(self) -> Option<u32> {
        match self {
            Self::Limited(limit) => Some(limit),
            Self::Unlimited => None,
        }
    }

    /// Whether `count` things stay within the limit.
    pub const fn allows(self, count: u64) -> bool {
        match self {
            Self::Limited(limit) => count <= limit as u64,
            Self::Unlimited => true,
        }
    }

    /// How many things may be added to `count`.
    pub const fn left(self, count: u64) -> u64 {
        match self {
            Self::Limited(limit) => (limit as u64).saturating_sub(count),
            Self::Unlimited => u64::MAX,
        }
    }
}

impl From<u32> for Length {
    fn from(limit: u32) -> Self {
        Self::Limited(limit)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(limit) => limit.fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_is_the_greatest() {
        assert!(Length::Limited(u32::MAX) < Length::Unlimited);
        assert!(Length::Unlimited.allows(u64::MAX));
        assert!(Length::from(3).allows(3) && !Length::from(3).allows(4));
    }
}
