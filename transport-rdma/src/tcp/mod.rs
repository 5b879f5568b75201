//! Streams between participants, over any IP network.
//!
//! One connection for each pair, a stream each way, for all the segments that they
//! share: I write records of my rows to a peer, it writes those of its rows to me. A
//! record is a slot, which stands for a segment, an offset, a length and so many bytes;
//! the receiver puts them into its copy. Messages go between them, in parts.
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
//! This is the part of a [`hybrid::Station`](crate::hybrid::Station) that goes by
//! streams; that makes the connections, and is where one sleeps.
//!
//! - Set-up: `core` over connections; `shared` is what it, its segments and its
//!   thread know.
//! - Data path: `streams`: for each peer `outgoing` with its `queue`, `incoming` with
//!   its `splitter`, which takes the messages out, and its `decoder` of `record`s, and
//!   one thread for all (`io`).
//!
//! # Pushing
//!
//! What waits for a stream are ranges, not bytes: a range is fetched when it is
//! sent (F1 allows it), a word carries its value (F1b), and the order is that of
//! the calls, in whatever segments (F2). So a peer that takes nothing costs its
//! sender a list of ranges, bounded by [`StreamOptions::waiting_max`]; at the
//! bound it has failed. A range that is pushed again while it waits is not queued
//! twice, so acknowledgements do not pile up. What is staged was fetched by whole
//! words, which stay as they are until they are sent, in however many pieces (F4).
//!
//! No thread waits for a peer, nor for the one that writes: whoever finds the
//! writer busy leaves its records to it.
//!
//! # Segments
//!
//! Nobody is asked when a segment is made: the first push to a peer opens it in
//! that stream. If the peer has not made it yet, records wait there until it has, or
//! forgets it (F6), 16 MiB of them; then it reads no more, and who leaves a stream
//! unread for [`StreamOptions::user_timeout`] has failed for its sender. Messages do
//! not wait: they may be what has the peer make the segment. Dropping a
//! segment shuts it in all streams, and its slot is free. What comes for one that
//! was dropped is thrown away, as is all of an epoch that is over.
//!
//! # Sleeping
//!
//! The epoch does not travel. Who rings sends a ring record behind the data,
//! and that is all it does: [`ring`](crate::Fabric::ring) sends what it has
//! held back for the members of its segment, and the record says for what. The
//! handshake of [`crate::sleep`] takes place inside the receiving process: its I/O
//! thread stores the words, fences and reads the epoch; its sleeper announced,
//! fenced and looked. So rings are counted where they are answered.
//!
//! # PeerFailure
//!
//! A stream that ends, breaks, takes nothing for [`StreamOptions::user_timeout`],
//! or carries what is no record is its peer's failure, told once to each control
//! segment, with the reason. A peer whose host is gone is noticed when it acknowledges
//! nothing for that time, sent or asked by the kernel: whoever wants to know sooner
//! sends (heartbeats are the membership's). Who goes on purpose says so last. A process
//! that forks keeps the streams; the child must not use the station, and keeps them
//! open until it ends or executes another program.

mod core;
mod decoder;
mod incoming;
mod io;
mod outgoing;
mod queue;
mod record;
mod shared;
mod splitter;
mod streams;

pub(crate) use self::core::{Core, problem};
pub use self::core::{StreamOptions, StreamState};
pub(crate) use shared::Wake;
pub(crate) use streams::{Reach, Streams};
