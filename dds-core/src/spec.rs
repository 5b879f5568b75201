//! What an epoch is: members, senders, ring sizes. The same at all its members.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use crate::ids::{DeliveryClass, SubgroupId, TopicKey};
use crate::limits::{
    GRANULE, RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN,
};

/// A subgroup from one change of its members to the next: it has a segment, an
/// order and rings of its own. A member's index in [`members`](Self::members)
/// is its *place*: its rank in the epoch's segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubgroupSpec {
    /// Of which subgroup.
    pub subgroup: SubgroupId,
    /// The view that made it. Seeds the digest, so that two epochs never agree by chance.
    pub epoch: u64,
    /// Position at which its order begins: where that of the epoch before it ended.
    pub base: u64,
    /// By place: the member's rank in the control segment.
    pub members: Vec<Rank>,
    /// Its senders, in ascending place.
    pub senders: Vec<SenderSpec>,
    /// The topics that it carries.
    pub topics: Vec<TopicKey>,
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
    /// Message headers: how many messages can be in flight. A power of two.
    pub messages: u32,
    /// Payload bytes in flight, a multiple of [`GRANULE`]. The ring has
    /// [`memory`](Self::memory) for them, all of which messages of more than an eighth of
    /// this may take.
    pub bytes: u64,
}

impl RingSpec {
    /// The smallest ring of legal sizes that holds at least `messages` and `bytes`.
    pub fn at_least(messages: u32, bytes: u64) -> Self {
        let messages = messages
            .clamp(RING_MESSAGES_MIN, RING_MESSAGES_MAX)
            .next_power_of_two();
        let bytes = bytes
            .clamp(RING_BYTES_MIN, RING_BYTES_MAX)
            .next_multiple_of(GRANULE as u64);
        Self { messages, bytes }
    }

    /// Bytes of the ring's memory: the power of two at or above what is in flight. The
    /// largest message is half of it. What it is more keeps the sender away from where
    /// messages have just been read, which the readers' caches still hold: they and its own
    /// would contend for each line.
    pub const fn memory(&self) -> u64 {
        self.bytes.next_power_of_two()
    }

    /// As large as either.
    pub(crate) fn larger(self, other: Self) -> Self {
        Self {
            messages: self.messages.max(other.messages),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// Why an epoch cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No member, too many, or one member twice.
    #[error("subgroup {0}: an epoch has 1 to {MEMBERS_MAX} members, each once")]
    Members(SubgroupId),
    /// The list of senders is not ascending, or names a place outside.
    #[error("subgroup {0}: senders must be ascending places of the epoch")]
    Senders(SubgroupId),
    /// A ring has a size that is not legal.
    #[error(
        "subgroup {subgroup}: a ring has a power of two of messages ({RING_MESSAGES_MIN} to \
         {RING_MESSAGES_MAX}) and a multiple of {GRANULE} of bytes ({RING_BYTES_MIN} to \
         {RING_BYTES_MAX}), this one {messages} and {bytes}"
    )]
    RingSize {
        /// Where.
        subgroup: SubgroupId,
        /// Messages asked for.
        messages: u32,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Two topics cannot be told apart by their headers.
    #[error("subgroup {0}: two topics have the same key; rename one of them")]
    TopicClash(SubgroupId),
    /// The segment is not one of this epoch.
    #[error("subgroup {0}: the segment has other members than the epoch, or shorter rows")]
    Segment(SubgroupId),
    /// The epoch before it has not ended.
    #[error("subgroup {0}: the epoch before has not ended")]
    Occupied(SubgroupId),
}

impl SubgroupSpec {
    /// Whether the epoch can be; everything after relies on it.
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

    /// Position at which the order ends when it is cut at these counts, by
    /// sender: behind the last place in the order that anybody has taken.
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
