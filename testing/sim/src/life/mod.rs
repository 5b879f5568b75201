//! Lives of groups, from their founding on: members that join, change, leave, crash and are cut
//! off, over the real membership, the real engine and the simulated network.
//!
//! `plan` draws a life from a seed, by a `scenario`; `member` is a process with its engine, driver
//! and applications; `world` gives members turns, injects faults, and stands in for what lies
//! outside of the processes: rendezvous, the domain's `record`, the `branches` of views. `hostile`
//! forges rows; `storage` keeps what writers with a storage level have written, for readers that come
//! later. What happens is recorded as `facts` by the `checkers`: the `invariants`, and the
//! history by which `client` judges what applications were promised.

mod branches;
mod checkers;
mod client;
mod facts;
mod hostile;
mod invariants;
mod logged;
mod member;
mod plan;
mod record;
mod scenario;
mod shrink;
mod storage;
mod trace;
mod world;

pub use logged::LoggedPlan;
pub use member::Blunder;
pub use plan::{Action, LifePlan, PreviousGroup};
pub use scenario::Scenario;
pub use shrink::shrink;
pub use trace::Line;
pub use world::{LifeReport, live, live_traced};
