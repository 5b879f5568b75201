//! A network in virtual time: what work requests cost who posts them, and how long
//! writes take.
//!
//! ```text
//!   node: a processor with a clock of its own, and a NIC
//!
//!     clock --post--post--post-->            one after the other, to peer after peer
//!              |     |     |
//!     out link [w1 ][w2   ][w3]-->           a write after the other
//!                |
//!                +--- latency by size --->   in link of the peer  --> its copy of my row
//! ```
//!
//! It takes none of the contract's freedom (F1 to F5): a range is fetched at the call, a
//! write lands whole, pairs are in order, and so are writes into one node. Nobody fails, and
//! nobody sleeps: whoever steps, polls. So it is for experiments, and the conformance suite,
//! half of which is about those two, is not run over it. All times are computed from
//! [`Costs`], so a run is the same wherever and whenever it is made.
//!
//! *It knows nothing of messages*: whoever makes a segment says by a [`Measure`] what a
//! push of its rows counts for.

mod costs;
mod fabric;
mod network;
#[cfg(test)]
mod tests;

pub(crate) use costs::{Charge, Costs, Measure};
pub(crate) use fabric::{Spent, TimedFabric};
pub(crate) use network::TimedNetwork;
