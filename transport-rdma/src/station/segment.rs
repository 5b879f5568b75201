//! What members agree on before they make a segment.

use std::collections::BTreeSet;

use crate::fabric::peers::{MEMBERS_MAX, Rank};

/// Identifies a segment among those of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    /// The epoch in which it was made; rises with every view.
    pub epoch: u64,
    /// Number of the segment within its epoch.
    pub index: u32,
}

impl SegmentKey {
    /// The bucket in which members find news of this segment: see
    /// [`Fabric::news`](crate::Fabric::news). Segments of one epoch with consecutive numbers are
    /// in different ones.
    pub(crate) const fn news_bucket(self) -> u8 {
        (self.index as u64).wrapping_add(self.epoch.wrapping_mul(61)) as u8
    }
}

/// A segment to be made; the same at all its members except for `me`.
#[derive(Debug, Clone)]
pub struct SegmentRequest {
    /// Its key.
    pub key: SegmentKey,
    /// Ids of the members, by rank; at most 256.
    pub members: Vec<u128>,
    /// My rank among them.
    pub me: Rank,
    /// Length of each member's row in bytes, by rank.
    pub row_lens: Vec<usize>,
    /// Whether its fabric reports failures.
    pub control: bool,
}

impl SegmentRequest {
    /// Why participant `id` cannot make this segment, if it cannot.
    pub(crate) fn problem(&self, id: u128) -> Option<String> {
        let count = self.members.len();
        if !(1..=MEMBERS_MAX).contains(&count) || count != self.row_lens.len() {
            let rows = self.row_lens.len();
            return Some(format!(
                "{count} members and {rows} rows, not as many, 1 to {MEMBERS_MAX}"
            ));
        }
        if self.members.get(self.me.index()) != Some(&id) {
            return Some(format!("rank {} is not member {id:032x}", self.me));
        }
        let distinct: BTreeSet<_> = self.members.iter().collect();
        (distinct.len() < count).then(|| "a member is named twice".to_owned())
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = (Rank, u128)> + '_ {
        let ranks = (0..).map(Rank).zip(self.members.iter().copied());
        ranks.filter(|&(rank, _)| rank != self.me)
    }
}
