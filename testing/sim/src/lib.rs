//! The deterministic simulator: the real engine over the simulated fabric, in
//! one thread, from one seed.
//!
//! ```text
//!   seed -> Plan (members, subgroups, rings, switches, network, what is sent)
//!        -> World: Node 0 .. Node n, each an engine, its applications, a recorder
//!             step: one of  { a node's application acts,
//!                             a node's engine steps, goes to sleep, wakes,
//!                             the network lands a piece,
//!                             lanes are replaced, a member fails }
//!        -> safety is checked at every delivery, liveness when all is quiet
//! ```
//!
//! A run ends in a [`Report`], or in a [`Violation`] that names the property
//! (docs/properties.md) and the seed; the same seed gives the same run.
//!
//! [`paper`] is a world of another kind: nothing fails in it, and everything takes the time
//! that it takes in the Spindle paper.

#![forbid(unsafe_code)]

#[cfg(feature = "planted")]
mod change;
#[cfg(feature = "planted")]
pub mod invariants;
#[cfg(feature = "planted")]
mod life;
#[cfg(feature = "planted")]
mod node;
pub mod paper;
#[cfg(feature = "planted")]
mod plan;
#[cfg(feature = "planted")]
mod recorder;
#[cfg(feature = "planted")]
mod violation;
#[cfg(feature = "planted")]
mod world;

#[cfg(feature = "planted")]
pub use life::{Deed, Legacy, LifePlan, LifeReport, Line, Scenario, live, live_traced, shrink};
#[cfg(feature = "planted")]
pub use node::Blunder;
#[cfg(feature = "planted")]
pub use plan::{GroupPlan, Plan, SenderPlan};
#[cfg(feature = "planted")]
pub use recorder::{Record, SentMessage};
pub use spindle_dds_core::{EngineConfig, SWITCHES};
#[cfg(feature = "planted")]
pub use violation::{Finding, Violation};
#[cfg(feature = "planted")]
pub use world::{Report, run};
