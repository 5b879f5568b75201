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

mod change;
pub mod invariants;
mod life;
mod node;
mod plan;
mod recorder;
mod violation;
mod world;

pub use life::{
    Action, LifePlan, LifeReport, Line, PreviousGroup, Scenario, live, live_traced, shrink,
};
pub use node::Blunder;
pub use plan::{GroupPlan, Plan, SenderPlan};
pub use recorder::{Record, SentMessage};
pub use spindle_dds_core::{EngineConfig, SWITCHES};
pub use violation::{Finding, Violation};
pub use world::{Report, run};
