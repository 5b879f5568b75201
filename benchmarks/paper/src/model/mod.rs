//! The experiments of the Spindle paper in virtual time: the real engines, over a network with the
//! costs of the paper's.
//!
//! ```text
//!   Experiment (members, senders, window, switches, delays)
//!        -> World: Member 0 .. Member n, each an engine, a polling thread, applications
//!             polling thread: one step after the other; a step takes the time of its reads of
//!                   others' rows, its posts and its upcalls
//!             application:    claims and commits as fast as it can, or with a delay
//!             TimedNetwork:   posts are serial, links are shared, writes land later
//!        -> Measured: throughput, latency, requests, batches, and shares of the time
//! ```
//!
//! All costs are in [`constants`], each with its source in the paper. The engine and its shared
//! memory are those of the product, except that 16 bytes represent a payload of the experiment's
//! size, and are charged as that many bytes.
//!
//! # The lock of the paper
//!
//! The paper's polling thread shares a lock with the applications. It holds the lock during each
//! of the three predicates of an active subgroup, and, before §III-C, during their posts. After
//! each of them one waiting application sends a message, and the polling thread loses the time of
//! handing the lock over. While it reads inactive subgroups, and while it posts without the lock,
//! applications send as fast as they can. Our engine has no such lock: see [`Lock`].
//!
//! # Slots
//!
//! The paper's slot contains message and counter: a push of it is one write. Our engine has rings
//! of payload and of headers, which are pushed separately: see [`Slots`].

mod application;
pub(crate) mod constants;
mod experiment;
mod measured;
mod member;
mod receiver;
mod storage;
#[cfg(test)]
mod tests;
#[path = "../../../../dds-core/tests/view/mod.rs"]
mod view;
mod world;

pub(crate) use experiment::{
    Delay, Delayed, Experiment, Level, Lock, MESSAGES_MAX, Senders, Slots,
};
pub(crate) use measured::{Batches, Measured};
pub(crate) use world::{Broken, run};
