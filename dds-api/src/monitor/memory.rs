//! What a participant's memory is used for.

use serde::{Deserialize, Serialize};

/// Memory of a participant that serves one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFigures {
    /// The purpose.
    pub kind: MemoryKind,
    /// Bytes that are mapped or allocated. Of mapped memory, most is never used.
    pub bytes: u64,
    /// Bytes of these that this process has in memory; `None` if the kernel does not tell. Rows are
    /// shared: each process that uses a page counts it.
    pub resident_bytes: Option<u64>,
}

/// The purposes of a participant's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Its row of the view's control segment.
    OwnControlRow,
    /// What it acknowledges, and its digests, in its rows of subgroups.
    OwnState,
    /// The headers of its rings.
    OwnHeaders,
    /// The payload of its rings: samples that were written and not released, and loans.
    OwnPayload,
    /// The rows of other members, as far as this process has them mapped.
    PeerRows,
    /// What it notes about the messages of all rings.
    Bookkeeping,
    /// What is prepared for a view that is not installed, of all purposes above.
    Prepared,
    /// The samples and instances of its readers' caches, with their history, and buffers for copies.
    ReaderCaches,
    /// What waits for its readers.
    ArrivalQueues,
    /// The slots in which its writers build samples, and samples that are kept to be sent again.
    Writers,
}

impl MemoryKind {
    /// All kinds, in the order of their figures.
    pub const ALL: [Self; 10] = [
        Self::OwnControlRow,
        Self::OwnState,
        Self::OwnHeaders,
        Self::OwnPayload,
        Self::PeerRows,
        Self::Bookkeeping,
        Self::Prepared,
        Self::ReaderCaches,
        Self::ArrivalQueues,
        Self::Writers,
    ];
}
