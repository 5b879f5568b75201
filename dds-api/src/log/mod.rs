//! The logs of PERSISTENT topics, as files: to read them in a program, and to look after them while no
//! participant writes them. `spindle log` does what is here.
//!
//! ```text
//!   log_places   which logs are below spindle.log.directory
//!   LogReader    reads one, and changes nothing
//!   LogLock      the logs of a domain are this process's: mend, compact, set_aside
//! ```
//!
//! ```no_run
//! use std::path::Path;
//!
//! use spindle_dds::log::{LogReader, log_places};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! for place in log_places(Path::new("/var/lib/app/log"))? {
//!     let mut log = LogReader::open(&place.path)?;
//!     let ty = log.data_type()?.ok_or("the log does not have its type")?;
//!     for logged in log.records(0) {
//!         let record = logged?.record;
//!         let meta = record.meta();
//!         if meta.kind == spindle_dds::log::MessageKind::Data {
//!             let encapsulation = spindle_dds::idl::Encapsulation(meta.encapsulation);
//!             println!("{}", ty.decode(record.payload(), encapsulation)?);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod aside;
mod change;
mod lock;
mod place;
mod reader;

pub use crate::history::LogCounters;
pub use change::CompactReport;
pub(crate) use change::now_ns;
pub use lock::LogLock;
pub use place::{LogPlace, log_places};
pub use reader::{LogReader, LogRecords};
/// What a log holds.
pub use spindle_dds_core::MessageKind;
pub use spindle_dds_core::storage::log::{
    LastRecord, LogError, LogFigures, LogHead, LogState, LoggedRecord, MendError, Mended,
    VerifyReport,
};
pub use spindle_dds_core::storage::{Generation, HistoryLimits, LogId, Record, RecordMeta, Roster};
