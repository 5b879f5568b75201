//! Atomic multicast, Spindle-optimised: SST, SMC rings, round-robin total
//! order, opportunistic batching, null-sends, delivery levels.
//!
//! ```text
//!   threads of the participant          whoever steps            the lane's rows
//!
//!   SubgroupHandle::claim -> build in place
//!   Claim::commit ----> SendRing ------> send predicate ---------> guard, headers, payload
//!                                      receive predicate <------ guards of the others
//!                                      null-send predicate
//!                                      delivery predicate <----- received_num, received of the others
//!   Sink::deliver <------------------- in order
//!   Held dropped -----> ReleaseTracker -------> released, delivered_num -> room for the senders
//! ```
//!
//! This crate knows nothing of DDS entities, types or XML: a topic is a
//! 128-bit key, a sample is bytes. It has no thread, clock, socket or file of
//! its own; a driver hands them in, or the simulator does.
//!
//! Source: the Spindle paper (Jha, Rosa, Birman, ICDCS 2022) over Derecho's SST and SMC.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

// Tests share files with those that stand outside of the crate.
#[cfg(all(test, not(loom)))]
extern crate self as spindle_dds_core;

mod claim;
#[doc(hidden)]
pub mod commit_steps;
mod config;
mod counters;
mod digest;
mod engine;
mod figures;
mod gate;
mod group;
mod handle;
mod header;
mod held;
mod ids;
mod inbox;
#[cfg(feature = "planted")]
pub mod landmarks;
mod lane;
mod lanes;
mod layout;
pub mod limits;
#[cfg(all(test, loom))]
mod loom_models;
pub mod membership;
mod outbox;
mod outgoing;
mod pushes;
mod rest;
mod spec;
mod stream;
mod sync;
mod turn;
mod views;

pub use claim::{Claim, ClaimError, CommitMeta, Committed, RefusedCommit};
#[cfg(feature = "planted")]
pub use config::PlantedBug;
pub use config::{Bounds, EngineConfig, EngineSwitch, SWITCHES};
pub use counters::{BATCH_BUCKETS, BatchHistogram, Counters, Traffic};
pub use engine::{Engine, EngineEvent, Position, Sink, StepOutcome};
pub use figures::{Figures, WriterFigures};
pub use group::{DeliveryWait, EpochPhase, MessageRun, RingFigures, RunTotals, SubgroupFigures};
pub use handle::{AckWait, EngineHandle};
pub use header::{Header, MessageKind};
pub use held::{Delivery, Held};
pub use ids::{DeliveryClass, SubgroupId, TopicKey};
pub use lane::SubgroupHandle;
pub use layout::SegmentLayout;
pub use spec::{RingSpec, SenderSpec, SpecError, SubgroupSpec};
pub use stream::ProtocolViolation;
pub use views::{InstallError, PreparedView};
