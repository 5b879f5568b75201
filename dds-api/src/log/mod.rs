//! The logs of PERSISTENT topics, as files: to read them in a program, and to look after them while no
//! participant writes them. `spindle log` does what is here.
//!
//! ```text
//!   log_places   which logs are below spindle.log.directory
//!   LogReader    reads one; changes nothing
//!   LogLock      for those that write: no participant has the directory
//! ```

mod aside;
mod lock;
mod place;

pub use lock::LogLock;
pub use place::{LogPlace, log_places};
