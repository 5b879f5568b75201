//! The `Fabric` contract and its backends: rows of bytes, pushes, peers.
//!
//! This crate knows nothing of views, topics or messages.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

mod fabric;
pub mod mem;
mod peers;
pub mod shm;
pub mod sim;
pub mod sleep;

pub use fabric::{
    DOORBELL_WORD, FABRIC_AREA, Fabric, FabricCounters, Failure, FailureCause, Park, SLEEP_WORD,
    Want,
};
pub use mem::Region;
pub use peers::{MEMBERS_MAX, PeerSet, Rank};
