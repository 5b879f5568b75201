//! Sets of statuses.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of communication statuses (DDS 1.4 §2.2.4.1, `StatusMask`), with the
/// bits of the standard's IDL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StatusMask(u32);

macro_rules! statuses {
    ($( $(#[$doc:meta])* $name:ident = $bit:literal, )+) => {
        impl StatusMask {
            $( $(#[$doc])* pub const $name: Self = Self(1 << $bit); )+

            const NAMES: &'static [(Self, &'static str)] =
                &[$((Self::$name, stringify!($name))),+];
        }
    };
}

statuses! {
    /// Another topic of the same name has another type.
    INCONSISTENT_TOPIC = 0,
    /// A writer did not keep its DEADLINE.
    OFFERED_DEADLINE_MISSED = 1,
    /// A reader saw a DEADLINE missed.
    REQUESTED_DEADLINE_MISSED = 2,
    /// A reader asks for more than a writer offers, at the writer.
    OFFERED_INCOMPATIBLE_QOS = 5,
    /// A reader asks for more than a writer offers, at the reader.
    REQUESTED_INCOMPATIBLE_QOS = 6,
    /// A sample was lost: a BEST_EFFORT writer dropped it, or its bytes were invalid.
    SAMPLE_LOST = 7,
    /// A sample was refused for lack of room.
    SAMPLE_REJECTED = 8,
    /// Some reader of a subscriber has data.
    DATA_ON_READERS = 9,
    /// A reader has data.
    DATA_AVAILABLE = 10,
    /// A writer failed to prove that it is alive.
    LIVELINESS_LOST = 11,
    /// The liveliness of a matched writer changed.
    LIVELINESS_CHANGED = 12,
    /// A writer found, or lost, a reader.
    PUBLICATION_MATCHED = 13,
    /// A reader found, or lost, a writer.
    SUBSCRIPTION_MATCHED = 14,
}

impl StatusMask {
    /// No status.
    pub const NONE: Self = Self(0);
    /// Every status, those of later versions included.
    pub const ALL: Self = Self(u32::MAX);

    /// The set with these bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bits of the standard's `StatusMask`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether no status is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `other` is in it.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in it.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for StatusMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for StatusMask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for StatusMask {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for StatusMask {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::Debug for StatusMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("ALL");
        }
        let names = Self::NAMES
            .iter()
            .filter(|(status, _)| self.contains(*status));
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_the_standards() {
        assert_eq!(StatusMask::OFFERED_INCOMPATIBLE_QOS.bits(), 1 << 5);
        assert_eq!(StatusMask::SUBSCRIPTION_MATCHED.bits(), 1 << 14);
        let both = StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST;
        assert!(both.contains(StatusMask::SAMPLE_LOST) && !both.is_empty());
        assert!(!(both & !StatusMask::SAMPLE_LOST).contains(StatusMask::SAMPLE_LOST));
    }
}
