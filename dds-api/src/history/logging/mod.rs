//! The logs of PERSISTENT topics: what a participant with a `spindle.log.directory` writes to its disk.
//!
//! ```text
//!   Sink --held messages, beginnings of views--> Feed --> log thread --> LogKeeper of each topic --> files
//!   control thread --packets of other loggers--> Feed -->     |
//!                                                             +--> its word in the subgroup's row
//!                                                             +--> announcements of the log
//!                                                             +--> TopicHistory, for readers
//! ```
//!
//! What a log does is decided by [`LogKeeper`](spindle_dds_core::storage::LogKeeper). Here is what
//! surrounds it: a thread, the files, packets, and the log endpoint by which the group knows the log.

mod changes;
mod compacting;
mod counters;
mod figures;
mod notice;
mod packet;
mod service;
mod thread;
mod topic;

pub(crate) use changes::LogChange;
pub use counters::LogCounters;
#[cfg(test)]
pub(crate) use notice::LogTrouble;
pub(crate) use notice::{KIND as LOG_NOTICE_KIND, LogNotice, LogTroubles, Troubled};
pub(crate) use packet::{KINDS as LOG_KINDS, LogMessage};
pub(crate) use service::{LogFill, LogService};
pub(crate) use thread::{LogItem, LogPlace, LogView};
pub(crate) use topic::{HeldMessage, LoggedTopic};
