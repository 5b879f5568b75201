//! The `Fabric` contract and its backends: rows of bytes, pushes, peers.
//!
//! Each member of a segment owns one row of memory, writes only that, and reads
//! its copies of the others'. [`Fabric`] says what every backend promises about
//! it (clauses F1 to F7), [`Park`] how a member sleeps.
//!
//! ```text
//!   dds-core         the group engine: stores, pushes, rings, looks, sleeps
//!      |
//!   ---+------------------------- Fabric, Park --------------------------
//!      |
//!      +-- shm   rows are mapped; a push is at most a doorbell   (one host)
//!      +-- mixed my host's members by shm, the others by     (several hosts)
//!      |   verbs a queue pair a pair; a push is a write of the device (feature), or
//!      |   tcp   a connection a pair; a push is a record in it
//!      +-- sim   all the freedom of the contract, from a seed    (tests)
//!
//!   mem          what a row is: atomic words, bytes that a word vouches for
//!   sleep        the one handshake that all backends sleep by, run under loom
//!   duty         who of a process is woken by it, run under loom
//! ```
//!
//! A backend is a folder: set-up and data path in files of their own. One suite
//! (`tests/conformance`) runs each clause over each of them, and over simulators with a
//! planted bug that it has to notice.
//!
//! This crate knows nothing of views, topics or messages.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

mod counters;
mod eventfd;
mod fabric;
mod failures;
pub mod hybrid;
mod mapping;
pub mod mem;
mod peers;
pub mod poller_role;
mod queue;
mod rdma;
mod segment;
pub mod shm;
pub mod sim;
pub mod sleep;
mod station_error;
mod station_event;
pub mod tcp;
pub mod ticks;
#[cfg(feature = "verbs")]
mod verbs;
#[cfg(not(feature = "verbs"))]
#[path = "no_verbs.rs"]
mod verbs;

pub use fabric::{
    FABRIC_AREA, Fabric, FabricCounters, FailureCause, MessagePush, Park, ParkSlots, PeerFailure,
    Sleeper, WakeInterest,
};
pub use mem::{Region, Words};
pub use peers::{MEMBERS_MAX, PeerSet, Rank};
pub use rdma::{BATCH_CLASSES, CHAIN_CLASSES, RdmaCounters, RdmaOptions};
pub use segment::{SegmentKey, SegmentRequest};
pub use station_error::StationError;
pub use station_event::{MESSAGE_LEN_MAX, StationEvent};
pub use verbs::RdmaError;
