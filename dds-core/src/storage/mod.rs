//! The storage levels: what is kept of a topic for readers that come later, and how they get it.
//!
//! ```text
//!   keeper   delivered messages --> SampleHistory   marker at the boundary --> Snapshot --> Donor
//!                                                                                         | parts
//!   joiner   live messages from the boundary on --> Handover            Joiner <----------+
//!                                                      |                   | records, oldest first
//!                                                      +--> shown second   +--> shown first
//! ```
//!
//! The *boundary* of a match is the base of the subgroup epoch in which it begins: all members come
//! to it at the same place of the order. What a keeper has delivered before is history, what is
//! delivered from there on is live. So the two meet without a gap, and nothing is in both.
//!
//! A reader pulls: it grants a donor two parts, and another one for each that it has read. A donor
//! never has more than that on its way, however much is kept.
//!
//! State machines without I/O, threads and clocks, as the rest of the crate. Sources: the volatile
//! storage level of the Derecho DDS (Spindle, §V-C); DURABILITY, DURABILITY_SERVICE and HISTORY of
//! DDS 1.4 (§2.2.3.4, §2.2.3.5, §2.2.3.18). The paper's *volatile storage* is TRANSIENT_LOCAL and
//! TRANSIENT here; VOLATILE in DDS means that nothing is kept.

mod donor;
mod handover;
mod history;
mod joiner;
mod keeper;
mod levels;
pub mod log;
mod record;
mod roster;

pub use donor::{Donor, DonorReply, PARTS_GRANTED};
pub use handover::Handover;
pub use history::{HistoryLimit, HistoryLimits, Put, SampleHistory, Snapshot};
pub use joiner::{Joiner, JoinerAsk, JoinerState, PartError, TransferProgress};
pub use keeper::{CompactionTime, KeeperStatus, LogKeeper, LogMarker, LogPacket, SyncMode};
pub use levels::{Degree, EpochKey, EpochPlace, LogLevels, Logged};
pub use record::{Cursor, HEAD_LEN, PART_LEN_MAX, Record, RecordMeta};
pub use roster::{Generation, LogEnd, LogGroup, LogGroupState, LogId, LogSource, Logger, Roster};
