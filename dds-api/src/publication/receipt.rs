//! What a write returns.

use spindle_dds_core::Committed;

use crate::handle::Guid;

/// Names a sample that was written, to wait for its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) committed: Option<Committed>,
    /// How often the participant had come back to its group when it was written.
    pub(crate) returns: u32,
    /// The writer of the sample.
    pub(crate) writer: Guid,
}

impl Receipt {
    /// Whether the sample was dropped: a BEST_EFFORT writer found no room.
    pub const fn was_dropped(&self) -> bool {
        self.committed.is_none()
    }

    /// The index of its message among those of this participant in the same subgroup and
    /// with the same reliability; nulls count. `None` if it was dropped.
    pub const fn message_index(&self) -> Option<u64> {
        match &self.committed {
            Some(committed) => Some(committed.index),
            None => None,
        }
    }
}
