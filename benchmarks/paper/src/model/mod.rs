//! The experiments of the Spindle paper in virtual time: the real engines, over a network
//! that takes the time that the paper's did.
//!
//! ```text
//!   Experiment (members, senders, window, switches, delays)
//!        -> World: Member 0 .. Member n, each an engine, a polling thread, applications
//!             polling thread: a step after the other; a step takes the time of its looks at
//!                   others' rows, its posts and its upcalls
//!             application:    claims and commits as fast as it can, or with a delay
//!             TimedNetwork:   posts are serial, links are shared, writes land later
//!        -> Measured: throughput, latency, requests, batches, and where the time went
//! ```
//!
//! All that takes time stands in [`constants`], each with the place in the paper that says
//! so. The engine is the product's; so is everything that it reads and writes, but that a
//! payload of the experiment's size is stood in for by 16 bytes, which count for as many as
//! they stand for.
//!
//! # The lock of the paper
//!
//! The paper's polling thread shares a lock with the applications. It holds it over each of
//! the three predicates of an active subgroup, and, before §III-C, over their posts; behind
//! each of these an application that waits has one go, and the polling thread loses the time
//! of handing the lock over. While it looks at inactive subgroups, and while it posts without
//! the lock, applications go on as fast as they can. Our engine has no such lock: see [`Lock`].
//!
//! # Slots
//!
//! The paper's slot holds message and counter: a push of it is one write. Ours are rings of
//! payload and of headers, which are pushed apart: see [`Slots`].

mod application;
pub(crate) mod constants;
mod experiment;
mod measured;
mod member;
mod receiver;
#[cfg(test)]
mod tests;
#[path = "../../../../dds-core/tests/view/mod.rs"]
mod view;
mod world;

pub(crate) use experiment::{Delay, Delayed, Experiment, Lock, MESSAGES_MAX, Senders, Slots};
pub(crate) use measured::{Batches, Measured};
pub(crate) use world::{Broken, run};
