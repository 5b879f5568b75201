//! The log of a topic: its delivered messages on a disk, in the order of their subgroup.
//!
//! ```text
//!   superblock                 identity of the log, rosters, where it begins   replaced by rename
//!   head                       the topic: name, type, limits                    replaced by rename
//!   0000000000000001.segment   96 bytes of head, then records                   appended to
//!   00000000000a3f20.segment   ...
//! ```
//!
//! # Integrity
//! Each record carries a CRC32C of what it says, and a chain value: the CRC32C of the chain value of
//! the record before and its own CRC. Equal chain values at one position mean equal records up to
//! there, and a record that is lost or exchanged is noticed at the next one.
//!
//! # What a crash leaves
//! Of what was not synced, anything may be there. A record says up to which offset of its segment all
//! was synced when it was written. So at the end of the last segment a bad record is a *torn tail*
//! and is cut, unless what follows, or the superblock, says that it was synced. Then it is *damage*,
//! and the log is refused. All segments but the last are synced before the next one begins: what is
//! bad in them is damage.
//!
//! # Errors
//! A full disk leaves the log as it was before the call. After any other error of a write, and any of
//! a sync, the log takes no more for the life of the process: what the kernel has dropped since is
//! not known, and a second `fsync` would say that all is well.

mod compact;
mod compaction;
mod disk;
mod error;
mod figures;
mod layout;
mod logged_record;
mod mend;
mod meta;
mod open;
mod read;
mod scan;
mod segment;
mod sim_disk;
mod topic_log;
mod verify;
mod walk;

pub use compaction::{Compaction, InstanceOf};
pub use disk::{Disk, DiskError};
pub use error::LogError;
pub use figures::LogFigures;
pub use logged_record::LoggedRecord;
pub use mend::{MendError, Mended};
pub use meta::{LogHead, LogState};
pub use open::OpenReport;
pub use sim_disk::SimDisk;
pub use topic_log::{LastRecord, SEGMENT_BYTES, TopicLog};
pub use verify::VerifyReport;

#[cfg(all(test, not(loom)))]
mod tests;
