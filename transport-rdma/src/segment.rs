//! What is agreed on of a segment before it is made.

use std::collections::BTreeSet;

use crate::peers::{MEMBERS_MAX, Rank};

/// Identifies a segment among those of its members: the epoch in which it was
/// made, and which of that epoch it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    /// Rises with every view.
    pub epoch: u64,
    /// Which of them.
    pub index: u32,
}

/// A segment to be made: the same at all its members, but for `me`.
#[derive(Debug, Clone)]
pub struct SegmentRequest {
    /// Which one.
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
    /// Why participant `id` cannot make it.
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
