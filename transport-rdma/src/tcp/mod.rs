//! Streams between the members of a view, over any IP network.
//!
//! One stream for each ordered pair: I write records of my row to a peer on
//! mine, it writes those of its row to me on its own. A record is an offset, a
//! length and so many bytes; the receiver puts them into its copy.
//!
//! ```text
//!   pushing thread                                       the peer's I/O thread
//!   --------------                                       ---------------------
//!   push(range) --.                                      checks the header
//!   push_word   --+--> queue --> stage --> stream =====> words into the copy
//!   ring        --'      ^ bytes are fetched here        ring: wakes its sleeper
//!                        |
//!                  whoever finds the writer free; the I/O thread
//!                  when a full stream takes bytes again
//! ```
//!
//! - Set-up: [`Links`] (`links`) over connected streams; [`local_group`].
//! - Data path: [`TcpFabric`] (`fabric`, with `sleeper`) over `streams`: for each
//!   peer `outgoing` with its `queue`, `incoming` with its `decoder` of `record`s,
//!   and one thread for all (`io`).
//!
//! # Pushing
//!
//! What waits for a stream are ranges, not bytes: a range is fetched when it is
//! sent (F1 allows it), a word carries its value (F1b), and the order is that of
//! the calls (F2). So a peer that takes nothing costs its sender a list of
//! ranges, bounded by [`TcpOptions::waiting_max`]; at the bound it has failed.
//! A range that is pushed again while it waits is not queued twice, so
//! acknowledgements do not pile up. What is staged was fetched by whole words,
//! which stay as they are until they are sent, in however many pieces (F4).
//!
//! No thread waits for a peer, nor for the one that writes: whoever finds the
//! writer busy leaves its records to it.
//!
//! # Sleeping
//!
//! The epoch does not travel. Who rings sends a ring record behind the data,
//! and that is all it does: [`ring`](crate::Fabric::ring) sends what it has
//! held back, and the record says for whom. The handshake of [`crate::sleep`]
//! takes place inside the receiving process: its I/O thread stores the words,
//! fences and reads the epoch; its sleeper announced, fenced and looked. So
//! rings are counted where they are answered.
//!
//! # Failure
//!
//! A stream that ends, breaks, takes nothing for [`TcpOptions::user_timeout`],
//! or carries what is no record is its peer's failure, told once, with the
//! reason. A peer whose host is gone is noticed when something is sent to it:
//! whoever wants to know sooner sends (heartbeats are the membership's).
//! A process that forks keeps the streams; the child must not use the fabric,
//! and keeps them open until it ends or executes another program.

mod decoder;
mod fabric;
mod incoming;
mod io;
mod links;
mod local;
mod outgoing;
mod queue;
mod record;
mod sleeper;
mod streams;

pub use fabric::TcpFabric;
pub use links::{LinkError, Links, TcpOptions};
pub(crate) use local::link_all;
pub use local::local_group;
pub use streams::LinkState;
pub(crate) use streams::Streams;
