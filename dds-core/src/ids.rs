//! Identifiers, as types of their own so that they are not mixed up.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Number of a subgroup in its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubgroupId(pub u32);

impl SubgroupId {
    /// As an index into per-subgroup arrays.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for SubgroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identity of a topic: 128 bits of a hash of its name. Headers carry the low
/// half; an epoch with two topics whose low halves are equal is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicKey(pub u128);

impl TopicKey {
    /// The key of a topic name: FNV-1a over its bytes, 128 bits wide, so that
    /// every process and every build computes the same one.
    pub fn of_name(name: &str) -> Self {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        Self(name.bytes().fold(BASIS, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(PRIME)
        }))
    }

    /// The half in message headers.
    pub const fn low(self) -> u64 {
        self.0 as u64
    }

    /// The subgroup of the topic in a domain with `count` subgroups.
    pub const fn subgroup(self, count: u32) -> SubgroupId {
        // From the high half: the low half distinguishes the topics of a subgroup.
        SubgroupId(((self.0 >> 64) as u64 % count as u64) as u32)
    }
}

/// How the messages of a ring are delivered. A sender has at most one ring of each class in a
/// subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeliveryClass {
    /// Messages in the total order (levels Atomic and up).
    Ordered = 0,
    /// Messages delivered on receipt, in order of their sender (level Unordered).
    Unordered = 1,
}

impl DeliveryClass {
    /// Both classes, by index.
    pub const BOTH: [Self; 2] = [Self::Ordered, Self::Unordered];

    /// As an index into pairs.
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_keys_are_the_same_everywhere() {
        assert_eq!(TopicKey::of_name("").0, 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(TopicKey::of_name("a").0, 0xd228cb696f1a8caf78912b704e4a8964);
        assert!(TopicKey::of_name("Square").subgroup(7).0 < 7);
    }
}
