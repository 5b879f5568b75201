//! What happens to kept messages, as the checkers are told.

use std::collections::BTreeMap;

use spindle_dds_core::SubgroupId;
use spindle_dds_core::membership::MemberId;
use spindle_dds_core::storage::RecordMeta;

use super::announcement::{Guid, Level, Topic};
use super::matching::{Source, Transfer};

/// A fact about storage.
#[derive(Debug, Clone)]
pub(crate) enum StorageFact {
    /// A message of a writer with a storage level was delivered at a member.
    Kept {
        subgroup: SubgroupId,
        epoch: u64,
        level: Level,
        topic: Topic,
        message: RecordMeta,
    },
    /// The history of a topic begins anew with this epoch: no keeper is left of an earlier one.
    BeginsAnew { subgroup: SubgroupId, epoch: u64 },
    /// A reader is in an epoch, in which it meets these writers; `is_new` if it is its first one.
    Meets {
        reader: Guid,
        is_new: bool,
        epoch: u64,
        writers: Vec<Guid>,
    },
    /// A participant has come back and does not know which of these messages of its writer the
    /// group has delivered: those after the first number, up to the second one.
    Unsure { writer: Guid, after: u64, last: u64 },
    /// A donor has pinned a history, which must be this.
    Pinned {
        transfer: Transfer,
        source: Source,
        must_be: Vec<RecordMeta>,
    },
    /// A donor does not know a transfer.
    Unknown {
        transfer: Transfer,
        was_dropped: bool,
    },
    /// A joiner refuses a part.
    Refused { transfer: Transfer, why: String },
    /// A joiner has parts of one source that it has not read.
    Unread { transfer: Transfer, parts: usize },
    /// A reader keeps something aside.
    Aside {
        reader: Guid,
        items: usize,
        bytes: usize,
        bytes_max: usize,
    },
    /// A reader shows a message: of history, or a live one.
    Shown {
        reader: Guid,
        transfer: Option<Transfer>,
        message: RecordMeta,
    },
    /// A transfer has ended. What came is in order.
    Transferred {
        transfer: Transfer,
        after: BTreeMap<Guid, u64>,
        sources: Vec<SourceEnd>,
        came: Vec<RecordMeta>,
    },
    /// At rest: what a member still has of transfers.
    AtRest {
        member: MemberId,
        awaiting: usize,
        pinned: usize,
        aside_bytes: usize,
    },
    /// At rest: a reader of a member that reads.
    ReaderAtRest { reader: Guid },
}

/// How a source of a transfer ended.
#[derive(Debug, Clone)]
pub(crate) struct SourceEnd {
    /// The donors that were asked.
    pub(crate) asked: Vec<Source>,
    /// No donor was left before its end.
    pub(crate) is_lost: bool,
    /// TRANSIENT_LOCAL: the writers of the donor.
    pub(crate) writers: Vec<Guid>,
    pub(crate) level: Level,
}
