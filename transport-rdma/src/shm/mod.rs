//! Memory mapped between the processes of one host.
//!
//! Every member's row is a memory file, mapped writable by its owner and read-only by the
//! others. A push copies nothing; it is at most the wake-up of a sleeper.
//!
//! ```text
//!     process 0                    kernel                     process 1
//!   +-----------+            +----------------+             +-----------+
//!   | row 0  rw |----------->| memory file 0  |<------------| row 0  r  |
//!   | row 1  r  |----------->| memory file 1  |<------------| row 1  rw |
//!   +-----------+            +----------------+             +-----------+
//!        ^   poll            pidfds, doorbells                  ^   park
//!        +---- its process ended: reported by the kernel -------+
//! ```
//!
//! A [`Station`] (`station`) exists as long as its participant: peers connect to it, and
//! [`ShmSegment`]s are opened and closed. The [`DomainRegistry`] (`domain_registry`, over
//! `view_record`) holds the decisions about a domain that must be unique.
//!
//! Below them are rows (`memory`), the domain's record and what happens when its files fail or
//! are removed (`domain`, `locked_record`), the files (`domain_files`, `record_file`,
//! `station_name`, `file_lock`, `default_directory`), a sign of life beside them (`presence`),
//! packets (`socket`), descriptors (`descriptor`), facts about processes (`process`), and the
//! kinds of doorbells (`doorbell`).
//!
//! Members trust each other as processes of one user do: a descriptor from another user is
//! never accepted; one of the same user is checked for its kind. Members may live in different
//! pid namespaces (containers) if they share the directory: a member watches another one by a
//! pidfd that it got through the socket between them, and asks whether a process that it is
//! not connected with is alive by connecting to its socket. A process that forks keeps its
//! membership; the child has none, and must use neither station nor fabric.

mod default_directory;
mod descriptor;
mod domain;
mod domain_files;
mod domain_registry;
mod doorbell;
pub(crate) mod error;
mod file_lock;
mod locked_record;
mod memory;
mod presence;
mod process;
mod record_file;
mod socket;
mod station;
mod station_name;
mod view_record;

pub use crate::station::error::StationError;
pub use crate::station::event::{MESSAGE_LEN_MAX, StationEvent};
pub use default_directory::default_domain_directory;
pub use domain::host_id;
pub use domain_registry::{DecisionRefused, DomainRegistry, DomainState, EnterOutcome};
pub use doorbell::DoorbellChoice;
pub use error::SetupError;
pub use station::{HostOptions, SegmentKey, SegmentRequest, ShmSegment, Station};
pub use view_record::{MemberEntry, ViewDecision};
