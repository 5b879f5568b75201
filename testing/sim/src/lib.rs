//! The deterministic simulator: the real engine and the real membership over the simulated
//! fabric, in one thread, from one seed.
//!
//! ```text
//!   seed -> LifePlan (members, subgroups, rings, switches, network, what is sent, what fails)
//!        -> World: members, each an engine, its driver, its applications, a recorder
//!             step: one of  { a member's application acts,
//!                             a member's engine steps, goes to sleep, wakes,
//!                             the network lands a piece,
//!                             members come, change, leave, die and are cut off }
//!        -> safety is checked at every delivery, liveness when all is quiet
//! ```
//!
//! A life ends in a [`LifeReport`], or in a [`Violation`] that names the property
//! (docs/properties.md) and the seed; the same seed gives the same life.

#![forbid(unsafe_code)]

mod life;
mod logs;
mod violation;

pub use life::{
    Action, Blunder, LifePlan, LifeReport, Line, LoggedPlan, PreviousGroup, Scenario, live,
    live_traced, shrink,
};
pub use logs::{LogPlan, LogReport, ShownAfter, live_logs};
pub use spindle_dds_core::{EngineConfig, SWITCHES};
pub use violation::{Finding, Violation};
