//! What a write returns.

use spindle_dds_core::Committed;

use crate::handle::Guid;

/// Names a sample that was written, to wait for its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) sent: SentAs,
    /// How often the participant had come back to its group when it was written.
    pub(crate) returns: u32,
    /// The writer of the sample.
    pub(crate) writer: Guid,
}

/// What has become of a sample when its write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentAs {
    /// A BEST_EFFORT writer found no room.
    Dropped,
    /// It has its place in the order.
    Committed(Committed),
    /// It waits in the writer's history, with this ticket.
    Waiting(u64),
}

impl Receipt {
    /// Whether the sample was dropped: a BEST_EFFORT writer found no room.
    pub const fn was_dropped(&self) -> bool {
        matches!(self.sent, SentAs::Dropped)
    }

    /// Whether the sample had to wait in the writer's history when its write returned: it is sent in
    /// its turn, unless HISTORY replaces it before.
    pub const fn had_to_wait(&self) -> bool {
        matches!(self.sent, SentAs::Waiting(_))
    }

    /// The index of its message among those of this participant in the same subgroup and
    /// with the same reliability; nulls count. `None` if it was dropped, or had to wait.
    pub const fn message_index(&self) -> Option<u64> {
        match &self.sent {
            SentAs::Committed(committed) => Some(committed.index),
            SentAs::Dropped | SentAs::Waiting(_) => None,
        }
    }
}
