//! A group from its founding on: members that come, change, leave and die, over
//! the real membership, the real engine and the simulated network.
//!
//! `plan` draws a life from a seed; `member` is a process with its engine, its
//! driver and its applications; `world` takes turns, does harm, and stands in
//! for what lies outside of the processes (rendezvous, the domain's `record`, the `course`
//! of views); `hostile` overwrites rows. What happens is told, as `facts`, to the `book`,
//! which passes it on to the `invariants`, and to the history by which `client` judges
//! what applications were promised.

mod book;
mod client;
mod course;
mod facts;
mod hostile;
mod invariants;
mod member;
mod plan;
mod record;
mod scenario;
mod shrink;
mod trace;
mod world;

pub use member::Blunder;
pub use plan::{Deed, Legacy, LifePlan};
pub use scenario::Scenario;
pub use shrink::shrink;
pub use trace::Line;
pub use world::{LifeReport, live, live_traced};
