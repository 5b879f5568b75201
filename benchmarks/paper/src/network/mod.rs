//! A network in virtual time: the cost of posting work requests, and the time of writes.
//!
//! ```text
//!   node: a processor with a clock of its own, and a NIC
//!
//!     clock --post--post--post-->            one peer after the other
//!              |     |     |
//!     out link [w1 ][w2   ][w3]-->           one write after the other
//!                |
//!                +--- latency by size --->   in link of the peer  --> its copy of my row
//! ```
//!
//! It is stricter than the contract requires (F1 to F5): a range is fetched at the call, a write
//! lands whole, and writes between two nodes, and into one node, are in order. Nodes neither fail
//! nor sleep, so the conformance suite of the transport does not apply. All times are computed from
//! [`Costs`], so a run has the same result on any machine.
//!
//! *It knows nothing of messages*: the owner of a segment provides a [`Measure`], which returns the
//! charge for a push of its rows.

mod costs;
mod fabric;
#[cfg(test)]
mod tests;
mod timed_network;

pub(crate) use costs::{Charge, Costs, Measure};
pub(crate) use fabric::{Spent, TimedFabric};
pub(crate) use timed_network::TimedNetwork;
