//! The `Fabric` contract and its backends: rows of bytes, pushes, peers.
//!
//! Each member of a segment owns one row of memory, writes only that, and reads its copies of
//! the others. [`Fabric`] is the contract of every backend (clauses F1 to F7); [`Park`] is how
//! a member sleeps.
//!
//! ```text
//!   dds-core          the group engine: stores, pushes, wakes, polls, sleeps
//!      |
//!   ---+------------------------- Fabric, Park --------------------------
//!      |
//!      +-- shm     rows are mapped; a push is at most a wake-up    (one host)
//!      +-- hybrid  members on my host by shm, the others by        (several hosts)
//!      |   verbs   one queue pair each; a push is a write of the device (feature), or
//!      |   tcp     one connection each; a push is a record in its stream
//!      +-- sim     all the freedom of the contract, from a seed    (tests)
//!
//!   fabric      the contract; peers, failures and counters
//!   memory      rows: atomic words, and bytes that a word vouches for
//!   sleep       the handshake by which all backends sleep, which thread of a process is woken
//!               (`poller_role`), and several woken at once (`broadcast`); all run under loom
//!   fork        what a child of `fork` has inherited
//!   library_thread   how the threads of the library are started
//!   retry       what the error of a system call says about the next attempt
//!   station     segments, events and errors that all kinds of stations have in common
//!   push_queue  the queue of pushes to one peer, of tcp and verbs
//!   rdma        options and counters of RDMA
//! ```
//!
//! A backend is a folder, with set-up and data path in different files. One suite
//! (`tests/conformance`) runs each clause over each of them; the mutants in
//! `testing/mutants/fabric` show that it notices a broken clause.
//!
//! This crate knows nothing of views, topics or messages.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

mod fabric;
pub mod fork;
pub mod hybrid;
pub mod library_thread;
pub mod memory;
mod push_queue;
mod rdma;
mod retry;
pub mod shm;
pub mod sim;
pub mod sleep;
mod station;
pub mod tcp;
pub mod thread_settings;
pub mod ticks;
#[cfg(feature = "verbs")]
mod verbs;
#[cfg(not(feature = "verbs"))]
#[path = "rdma/not_built.rs"]
mod verbs;

pub use fabric::news::{NEWS_BUCKETS, News, NewsBuckets, SeenNews};
pub use fabric::peers::{MEMBERS_MAX, PeerSet, Rank};
pub use fabric::{
    FABRIC_AREA, Fabric, FabricCounters, FailureCause, MessagePush, Park, ParkSlots, PeerFailure,
    Sleeper, WakeInterest, WakeReason,
};
pub use memory::{Region, RowWord, Words};
pub use rdma::{BATCH_CLASSES, CHAIN_CLASSES, RdmaCounters, RdmaOptions};
pub use sleep::poller_role;
pub use station::error::StationError;
pub use station::event::{MESSAGE_LEN_MAX, StationEvent};
pub use station::segment::{SegmentKey, SegmentRequest};
pub use station::traffic::StationTraffic;
pub use verbs::RdmaError;
