//! The specification of a subgroup epoch: members, senders, ring sizes. Equal at all members.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use crate::ids::{DeliveryClass, SubgroupId, TopicKey};
use crate::limits::{
    GRANULE, RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN,
};

/// A subgroup epoch: a subgroup from one change of its members or senders to the next, with a
/// segment, an order and rings of its own. A member's index in [`members`](Self::members)
/// is its *place*: its rank in the epoch's segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubgroupSpec {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// Id of the view in which the epoch begins. Seeds the digest, so that the digests of two
    /// epochs differ.
    pub epoch: u64,
    /// First position of its order: the end of the epoch before.
    pub base: u64,
    /// By place: the rank in the control segment. 1 to `MEMBERS_MAX`, each once.
    pub members: Vec<Rank>,
    /// Its senders, by ascending place.
    pub senders: Vec<SenderSpec>,
    /// Its topics. The low halves of their keys are distinct.
    pub topics: Vec<TopicKey>,
    /// Whether any of its topics has logs: only then members say up to where they have persisted it.
    pub is_logged: bool,
}

/// A sender of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderSpec {
    /// Its place in the epoch.
    pub rank: Rank,
    /// Its rings by [`DeliveryClass`] index; `None` where it does not send.
    pub rings: [Option<RingSpec>; 2],
}

/// Sizes of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSpec {
    /// Message headers, which is the most messages in flight. A power of two.
    pub messages: u32,
    /// Most payload bytes in flight, a multiple of [`GRANULE`]. Messages larger than an eighth
    /// of this may take all of the ring's [`memory`](Self::memory).
    pub bytes: u64,
}

impl RingSpec {
    /// The smallest legal ring that holds at least `messages` and `bytes`, within the limits.
    pub fn at_least(messages: u32, bytes: u64) -> Self {
        let messages = messages
            .clamp(RING_MESSAGES_MIN, RING_MESSAGES_MAX)
            .next_power_of_two();
        let bytes = bytes
            .clamp(RING_BYTES_MIN, RING_BYTES_MAX)
            .next_multiple_of(GRANULE as u64);
        Self { messages, bytes }
    }

    /// Bytes of the ring's memory: the power of two at or above [`bytes`](Self::bytes). The
    /// largest message is half of it. The excess keeps the sender away from cache lines that
    /// readers have just read, for which their caches and the sender's would contend.
    pub const fn memory(&self) -> u64 {
        self.bytes.next_power_of_two()
    }

    /// The smallest ring that is at least as large as both.
    pub(crate) fn larger(self, other: Self) -> Self {
        Self {
            messages: self.messages.max(other.messages),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// Why a specification is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No members, too many, or one member twice.
    #[error("subgroup {0}: an epoch has 1 to {MEMBERS_MAX} members, each once")]
    Members(SubgroupId),
    /// The senders are not ascending, or not all of them are members.
    #[error("subgroup {0}: senders must be ascending places of the epoch")]
    Senders(SubgroupId),
    /// A ring does not have a legal size.
    #[error(
        "subgroup {subgroup}: a ring has a power of two of messages ({RING_MESSAGES_MIN} to \
         {RING_MESSAGES_MAX}) and a multiple of {GRANULE} of bytes ({RING_BYTES_MIN} to \
         {RING_BYTES_MAX}), this one {messages} and {bytes}"
    )]
    RingSize {
        /// The subgroup.
        subgroup: SubgroupId,
        /// Messages asked for.
        messages: u32,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Two topics have the same key in message headers.
    #[error("subgroup {0}: two topics have the same key; rename one of them")]
    TopicClash(SubgroupId),
    /// The segment does not fit the epoch.
    #[error("subgroup {0}: the segment has other members than the epoch, or shorter rows")]
    Segment(SubgroupId),
    /// The memory was made for another epoch, or another member.
    #[error("subgroup {0}: the memory was made for another epoch or member")]
    Memory(SubgroupId),
    /// The previous epoch of the subgroup has not ended.
    #[error("subgroup {0}: the previous epoch has not ended")]
    Occupied(SubgroupId),
}

impl SubgroupSpec {
    /// Checks all invariants of the fields. The rest of the crate relies on it.
    pub fn check(&self) -> Result<(), SpecError> {
        let subgroup = self.subgroup;
        let mut members = self.members.clone();
        members.sort_unstable();
        if members.is_empty() || members.len() > MEMBERS_MAX || !members.is_sorted_by(|a, b| a < b)
        {
            return Err(SpecError::Members(subgroup));
        }
        let places = self.senders.iter().map(|sender| sender.rank);
        let known = places
            .clone()
            .all(|place| place.index() < self.members.len());
        if !known || !places.is_sorted_by(|a, b| a < b) {
            return Err(SpecError::Senders(subgroup));
        }
        let rings = self.senders.iter().flat_map(|sender| sender.rings);
        for ring in rings.flatten() {
            let RingSpec { messages, bytes } = ring;
            if ring != RingSpec::at_least(messages, bytes) {
                return Err(SpecError::RingSize {
                    subgroup,
                    messages,
                    bytes,
                });
            }
        }
        let mut topics: Vec<u64> = self.topics.iter().map(|topic| topic.low()).collect();
        topics.sort_unstable();
        if topics.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(SpecError::TopicClash(subgroup));
        }
        Ok(())
    }

    /// The senders that have an ordered ring.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = &SenderSpec> + Clone {
        let has_ring =
            |sender: &&SenderSpec| sender.rings[DeliveryClass::Ordered.index()].is_some();
        self.senders.iter().filter(has_ring)
    }

    /// End of the order if it is trimmed to these counts, by sender: the position after the last
    /// message of any sender.
    pub fn end(&self, counts: &[u64]) -> u64 {
        let n = self.ordered().count() as u64;
        let counted = self.senders.iter().zip(counts);
        let ordered =
            counted.filter(|(sender, _)| sender.rings[DeliveryClass::Ordered.index()].is_some());
        let ends = (0..)
            .zip(ordered)
            .filter(|(_, (_, count))| **count > 0)
            .map(|(at, (_, count)): (u64, _)| (count - 1) * n + at + 1);
        self.base + ends.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_hold_what_is_asked_for_in_memory_that_wraps() {
        let ring = |messages, bytes| {
            let ring = RingSpec::at_least(messages, bytes);
            (ring.messages, ring.bytes, ring.memory())
        };
        assert_eq!(ring(0, 0), (2, 128, 128));
        assert_eq!(ring(3, 129), (4, 144, 256));
        assert_eq!(ring(4096, 5 << 20), (4096, 5 << 20, 8 << 20));
        let most = (RING_MESSAGES_MAX, RING_BYTES_MAX, RING_BYTES_MAX);
        assert_eq!(ring(u32::MAX, u64::MAX), most);
        assert_eq!(ring(u32::MAX, RING_BYTES_MAX - 8), most);
    }
}
