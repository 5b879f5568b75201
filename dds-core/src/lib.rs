//! Atomic multicast, Spindle-optimised: SST, SMC rings, round-robin total
//! order, opportunistic batching, null-sends, delivery levels.
//!
//! ```text
//!   threads of the participant          whoever steps            the view's rows
//!
//!   Handle::claim -> build in place
//!   Claim::commit ----> Outbox ------> send predicate ---------> guard, headers, payload
//!                                      receive predicate <------ guards of the others
//!                                      null-send predicate
//!                                      delivery predicate <----- received_num of the others
//!   Sink::deliver <------------------- in order
//!   Held dropped -----> Inbox -------> released, delivered_num -> room for the senders
//! ```
//!
//! This crate knows nothing of DDS entities, types or XML: a topic is a
//! 128-bit key, a sample is bytes. It has no thread, clock, socket or file of
//! its own; a driver hands them in, or the simulator does.
//!
//! Source: the Spindle paper (Jha, Rosa, Birman, ICDCS 2022) over Derecho's SST and SMC.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

mod config;
mod counters;
mod digest;
mod engine;
mod group;
mod header;
mod ids;
mod inbox;
mod layout;
pub mod limits;
#[cfg(all(test, loom))]
mod loom_models;
pub mod membership;
mod outbox;
mod outgoing;
mod pushes;
mod shared;
mod spec;
mod stream;
mod sync;

pub use config::EngineConfig;
#[cfg(feature = "planted")]
pub use config::PlantedBug;
pub use counters::{BATCH_BUCKETS, BatchHistogram, Counters};
pub use engine::{Engine, Event, Outcome, Position, Sink, StopReason};
pub use header::{Header, Kind};
pub use ids::{Ring, SubgroupId, TopicKey};
pub use layout::Layout;
pub use shared::{AckWait, Claim, ClaimError, Committed, Delivery, Handle, Held, Meta};
pub use spec::{RingSpec, SenderSpec, SpecError, SubgroupSpec, ViewSpec};
pub use stream::Nonsense;
