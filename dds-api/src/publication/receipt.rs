//! What a write hands back.

use spindle_dds_core::Committed;

use crate::handle::Guid;

/// A sample that was written: to ask about, or to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) committed: Option<Committed>,
    /// Who wrote it.
    pub(crate) writer: Guid,
}

impl Receipt {
    /// Whether the sample was dropped: a BEST_EFFORT writer found no room.
    pub const fn was_dropped(&self) -> bool {
        self.committed.is_none()
    }

    /// Which message of this participant it is, among those of the same
    /// subgroup and reliability; nulls are counted.
    pub const fn message_index(&self) -> Option<u64> {
        match &self.committed {
            Some(committed) => Some(committed.index),
            None => None,
        }
    }
}
