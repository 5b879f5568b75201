//! The history of durable topics: what a participant keeps, and how its readers get it.
//!
//! ```text
//!   Sink --held messages, markers--> Feed --> history thread --> KeptHistory of each writer
//!   control thread --packets-------> Feed -->   Donating: snapshots of these, for joiners
//!                                               Getting: from donors --> ReaderPort
//! ```
//!
//! A writer's participant keeps its history from DURABILITY TRANSIENT_LOCAL on. A match begins where a
//! subgroup epoch begins: there the engine puts a marker between the messages, at which the history of the
//! writers that newly match a reader is pinned for it ([`Donating`](donating::Donating)), and the reader
//! begins to await it ([`Getting`](getting::Getting)). Both sides decide by the announcements of the view
//! which writers these are. What is transferred is pulled: see `spindle_dds_core::storage`.

mod donating;
mod feed;
mod getting;
mod kept;
mod log_disk;
mod logging;
mod outbox;
mod packet;
mod progress;
mod service;
mod thread;

pub(crate) use feed::{FeedItem, NewTopic, NewTransfer, Pin, PinPart, ViewMarker};
pub(crate) use kept::{KeptHistory, KeptWriter, TopicHistory, service_limits};
pub use log_disk::LogDirectory;
pub use logging::LogCounters;
#[cfg(test)]
pub(crate) use logging::LogTrouble;
pub(crate) use logging::{
    HeldMessage, LOG_KINDS, LOG_NOTICE_KIND, LogChange, LogItem, LogMessage, LogNotice, LogPlace,
    LogService, LogTroubles, LogView, LoggedTopic, Troubled,
};
pub(crate) use packet::{HistoryContent, HistoryPacket, KINDS as HISTORY_KINDS, TransferName};
pub(crate) use service::HistoryService;
pub(crate) use thread::record_meta;

/// Names one transfer of history to a reader of this participant. A transfer of a later epoch of the
/// reader has a greater number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransferId(pub(crate) u64);

/// What a reader has done with records that it was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryOffer {
    /// It has taken all.
    Taken,
    /// The next record waits until a take makes room.
    Full,
    /// It takes no record of this transfer any more.
    Closed,
    /// It has not come to the epoch of the transfer.
    NotYet,
}

/// The end of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HistoryEnd {
    /// The last sequence number of each writer in the history, by GUID.
    pub(crate) lasts: Vec<([u8; 16], u64)>,
    /// Sources of which no donor was left before their end.
    pub(crate) lost_sources: usize,
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HistoryProgress {
    /// Records that have come.
    pub(crate) samples: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Donors that more is to come from.
    pub(crate) donors: usize,
}
