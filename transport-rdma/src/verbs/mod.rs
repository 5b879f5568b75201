//! One-sided writes between hosts: RDMA over reliable connected queue pairs.
//!
//! One queue pair for each pair of participants, for all the segments that they share: a
//! push is a write into the peer's copy of my row, and no code runs there for it.
//!
//! ```text
//!   pushing thread                                        the peer
//!   --------------                                        --------
//!   push(range) --.                       RDMA WRITE
//!   push_word   --+--> queue --> chain ==================> its copy of my row
//!   ring        --'         one call      WRITE with imm
//!                                        ================> its thread wakes its sleeper
//! ```
//!
//! This is the part of a [`hybrid::Station`](crate::hybrid::Station) that goes by RDMA.
//!
//! - Set-up: `core` over `device`, the choice; `link`, a peer, over an `offer` and its
//!   answer. `shared` is what it, its segments and its one `thread` know.
//! - Data path: `segment`; `outgoing` with its queue, and the `poster`, which makes chains
//!   of it, counts `slots` and knows by the `ledger` where things go; `sleeper`.
//! - `sys` is libibverbs, and has all that is `unsafe`.
//!
//! # Memory
//!
//! My row is registered where it is, so that it can be sent from. The copy of each peer
//! that comes by RDMA is memory of its own, with a key of its own, which that peer alone
//! is told by `OPEN` (see `message`), over the same queue pair, so in order with the writes.
//! It stays registered until the peer has said `OVER`, or its queue pair is destroyed: a
//! write that is on its way to memory that is not there breaks a queue pair. A fence puts
//! a private copy in its place in the address space: late writes land in memory that
//! nobody sees, and the queue pair goes on. New segments have new memory and new keys.
//!
//! # Pushing
//!
//! The queue is that of [`tcp`](crate::tcp): ranges wait, not bytes, and words carry their
//! values. A peer that has not made the segment yet has no place for them: then they wait,
//! and all that is behind them (F6). A doorbell is carried by the write before it, if there
//! is one in its chain. Of the work requests one in 64 is signalled; the
//! slots of the send queue are counted here, and never overrun. What finds none waits; the
//! next push or `poll` goes on with it, or the thread, which the completion channel tells.
//! There are no timers.
//!
//! # PeerFailure
//!
//! What fails is told once, in words: a work request that is completed with an error, an
//! event of the device, a message that makes no sense. The queue pair is to be closed then.
//! A peer that acknowledges nothing has failed after about the station's patience, and
//! after 3.8 s if that is longer.
//!
//! What is lost on the way is the device's to send again: at once if the receiver says that
//! there is a gap, else after a seventh of that time. It says so once for a gap. So if its
//! word is lost, or what was sent again, or what nothing was sent behind, that is waited for.

mod core;
mod counters;
mod device;
mod error;
mod fetched;
mod ledger;
mod link;
mod message;
mod offer;
mod outgoing;
mod poster;
mod segment;
mod shared;
mod sleeper;
mod slots;
mod sys;
mod thread;

#[cfg(test)]
mod tests;

pub(crate) use self::core::{Core, Hooks};
pub use error::RdmaError;
pub(crate) use segment::Segment;
