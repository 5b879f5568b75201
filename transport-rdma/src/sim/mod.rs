//! A deterministic network: the contract and nothing more, from one seed.
//!
//! A network has *nodes* (processes) and *segments* (sets of rows, one for each
//! of some nodes, each with a [`SimFabric`] to it); both come and go while it
//! runs. Every ordered pair of nodes is one queue of pieces, over all segments,
//! and [`SimNetwork::step`] lands one piece of one queue, both chosen by the
//! seed. The readers run between the steps, so they see every state that the
//! contract allows:
//!
//! ```text
//!   rows of A (A stores here)
//!      |
//!      |  pair A -> B, shared memory: a log of A's stores
//!      |     ... store 7 | store 8 | payload | store 9      any prefix shows at
//!      |                 ^ shown at B up to here            any time, payload any time
//!      |
//!      |  pair A -> C, queued writes: a queue of pushes
//!      |     range {w3 w1 w4} | word = 9 | doorbell         the front lands first,
//!      |           ^ in any order, fetched late or early    others interleave
//!      v
//!   copies of A's rows at B and C
//! ```
//!
//! - F1, F1b: a word of a range is fetched at the call or when it lands; a word
//!   push carries its value; both leave at the call or with the next ring.
//! - F2, F3: a queue lands from its front; queues do not wait for each other,
//!   and stall at random. A queue of writes stops at the first for a segment that
//!   the receiver has yet to open, like a stream that nobody reads.
//! - F4: words never tear; those of one push land one by one, in any order.
//! - F5: in shared memory a store shows before its push, in store order, with
//!   the payload written before it (a release).
//! - F6: of what a crashed node had sent, all, some or nothing lands, the
//!   last push perhaps in part; the others learn of it sooner or later, before
//!   or after that. Nothing of a fenced peer lands in that segment, and nothing
//!   in a segment that has been closed.
//! - Sleeping: a node has one sleep word. A doorbell travels behind the data
//!   (queued writes) or brings the stores along (shared memory); a fence alone
//!   shows a store only to those who fence later, as a sleeper does; nodes wake
//!   without cause.
//!
//! [`PlantedBug`] breaks one clause at a time: a checker that does not notice
//! is not a checker.

mod fabric;
mod faults;
mod landing;
mod link;
mod network;
mod options;
mod rng;
mod segment;
mod sending;
mod sleeping;
mod state;
#[cfg(test)]
mod tests;

pub use fabric::SimFabric;
pub use network::{NodeId, SegmentId, SimNetwork};
pub use options::{PlantedBug, SimOptions};
pub use rng::Rng;
