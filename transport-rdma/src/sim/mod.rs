//! A deterministic network: the contract and nothing more, from one seed.
//!
//! A network has *nodes* (processes) and *segments* (sets of rows, one for each of some nodes,
//! each with a [`SimFabric`] to it); both are added and removed while it runs. Every ordered
//! pair of nodes is one queue over all segments. [`SimNetwork::step`] lands one element of one
//! queue, both chosen by the seed. Readers run between the steps, so they see every state that
//! the contract allows:
//!
//! ```text
//!   rows of A (A stores here)
//!      |
//!      |  pair A -> B, shared memory: a log of A's stores
//!      |     ... store 7 | store 8 | payload | store 9      any prefix may be visible,
//!      |                 ^ visible at B up to here           payload at any time
//!      |
//!      |  pair A -> C, queued writes: a queue of pushes
//!      |     range {w3 w1 w4} | word = 9 | doorbell         the front lands first,
//!      |           ^ in any order, fetched late or early    pairs interleave
//!      v
//!   copies of A's rows at B and C
//! ```
//!
//! - F1, F1b: a word of a range is fetched at the call or when it lands; a word push carries
//!   its value; both leave at the call or with the next `wake`.
//! - F2, F3: a queue lands from its front; queues do not wait for each other, and stall at
//!   random. A queue of writes stops at the first one for a segment that the receiver has not
//!   opened, like a stream that is not read.
//! - F4: words are never torn; those of one push land one by one, in any order.
//! - F5: in shared memory a store becomes visible before its push, in store order, with the
//!   payload written before it (a release).
//! - F6: of what a crashed node had sent, everything, a part or nothing lands, of the last push
//!   perhaps some words; the others are told sooner or later, before or after that. Nothing of
//!   a fenced peer lands in that segment, and nothing in a segment that was closed.
//! - Sleeping: a node has one sleep word. A doorbell travels behind the data (queued writes) or
//!   brings the stores along (shared memory). A fence alone makes a store visible only to nodes
//!   that fence later, as a sleeper does. Nodes wake without cause.
//!
//! The mutants in `testing/mutants/fabric` break one clause each; the conformance suite has to
//! notice.

mod fabric;
mod faults;
mod ids;
mod landing;
mod link;
mod network;
mod opening;
mod options;
mod rng;
mod segment;
mod sending;
mod sleeping;
mod state;
#[cfg(test)]
mod tests;

pub use fabric::SimFabric;
pub use ids::{NodeId, SegmentId};
pub use network::SimNetwork;
pub use options::SimOptions;
pub use rng::Rng;
