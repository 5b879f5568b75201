//! What a view is: members, subgroups, senders, ring sizes. Agreed by all.

use serde::{Deserialize, Serialize};
use spindle_dds_transport::{MEMBERS_MAX, Rank};

use crate::ids::TopicKey;
use crate::limits::{
    RING_BYTES_MAX, RING_BYTES_MIN, RING_MESSAGES_MAX, RING_MESSAGES_MIN, SUBGROUPS_MAX,
};

/// A view, the same at every member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewSpec {
    /// Seeds the digests, so that two views never agree by chance.
    pub view_id: u64,
    /// How many members; their ranks are `0..members`.
    pub members: usize,
    /// The subgroups; a [`SubgroupId`](crate::SubgroupId) is an index into this list.
    pub subgroups: Vec<SubgroupSpec>,
}

/// A subgroup of a view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubgroupSpec {
    /// Its members in ascending rank. A subgroup without members costs nothing.
    pub members: Vec<Rank>,
    /// Its senders in ascending rank, all of them members.
    pub senders: Vec<SenderSpec>,
    /// The topics that it carries.
    pub topics: Vec<TopicKey>,
}

/// A sender of a subgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderSpec {
    /// Who.
    pub rank: Rank,
    /// Its rings by [`Ring`](crate::Ring) index; `None` where it does not send.
    pub rings: [Option<RingSpec>; 2],
}

/// Sizes of a ring; both are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSpec {
    /// Message headers: how many messages can be in flight.
    pub messages: u32,
    /// Payload bytes. The largest message is half of this.
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
            .next_power_of_two();
        Self { messages, bytes }
    }

    /// As large as either.
    pub(crate) fn larger(self, other: Self) -> Self {
        Self {
            messages: self.messages.max(other.messages),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// Why a view cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Nobody, or too many.
    #[error("a view has 1 to {MEMBERS_MAX} members, this one {0}")]
    Members(usize),
    /// Too many subgroups.
    #[error("a view has at most {SUBGROUPS_MAX} subgroups, this one {0}")]
    Subgroups(usize),
    /// A list of ranks is not ascending, or names somebody outside.
    #[error(
        "subgroup {0}: members and senders must be ascending ranks of the view, senders members"
    )]
    Ranks(usize),
    /// A ring has a size that is not legal.
    #[error(
        "subgroup {subgroup}: a ring has a power of two of messages ({RING_MESSAGES_MIN} to \
         {RING_MESSAGES_MAX}) and of bytes ({RING_BYTES_MIN} to {RING_BYTES_MAX}), this one \
         {messages} and {bytes}"
    )]
    RingSize {
        /// Where.
        subgroup: usize,
        /// Messages asked for.
        messages: u32,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Two topics cannot be told apart by their headers.
    #[error("subgroup {0}: two topics have the same key; rename one of them")]
    TopicClash(usize),
}

impl ViewSpec {
    /// Whether the view can be; everything after relies on it.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.members == 0 || self.members > MEMBERS_MAX {
            return Err(SpecError::Members(self.members));
        }
        if self.subgroups.len() > SUBGROUPS_MAX {
            return Err(SpecError::Subgroups(self.subgroups.len()));
        }
        self.subgroups
            .iter()
            .enumerate()
            .try_for_each(|(at, group)| self.check_subgroup(at, group))
    }

    fn check_subgroup(&self, at: usize, group: &SubgroupSpec) -> Result<(), SpecError> {
        let ascending = |ranks: &[Rank]| {
            ranks.is_sorted_by(|a, b| a < b)
                && ranks.last().is_none_or(|last| last.index() < self.members)
        };
        let senders: Vec<Rank> = group.senders.iter().map(|sender| sender.rank).collect();
        let known = senders
            .iter()
            .all(|rank| group.members.binary_search(rank).is_ok());
        if !ascending(&group.members) || !ascending(&senders) || !known {
            return Err(SpecError::Ranks(at));
        }
        for ring in group
            .senders
            .iter()
            .flat_map(|sender| sender.rings.iter().flatten())
        {
            let RingSpec { messages, bytes } = *ring;
            if *ring != RingSpec::at_least(messages, bytes) {
                return Err(SpecError::RingSize {
                    subgroup: at,
                    messages,
                    bytes,
                });
            }
        }
        let mut topics: Vec<u64> = group.topics.iter().map(|topic| topic.low()).collect();
        topics.sort_unstable();
        if topics.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(SpecError::TopicClash(at));
        }
        Ok(())
    }
}
