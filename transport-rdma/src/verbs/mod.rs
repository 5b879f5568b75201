//! One-sided writes between hosts: RDMA over reliable connected queue pairs.
//!
//! Each pair of participants has one queue pair for all segments that they share. A push is an
//! RDMA write to the peer's copy of my row; no code of the peer runs for it.
//!
//! ```text
//!   pushing thread                                        the peer
//!   --------------                                        --------
//!   push(range) --.                       RDMA WRITE
//!   push_word   --+--> queue --> chain ==================> its copy of my row
//!   wake        --'         one call      WRITE with imm
//!                                        ================> its thread wakes its sleeper
//! ```
//!
//! This is a part of a [`hybrid::Station`](crate::hybrid::Station).
//!
//! - Set-up: `transport` over `device`, the chosen device; `link`, one peer, made from an
//!   `offer` and its answer. `shared` is the state of the transport, its segments and its
//!   `completion_thread`; `hooks` are its callbacks.
//! - Data path: `segment`; `outgoing` with its queue; the `poster`, which makes chains of work
//!   requests, counts `send_slots`, and knows from `open_segments` where pushes go;
//!   `peer_sleep`.
//! - `sys` wraps libibverbs, and has all of the `unsafe` code.
//!
//! # Memory
//!
//! My row is registered where it is, and sent from there. The copy of the row of each peer is
//! memory of its own with its own key. Only that peer is told the key, by OPEN (see
//! `control_message`) over the same queue pair, so in order with the writes. The copy stays
//! registered until the peer has sent OVER, or its queue pair is destroyed: a write in flight
//! to memory that is not registered breaks a queue pair. A fence replaces the copy in the
//! address space by a private one: late writes land in memory that is mapped nowhere, and the
//! queue pair keeps working. New segments have new memory and new keys.
//!
//! # Pushing
//!
//! The queue is that of [`tcp`](crate::tcp): ranges wait, not bytes, and words carry their
//! values. Pushes to a peer that has not opened the segment yet wait, and so does all behind
//! them (F6). A doorbell is carried by the write before it, if its chain has one. One work
//! request in 64 is signalled. The slots of the send queue are counted here and never overrun.
//! A push that finds no slot waits; the next push or `poll` posts it, or the completion thread,
//! which the completion channel wakes. There are no timers.
//!
//! # Failure
//!
//! A failure is reported once, with a reason: a work request that completed with an error, an
//! event of the device, an invalid message. Then the queue pair must be closed. A peer that
//! acknowledges nothing has failed after about the station's patience, at most 3.8 s.
//!
//! The device sends lost packets again: at once if the receiver reports a gap, else after a
//! seventh of that time. The receiver reports a gap once. So the longer time is needed if its
//! report is lost, if a retransmission is lost, or if the lost packet was the last one.

mod completion_thread;
mod control_message;
mod device;
mod error;
mod fetched;
mod hooks;
mod link;
mod link_counters;
mod offer;
mod open_segments;
mod outgoing;
mod peer_sleep;
mod poster;
mod segment;
mod send_slots;
mod shared;
mod sys;
mod transport;

#[cfg(test)]
mod tests;

pub(crate) use self::transport::RdmaTransport;
pub use error::RdmaError;
pub(crate) use hooks::Hooks;
pub(crate) use segment::RdmaSegment;
