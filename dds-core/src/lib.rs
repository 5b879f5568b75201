//! Atomic multicast with Spindle's optimisations: SST, SMC rings, round-robin total
//! order, opportunistic batching, null-sends, delivery levels.
//!
//! ```text
//!   threads of the participant          the thread that steps    the rows of the subgroup
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
//! its own; a driver or the simulator provides them.
//!
//! Sources. Derecho (Jha et al., ACM TOCS 2019) is the source of views, the shared state table
//! (SST), small-message rings (SMC) and stability by minima over received counts. Spindle (Jha,
//! Rosa, Birman, ICDCS 2022) is the source of batching in all predicates, null-sends and the
//! separation of application threads from the polling thread.

#[cfg(not(target_os = "linux"))]
compile_error!("Spindle DDS runs on Linux (kernel 5.10 or newer, x86-64 or aarch64) only");

// Tests share files with those that stand outside of the crate.
#[cfg(all(test, not(loom)))]
extern crate self as spindle_dds_core;

#[doc(hidden)]
pub mod commit_steps;
mod config;
mod counters;
mod engine;
mod ids;
#[doc(hidden)]
pub mod landmarks;
pub mod limits;
#[cfg(all(test, loom))]
mod loom_models;
pub mod membership;
mod sink;
mod spec;
pub mod storage;
mod subgroup;
mod sync;

pub use config::{Bounds, EngineConfig, EngineSwitch, RingStretch, SWITCHES};
pub use counters::{BATCH_BUCKETS, BatchHistogram, Counters, Traffic};
pub use engine::figures::{Figures, WriterFigures};
pub use engine::handle::{AckWait, EngineHandle};
pub use engine::memory_map::{MemoryRange, MemoryUse};
pub use engine::views::{InstallError, PreparedSubgroup, PreparedView};
pub use engine::{Engine, StepOutcome};
pub use ids::{DeliveryClass, SubgroupId, TopicKey};
pub use sink::{EngineEvent, Sink};
pub use spec::{RingSpec, SenderSpec, SpecError, SubgroupSpec};
pub use subgroup::claim::{Claim, ClaimError, CommitMeta, Committed};
pub use subgroup::handle::SubgroupHandle;
pub use subgroup::header::{Header, MessageKind};
pub use subgroup::held::{Delivery, Held};
pub use subgroup::layout::SegmentLayout;
pub use subgroup::memory::EpochMemory;
pub use subgroup::receive_cursor::ProtocolViolation;
pub use subgroup::sent::SentMessage;
pub use subgroup::{
    DeliveryWait, EpochPhase, MessageRun, Position, RingFigures, RunTotals, SubgroupFigures,
};
